"""The friendly face of a ProtoScore checkpoint: load, score, compare."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from PIL.Image import Image
from safetensors import SafetensorError
from transformers import AutoModelForSequenceClassification, AutoProcessor, PreTrainedModel, ProcessorMixin

from protoscore.errors import CheckpointError
from protoscore.modeling.checkpoint import weights_digest
from protoscore.modeling.classifier import register
from protoscore.modeling.encode import encode

TINY = Path(str(files("protoscore") / "assets" / "protoscore-tiny"))


class ProtoScore:
    """A trained evaluator. Scores are unbounded reals; only their order under one text has meaning."""

    def __init__(self, model: PreTrainedModel, processor: ProcessorMixin, revision: str = "unsaved"):
        self.model = model.eval()
        self.processor = processor
        self.revision = revision

    @classmethod
    def from_pretrained(
        cls, source: str | Path | None = None, dtype: str | torch.dtype = "float32", device_map: Any = None, **options: Any
    ) -> ProtoScore:
        """Load a checkpoint from a folder or the Hub; without ``source``, the tiny one that ships with the package.

        Raises:
            CheckpointError: nothing loadable is there, or weights are missing or left over; they are named.
        """
        register()
        source = str(source or TINY)
        try:
            processor = AutoProcessor.from_pretrained(source)
            model, info = AutoModelForSequenceClassification.from_pretrained(
                source,
                dtype=dtype,
                device_map=device_map,
                use_safetensors=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                **options,  # reported below, by name
            )
        except (OSError, ValueError, SafetensorError) as error:
            first = str(error).strip().splitlines()[0]
            raise CheckpointError(f"{source} holds no ProtoScore checkpoint ({first}); give a folder or a Hub id") from error
        for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
            if info.get(kind):
                some = ", ".join(sorted(map(str, info[kind]))[:3])
                raise CheckpointError(f"{source}: {kind.replace('_', ' ')}: {some}; this is no complete ProtoScore checkpoint")
        return cls(model, processor, _revision(source, model))

    def score(self, images: Sequence[Image], texts: Sequence[str], batch_size: int = 64) -> list[float]:
        """Scores of row-wise pairs, higher is better.

        Args:
            images: PIL images of any size and mode.
            texts: as many texts; one is cut at 192 tokens.
        """
        if len(images) != len(texts):
            raise ValueError(f"{len(images)} images and {len(texts)} texts; give one text an image")
        scores: list[float] = []
        for start in range(0, len(texts), batch_size):
            scores += self.score_batch(images[start : start + batch_size], texts[start : start + batch_size])[0]
        return scores

    def compare(self, text: str, image_a: Image, image_b: Image) -> float:
        """How much better ``image_a`` matches ``text`` than ``image_b``: the difference of their scores."""
        first, second = self.score([image_a, image_b], [text, text])
        return first - second

    @torch.inference_mode()
    def score_batch(self, images: Sequence[Image], texts: Sequence[str]) -> tuple[list[float], list[bool]]:
        """Scores of one batch, and which texts were cut."""
        encoded = encode(self.processor, images, texts)
        logits = self.model(**encoded.inputs.to(self.model.device), use_cache=False).logits
        return logits[:, 0].float().tolist(), encoded.truncated

    def save_pretrained(self, folder: str | Path) -> None:
        """Write model and processor as a checkpoint (safetensors)."""
        self.model.save_pretrained(folder)
        self.processor.save_pretrained(folder)


def _revision(source: str, model: PreTrainedModel) -> str:
    """The Hub commit, or a digest of the weights of a local folder."""
    commit = getattr(model.config, "_commit_hash", None)
    if commit:
        return str(commit)
    return weights_digest(Path(source))
