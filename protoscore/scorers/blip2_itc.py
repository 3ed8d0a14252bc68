"""BLIP-2's contrastive score (Li et al. 2023, arXiv 2301.12597): the best of 32 views of a picture against a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from protoscore.scorers import Facts, Separable, needs

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

HUB_ID = "Salesforce/blip2-itm-vit-g"


class Blip2Itc(Separable):
    """max over the query tokens of the cosine between picture and text, in [-1, 1]; the learned temperature is left out,
    as it changes no order.
    """

    facts = Facts(
        question="How close is the text to the nearest of 32 views of the picture, in BLIP-2's space?",
        paper="arXiv 2301.12597",
        hub_id=HUB_ID,
        licence="MIT",
        low=-1.0,
        high=1.0,
        weights=1_172_032_258,
    )

    def __init__(
        self, source: str | None = None, revision: str | None = None, device: str | None = None,
        dtype: str = "float32", batch_size: int = 16,
    ):  # fmt: skip
        with needs("models"):
            from protoscore.modeling.blip2 import Blip2
        self._model = Blip2(source or HUB_ID, revision, device, dtype)
        self.name = f"blip2_itc:{source}" if source else "blip2_itc"
        self.revision = self._model.revision
        self.parameters: dict[str, Any] = {**self._model.parameters, "rule": "max over queries of cos"}
        self.batch_size = batch_size

    def encode_images(self, images: Sequence[Image]) -> list[torch.Tensor]:
        import torch

        with torch.inference_mode():
            parts = (images[start : start + self.batch_size] for start in range(0, len(images), self.batch_size))
            return [vectors for part in parts for vectors in self._model.image_vectors(part)]

    def encode_texts(self, texts: Sequence[str]) -> tuple[list[torch.Tensor], list[bool]]:
        import torch

        tokens, cut = self._model.tokens(texts)
        with torch.inference_mode():
            parts = (tokens[start : start + self.batch_size] for start in range(0, len(tokens), self.batch_size))
            return [vector for part in parts for vector in self._model.text_vectors(part)], cut

    def match(self, image_features: Sequence[torch.Tensor], text_features: Sequence[torch.Tensor]) -> list[float]:
        import torch

        views, texts = torch.stack(list(image_features)), torch.stack(list(text_features))
        return torch.einsum("bqd,bd->bq", views, texts).amax(dim=1).tolist()


def create(source: str | None = None, **options: Any) -> Blip2Itc:
    return Blip2Itc(source, **options)
