"""From a folder or a Hub id to a scoring model: a whole checkpoint, an adapter on its base, or a base with a yes/no head.

The class follows from the checkpoint's ``model_type``, so that a new family costs nothing here. Weights are read from
safetensors only; a pickle is never opened.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from transformers import AutoModelForSequenceClassification, AutoProcessor, BitsAndBytesConfig, PreTrainedModel, ProcessorMixin
from transformers.utils import logging

from protoscore.errors import CheckpointError, ConfigError, first_line, needs
from protoscore.modeling.checkpoint import Checkpoint, fetch, pick_device, refuse_keys
from protoscore.modeling.classifier import register

WEIGHTS = ("model*.safetensors", "adapter_model*.safetensors")
HEAD, VOCABULARY = "score.weight", "lm_head.weight"
UNQUANTIZED = ["score", r"(.*\.)?visual"]  # patterns; a plain "visual" would match the start of a name only


class Loaded(NamedTuple):
    model: PreTrainedModel
    processor: ProcessorMixin
    revision: str


def load(
    source: str, dtype: str | torch.dtype = "float32", device_map: Any = None, quantization: str | None = None,
    revision: str | None = None, trust_remote_code: bool = False, answers: tuple[str, str] | None = None, **options: Any,
) -> Loaded:  # fmt: skip
    """The arguments are those of :meth:`protoscore.modeling.protoscore.ProtoScore.from_pretrained`."""
    register()
    checkpoint = _find(source, revision, trust_remote_code)
    adapter = _adapter_config(checkpoint)
    base = _find(adapter["base_model_name_or_path"], adapter.get("revision"), trust_remote_code) if adapter else checkpoint
    bare = bool(adapter or answers)
    if bare:
        options["num_labels"] = 1
    if quantization:
        options["quantization_config"] = nf4(quantization, dtype)
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # what is missing or left over is refused below, or expected
    try:
        processor = AutoProcessor.from_pretrained(checkpoint.path, trust_remote_code=trust_remote_code)
        with needs("quantized", "bitsandbytes"):
            model, info = AutoModelForSequenceClassification.from_pretrained(
                base.path, dtype=dtype, device_map=device_map, trust_remote_code=trust_remote_code, use_safetensors=True,
                output_loading_info=True, local_files_only=True,
                ignore_mismatched_sizes=True,  # refused below, by name
                **options,
            )  # fmt: skip
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise CheckpointError(f"{source} holds no ProtoScore checkpoint ({first_line(error)})") from error
    finally:
        logging.set_verbosity(verbosity)
    model.name_or_path = model.config._name_or_path = base.source  # not the cache: an adapter trained on it records this name
    _same_on_every_cpu(model)
    headless = _refuse(base.source, info, allowed={HEAD, VOCABULARY} if bare else set())
    if model.config.num_labels != 1:
        raise CheckpointError(f"{source} is a classifier of {model.config.num_labels} classes; a ProtoScore checkpoint has one")
    if answers:
        _set_head(model, answer_head(base, processor, answers))
    elif adapter:
        model = _with_adapter(model, checkpoint, headless)
    if device_map is None and getattr(model, "quantization_method", None) is None:
        model = model.to(pick_device(None))
    return Loaded(model, processor, _revision(checkpoint, base))


def nf4(quantization: str, dtype: str | torch.dtype) -> BitsAndBytesConfig:
    """Four-bit weights (NF4) everywhere but in the head and the vision tower; arithmetic in ``dtype``."""
    if quantization != "nf4":
        raise ConfigError(f"quantization must be 'nf4' or None, not {quantization!r}")
    kind = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    return BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=kind, llm_int8_skip_modules=UNQUANTIZED
    )


def _same_on_every_cpu(model: PreTrainedModel) -> None:
    """Keep bitsandbytes from repacking four-bit weights at the first forward pass on CPUs with AVX512-BF16: the repacked ones
    are rounded to bfloat16, and saving them afterwards writes, and leaves behind, other weights than were loaded."""
    for module in model.modules():
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False


def answer_head(checkpoint: Checkpoint, processor: ProcessorMixin, answers: tuple[str, str]) -> torch.Tensor:
    """(1, hidden) weights that give the logit of the first answer minus that of the second, from a base's vocabulary head.

    With ("yes", "no") this is what Qwen3-VL-Reranker's relevance is made of. Only the two rows are read.

    Raises:
        CheckpointError: an answer is not one token, or the checkpoint has neither vocabulary head nor embeddings.
    """
    ids = [processor.tokenizer(answer, add_special_tokens=False)["input_ids"] for answer in answers]
    if any(len(tokens) != 1 for tokens in ids):
        raise CheckpointError(f"{checkpoint.source}: {answers[0]!r} and {answers[1]!r} must be one token each; name others")
    named: dict[str, Path] = {}
    for path in sorted(checkpoint.path.glob(WEIGHTS[0])):
        with safe_open(path, "pt") as file:
            named |= {key: path for key in file.keys() if key == VOCABULARY or key.endswith("embed_tokens.weight")}  # noqa: SIM118
    if not named:
        raise CheckpointError(
            f"{checkpoint.source} has no {VOCABULARY} to make a head from; give a base model that writes text"
        )
    key = VOCABULARY if VOCABULARY in named else next(iter(named))  # tied: the embeddings are the vocabulary head
    with safe_open(named[key], "pt") as file:
        rows = file.get_slice(key)
        first, second = (rows[tokens[0] : tokens[0] + 1] for tokens in ids)
    return first.float() - second.float()


def _set_head(model: PreTrainedModel, weights: torch.Tensor) -> None:
    with torch.no_grad():
        model.score.weight.copy_(weights)


def warm_start(
    model: PreTrainedModel, source: str, processor: ProcessorMixin, answers: tuple[str, str], revision: str | None
) -> None:
    """Let the head of ``model`` start as :func:`answer_head` of the base that it was loaded from."""
    _set_head(model, answer_head(_find(source, revision), processor, answers))


def _find(source: str, revision: str | None = None, trust_remote_code: bool = False) -> Checkpoint:
    try:
        return fetch(source, revision, (*WEIGHTS, "*.py") if trust_remote_code else WEIGHTS)
    except CheckpointError as error:
        pickled = Path(source).is_dir() and any(True for name in ("*.bin", "*.pt", "*.pth") for _ in Path(source).glob(name))
        why = f"{source} holds pickled weights only, which are never opened; save it as safetensors" if pickled else str(error)
        raise CheckpointError(f"no ProtoScore checkpoint: {why}") from error


def _adapter_config(checkpoint: Checkpoint) -> dict[str, Any] | None:
    path = checkpoint.path / "adapter_config.json"
    if not path.is_file():
        return None
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged ({error})") from error
    if not config.get("base_model_name_or_path"):
        raise CheckpointError(f"{path} does not say which base it belongs to; merge the adapter and load the merged folder")
    return config


def _refuse(source: str, info: dict[str, Any], allowed: set[str]) -> bool:
    """Refuse keys that are missing or left over, by name; whether the head was among the missing that are ``allowed``."""
    missing = {str(key) for key in info["missing_keys"]}
    refuse_keys(source, "missing keys", missing - (allowed & {HEAD}))
    refuse_keys(source, "unexpected keys", {str(key) for key in info["unexpected_keys"]} - (allowed & {VOCABULARY}))
    mismatched = {key if isinstance(key, str) else key[0] for key in info["mismatched_keys"]}
    refuse_keys(source, "mismatched keys", mismatched)
    return HEAD in missing


def _with_adapter(model: PreTrainedModel, checkpoint: Checkpoint, headless: bool) -> PreTrainedModel:
    """``model`` with the adapter of a folder on it; its keys must be all that the adapter's configuration announces."""
    with needs("train"):
        from peft import PeftModel, get_peft_model_state_dict
    try:
        with safe_open(checkpoint.path / "adapter_model.safetensors", "pt") as file:
            there = set(file.keys())
        adapted = PeftModel.from_pretrained(model, checkpoint.path)
    except KeyError as error:
        raise CheckpointError(f"{checkpoint.source}: missing keys: {error.args[0]}; the adapter is not whole") from error
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise CheckpointError(f"{checkpoint.source} holds no adapter that fits its base ({first_line(error)})") from error
    wanted = set(get_peft_model_state_dict(adapted))
    refuse_keys(checkpoint.source, "missing keys", wanted - there)
    refuse_keys(checkpoint.source, "unexpected keys", there - wanted)
    if headless and not any(key.endswith(HEAD) for key in there):
        raise CheckpointError(f"{checkpoint.source}: missing keys: {HEAD}; neither the adapter nor its base has a head")
    return adapted


def _revision(checkpoint: Checkpoint, base: Checkpoint) -> str:
    return checkpoint.revision if base is checkpoint else f"{checkpoint.revision}+{base.revision}"
