"""From a folder or a Hub id to weights that are known to be all there, and the one line to type where that fails."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, NamedTuple

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
from safetensors import SafetensorError
from transformers import PreTrainedModel

from protoscore.errors import CheckpointError, ConfigError, first_line

DTYPES = ("float32", "bfloat16", "float16")
_SMALL = ("*.json", "*.txt", "*.jinja", "*.model")  # configuration, tokenizer, chat template, image processor


class Checkpoint(NamedTuple):
    """A model on disk: where it lies and what it is (a Hub commit, or a digest of the files)."""

    source: str  # as the user named it, for messages
    path: Path
    revision: str


def fetch(source: str, revision: str | None = None, files: Sequence[str] = ("*.safetensors",)) -> Checkpoint:
    """Find ``source`` on disk, or download it from the Hub; all files are then of one commit.

    Args:
        source: a folder, or a Hub id.
        revision: a branch, tag or commit of the Hub; the newest one if None.
        files: patterns of the weight files; ``*.bin`` is taken where a repository has no safetensors.

    Raises:
        CheckpointError: there is no such folder, or the Hub does not give it; the message says what to type.
    """
    folder = Path(source).expanduser()
    here = folder.is_dir()
    if not here and (source.startswith((".", "/", "~")) or source.count("/") > 1):
        raise CheckpointError(f"there is no folder {source}; give a folder, or a Hub id such as openai/clip-vit-base-patch32")
    for wanted in [files, ("*.bin",)] if "*.safetensors" in files else [files]:
        path = folder if here else _download(source, revision, wanted)
        if _any(path, wanted):
            return Checkpoint(source, path, files_digest(path, (*wanted, *_SMALL)) if here else path.name)
    advice = "give a folder that does" if here else f"type: hf download {source}"
    raise CheckpointError(f"{source} holds no {' or '.join(files)}; {advice}")


def load_model(
    kind: Any, checkpoint: Checkpoint, dtype: str = "float32", device: str | None = None,
    may_lack: tuple[str, ...] = (), may_have_more: bool = False,
) -> PreTrainedModel:  # fmt: skip
    """Load a transformers model, ready for inference, and refuse weights that are missing or left over.

    ``kind`` is a model class or an auto class. Pickled code is never run: ``.bin`` files are read as plain tensors.

    Args:
        may_lack: what the keys begin with that may be missing, since nobody reads what they give.
        may_have_more: left over weights are no mistake, as those of a head that is not used.
    """
    place = pick_device(device)
    try:
        model, info = kind.from_pretrained(
            checkpoint.path,
            dtype=pick_dtype(dtype),
            use_safetensors=_any(checkpoint.path, ("*.safetensors",)),
            weights_only=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # refused below, by name
            local_files_only=True,
            trust_remote_code=False,
        )
    except (OSError, ValueError, RuntimeError, SafetensorError, UnpicklingError) as error:
        raise CheckpointError(f"{checkpoint.source} cannot be loaded ({first_line(error)})") from error
    named = {what: [key if isinstance(key, str) else key[0] for key in keys] for what, keys in info.items() if "keys" in what}
    refuse_keys(checkpoint.source, "missing keys", [k for k in named["missing_keys"] if not k.startswith(may_lack)])
    refuse_keys(checkpoint.source, "unexpected keys", [] if may_have_more else named["unexpected_keys"])
    refuse_keys(checkpoint.source, "mismatched keys", named["mismatched_keys"])
    return model.eval().to(place)


def read_pickle_free(path: Path) -> dict[str, Any]:
    """Read a ``.pt`` file of tensors and plain containers; anything else in it is refused and not run.

    Raises:
        CheckpointError: the file is missing, damaged, or holds more than tensors.
    """
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise CheckpointError(f"there is no file {path}") from error
    except Exception as error:  # damaged archives raise many kinds
        raise CheckpointError(f"{path} holds no plain tensors ({type(error).__name__}: {first_line(error)})") from error


def load_strictly(module: torch.nn.Module, weights: dict[str, Any], source: str) -> None:
    """Put ``weights`` into ``module``; each key and shape must be the one that it has."""
    own = module.state_dict()
    refuse_keys(source, "missing keys", own.keys() - weights.keys())
    refuse_keys(source, "unexpected keys", weights.keys() - own.keys())
    refuse_keys(source, "mismatched keys", [key for key in own if own[key].shape != weights[key].shape])
    module.load_state_dict(weights)


def refuse_keys(source: str, what: str, keys: Iterable[str]) -> None:
    """Raise a :class:`CheckpointError` that names the first of ``keys``, if there are any."""
    names = sorted(keys)
    if names:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        raise CheckpointError(f"{source}: {what}: {', '.join(names[:3])}{more}; these are not the weights of this metric")


def files_digest(folder: Path, patterns: Sequence[str]) -> str:
    """A short digest of the files of a folder: other weights, another configuration, tokenizer or template have another one."""
    digest = hashlib.sha256()
    for path in sorted({path for pattern in patterns for path in folder.glob(pattern)}):
        digest.update(f"\n{path.name}\n".encode())
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:16]


def pick_device(device: str | None) -> torch.device:
    """The device asked for; a GPU if there is one, and the CPU otherwise, when none is."""
    try:
        place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.empty(1, device=place)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"device {device!r} cannot be used here ({first_line(error)}); try device='cpu'") from error
    return place


def pick_dtype(dtype: str) -> torch.dtype:
    """A floating type by name."""
    if dtype not in DTYPES:
        raise ConfigError(f"dtype {dtype!r} is none of {', '.join(DTYPES)}")
    return getattr(torch, dtype)


def _download(source: str, revision: str | None, files: Sequence[str]) -> Path:
    at = f" --revision {revision}" if revision else ""
    try:
        return Path(snapshot_download(source, revision=revision, allow_patterns=[*_SMALL, *files], ignore_patterns="*/*"))
    except HFValidationError as error:
        raise CheckpointError(f"{source!r} is neither a folder nor a Hub id") from error
    except GatedRepoError as error:
        message = f"{source} is gated; accept its terms on its page on the Hub, then type: hf auth login"
        raise CheckpointError(message) from error
    except LocalEntryNotFoundError as error:
        message = f"{source} is not on this machine and the Hub cannot be reached; where it can be, type: hf download {source}"
        raise CheckpointError(message + at) from error
    except (HfHubHTTPError, OSError) as error:
        message = f"{source} cannot be downloaded ({first_line(error)}); check the name, then type: hf download {source}{at}"
        raise CheckpointError(message) from error


def _any(folder: Path, patterns: Sequence[str]) -> bool:
    return any(True for pattern in patterns for _ in folder.glob(pattern))
