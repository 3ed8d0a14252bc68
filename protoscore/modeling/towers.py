"""Models with one tower for pictures and one for texts: both give unit vectors, and a metric is a function of their cosine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import torch
from PIL import Image
from transformers import AutoConfig, AutoImageProcessor, AutoModel, AutoTokenizer, BatchFeature

from protoscore.errors import CheckpointError, first_line
from protoscore.modeling.checkpoint import Checkpoint, fetch, load_model
from protoscore.modeling.pixels import middle

_HERE = {"local_files_only": True, "trust_remote_code": False}


class Towers:
    """A CLIP-like checkpoint in the transformers format.

    Pictures go through the checkpoint's own image processor in its Pillow form, which is the one that the published scores
    were made with; the tensor form rounds differently. A special token that is spelled out in a text is text.

    Args:
        source: folder or Hub id of the weights.
        kinds: accepted ``model_type`` values of its configuration.
        processor: folder or Hub id of tokenizer and image processor, where it is not ``source``.
        max_length: tokens at most, with the special ones; the closing token survives a cut.
        padding: True pads to the longest text of a batch, ``"max_length"`` always to the limit.
        attend: hand the padding mask to the text tower.

    Raises:
        CheckpointError: the checkpoint is missing, incomplete or of another kind.
    """

    def __init__(
        self, source: str, kinds: Sequence[str], processor: str | None = None, revision: str | None = None,
        device: str | None = None, dtype: str = "float32",
        max_length: int = 77, padding: bool | str = True, attend: bool = True,
    ):  # fmt: skip
        checkpoint = fetch(source, revision)
        processing = fetch(processor, files=("*.json",)) if processor else checkpoint
        self.image_processor, self.tokenizer = _processing(checkpoint, processing, kinds)
        self.model = load_model(AutoModel, checkpoint, dtype, device)
        self.revision = checkpoint.revision
        self._text = {"max_length": max_length, "padding": padding}
        self._inputs = ("input_ids", "attention_mask") if attend else ("input_ids",)
        self.parameters: dict[str, Any] = {
            "dtype": dtype, "max_length": max_length, "padding": padding, "attend": attend,
            "resize": _resize_rule(self.image_processor), "processor": _digest(self.image_processor, self.tokenizer),
        }  # fmt: skip

    def prepare(self, image: Image.Image) -> dict[str, torch.Tensor]:
        """The vision tower's inputs for one picture of any size and mode, each with a first dimension of one."""
        return dict(self.image_processor(images=[middle(image.convert("RGB"))], return_tensors="pt"))

    @torch.inference_mode()
    def images(self, prepared: Sequence[dict[str, torch.Tensor]]) -> torch.Tensor:
        """Unit vectors of prepared pictures, (n, d) in float32."""
        inputs = BatchFeature({name: torch.cat([each[name] for each in prepared]) for name in prepared[0]})
        return unit(self.model.get_image_features(**inputs.to(self.model.device, self.model.dtype)))

    @torch.inference_mode()
    def texts(self, texts: Sequence[str]) -> tuple[torch.Tensor, list[bool]]:
        """Unit vectors of texts, (n, d) in float32, and which texts were cut."""
        encoded = self.tokenizer(
            list(texts), truncation=True, padding_side="right", split_special_tokens=True, return_tensors="pt", **self._text
        )
        inputs = {name: encoded[name].to(self.model.device) for name in self._inputs}
        return unit(self.model.get_text_features(**inputs)), [bool(each.overflowing) for each in encoded.encodings]


def unit(features: Any) -> torch.Tensor:
    """Projected features as float32 vectors of length one; a zero vector becomes NaN and thereby no number."""
    features = getattr(features, "pooler_output", features).float()  # a plain tensor before transformers 5
    return features / features.norm(dim=-1, keepdim=True)


def _processing(checkpoint: Checkpoint, processing: Checkpoint, kinds: Sequence[str]) -> tuple[Any, Any]:
    try:
        config = AutoConfig.from_pretrained(checkpoint.path, **_HERE)
        image_processor = AutoImageProcessor.from_pretrained(processing.path, backend="pil", **_HERE)
        tokenizer = AutoTokenizer.from_pretrained(processing.path, **_HERE)
    except (OSError, ValueError) as error:
        message = f"{processing.source} misses its configuration, tokenizer or image processor ({first_line(error)})"
        raise CheckpointError(message) from error
    if config.model_type not in kinds:
        raise CheckpointError(
            f"{checkpoint.source} holds a {config.model_type!r} model; this metric needs {' or '.join(kinds)}"
        )
    # CLIP reads a text off at its closing token; 2 stands for the highest id in configurations from before 2023.
    if config.model_type == "clip" and config.text_config.eos_token_id not in (2, tokenizer.eos_token_id):
        raise CheckpointError(f"{checkpoint.source}: model and tokenizer close a text with different tokens")
    return image_processor, tokenizer


def _resize_rule(image_processor: Any) -> str:
    """How pictures are brought to size, e.g. ``size shortest_edge 224, crop_size height 224 width 224, bicubic, pillow``."""
    rules = image_processor.to_dict()
    used = ["size", "patch_size", "max_num_patches"] + ["crop_size"] * bool(rules.get("do_center_crop"))
    parts = [f"{key} {_words(rules[key])}" for key in used if rules.get(key)]
    return ", ".join([*parts, Image.Resampling(image_processor.resample).name.lower(), "pillow"])


def _words(value: Any) -> str:
    return " ".join(f"{key} {side}" for key, side in sorted(value.items()) if side) if isinstance(value, dict) else str(value)


def _digest(image_processor: Any, tokenizer: Any) -> str:
    """A name for everything that is done before the towers: another tokenizer or crop has another one."""
    rules = json.dumps(image_processor.to_dict(), sort_keys=True, default=str)
    return hashlib.sha256(f"{rules}{tokenizer.backend_tokenizer.to_str()}".encode()).hexdigest()[:12]
