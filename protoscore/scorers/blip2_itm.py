"""BLIP-2's matching score (Li et al. 2023, arXiv 2301.12597): a classifier that reads picture and text together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from protoscore.scorers import Facts, Separable, needs, protobias_accuracy

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

HUB_ID = "Salesforce/blip2-itm-vit-g"


class Blip2Itm(Separable):
    """P(match) in [0, 1]: softmax of the two logits, which are means over the query tokens.

    The vision tower runs once a picture; the Q-Former once a pair.
    """

    facts = Facts(
        question="Would BLIP-2 say that picture and text belong together?",
        paper="arXiv 2301.12597",
        hub_id=HUB_ID,
        licence="MIT",
        low=0.0,
        high=1.0,
        weights=1_172_032_258,
        known_bias=protobias_accuracy(0.33, 0.39, 0.43) + ", for a BLIP-2 that the paper does not name exactly",
    )

    def __init__(
        self, source: str | None = None, revision: str | None = None, device: str | None = None,
        dtype: str = "float32", batch_size: int = 16,
    ):  # fmt: skip
        with needs("models"):
            from protoscore.modeling.blip2 import Blip2
        self._model = Blip2(source or HUB_ID, revision, device, dtype)
        self.name = f"blip2_itm:{source}" if source else "blip2_itm"
        self.revision = self._model.revision
        self.parameters: dict[str, Any] = {**self._model.parameters, "rule": "softmax over no match and match"}
        self.batch_size = batch_size

    def encode_images(self, images: Sequence[Image]) -> list[torch.Tensor]:
        import torch

        with torch.inference_mode():
            parts = (images[start : start + self.batch_size] for start in range(0, len(images), self.batch_size))
            return [patches for part in parts for patches in self._model.patches(part)]

    def encode_texts(self, texts: Sequence[str]) -> tuple[list[torch.Tensor], list[bool]]:
        return self._model.tokens(texts)

    def match(self, image_features: Sequence[torch.Tensor], text_features: Sequence[torch.Tensor]) -> list[float]:
        import torch

        values: list[float] = []
        with torch.inference_mode():
            for start in range(0, len(text_features), self.batch_size):
                part = slice(start, start + self.batch_size)
                patches = torch.stack(list(image_features[part]))
                values += self._model.match_probability(patches, text_features[part]).tolist()
        return values


def create(source: str | None = None, **options: Any) -> Blip2Itm:
    return Blip2Itm(source, **options)
