"""The friendly face of a ProtoScore checkpoint: load or connect, score, compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from PIL.Image import Image
from transformers import PreTrainedModel, ProcessorMixin

from protoscore.batches import batched, refuse_unequal
from protoscore.modeling.encode import Encoded, encode, lengths
from protoscore.modeling.loading import load
from protoscore.modeling.vision import VisionCache

if TYPE_CHECKING:
    from protoscore.modeling.served import ServedProtoScore

TINY = Path(str(files("protoscore") / "assets" / "protoscore-tiny"))


class ProtoScore:
    """A trained evaluator. Scores are unbounded reals; only their order under one text has meaning."""

    def __init__(self, model: PreTrainedModel, processor: ProcessorMixin, revision: str = "unsaved"):
        self.model = model.eval()
        self.processor = processor
        self.revision = revision

    @classmethod
    def from_pretrained(
        cls,
        source: str | Path | None = None,
        dtype: str | torch.dtype = "float32",
        device_map: Any = None,
        quantization: str | None = None,
        revision: str | None = None,
        trust_remote_code: bool = False,
        answers: tuple[str, str] | None = None,
        **options: Any,
    ) -> ProtoScore:
        """Load a checkpoint from a folder or the Hub; without ``source``, the tiny one that ships with the package.

        Args:
            source: a whole checkpoint, or a PEFT adapter, whose base is then found by the name in its configuration.
            dtype: of weights and arithmetic.
            device_map: as in transformers; without one the first GPU is used, or the CPU where there is none.
            quantization: ``"nf4"`` loads the language model in four bits (bitsandbytes); head and vision tower stay whole.
            revision: branch, tag or commit of the Hub.
            trust_remote_code: run Python files of the repository. Checkpoints of this package do not need it here.
            answers: take a base model without a head as it is; the score is then the logit of the first answer minus that of
                the second, e.g. ``("yes", "no")`` for Qwen3-VL-Reranker. A baseline, no trained evaluator.
            options: handed to ``AutoModelForSequenceClassification.from_pretrained``, e.g. ``attn_implementation="eager"``.

        Raises:
            CheckpointError: nothing loadable is there, or weights are missing or left over; they are named.
        """
        return cls(*load(str(source or TINY), dtype, device_map, quantization, revision, trust_remote_code, answers, **options))

    @staticmethod
    def connect(base_url: str, model: str | None = None, api_key: str | None = None, **options: Any) -> ServedProtoScore:
        """The same, against a vLLM pooling server; see :class:`protoscore.modeling.served.ServedProtoScore`."""
        from protoscore.modeling.served import ServedProtoScore

        return ServedProtoScore(base_url, model, api_key, **options)

    def score(self, images: Sequence[Image], texts: Sequence[str], batch_size: int = 64) -> list[float]:
        """Scores of row-wise pairs, higher is better.

        Pairs are sorted by their number of tokens first, so that little is padded, and the next batch is decoded while the
        model works on this one. A picture that comes with several texts of a batch goes through the vision tower once. How
        pairs are batched moves a score by rounding only (below 1e-4 in float32).

        Args:
            images: PIL images of any size and mode; ``protoscore.modeling.encode`` says what becomes of which.
            texts: as many texts; one is cut at 192 tokens.

        Raises:
            ImageError: a picture cannot be used.
        """
        refuse_unequal(images, texts)
        size = lengths(self.processor, images, texts)
        order = sorted(range(len(texts)), key=size.__getitem__, reverse=True)  # the largest first: no surprise at the end
        batches = list(batched(order, batch_size))
        scores = [0.0] * len(texts)
        for batch, encoded in zip(batches, self._encoded(images, texts, batches), strict=True):
            for position, value in zip(batch, self._forward(encoded), strict=True):
                scores[position] = value
        return scores

    def compare(self, text: str, image_a: Image, image_b: Image) -> float:
        """How much better ``image_a`` matches ``text`` than ``image_b``: the difference of their scores."""
        first, second = self.score([image_a, image_b], [text, text])
        return first - second

    def score_batch(self, images: Sequence[Image], texts: Sequence[str]) -> tuple[list[float], list[bool]]:
        """Scores of one batch as it is, and which texts were cut."""
        encoded = encode(self.processor, images, texts)
        return self._forward(encoded), encoded.truncated

    def merge(self) -> ProtoScore:
        """Work an adapter into the weights, so that saving writes a whole checkpoint. Without one, nothing changes."""
        if hasattr(self.model, "merge_and_unload"):
            self.model = self.model.merge_and_unload()
        return self

    def save_pretrained(self, folder: str | Path) -> None:
        """Write model (or adapter) and processor as a checkpoint (safetensors)."""
        self.model.save_pretrained(folder)
        self.processor.save_pretrained(folder)

    def _encoded(self, images: Sequence[Image], texts: Sequence[str], batches: list[list[int]]) -> Iterator[Encoded]:
        with ThreadPoolExecutor(1, thread_name_prefix="encode") as pool:
            pending: Any = None
            for batch in batches:
                coming = pool.submit(encode, self.processor, [images[i] for i in batch], [texts[i] for i in batch], batch)
                if pending is not None:
                    yield pending.result()
                pending = coming
            if pending is not None:
                yield pending.result()

    @torch.inference_mode()
    def _forward(self, encoded: Encoded) -> list[float]:
        inputs: Any = encoded.inputs.to(self.model.device)
        if len(set(encoded.pictures)) < len(encoded.pictures):
            inputs = VisionCache().look(self.model, inputs, encoded.pictures)
        logits = self.model(**inputs, use_cache=False).logits
        return logits[:, 0].float().tolist()
