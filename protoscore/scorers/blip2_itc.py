"""BLIP-2's contrastive score (Li et al. 2023, arXiv 2301.12597): the best of 32 views of a picture against a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from protoscore.batches import batched
from protoscore.scorers import Facts
from protoscore.scorers._blip2 import HUB_ID, Blip2Scorer

if TYPE_CHECKING:
    import torch


class Blip2Itc(Blip2Scorer):
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

    metric, rule = "blip2_itc", "max over queries of cos"

    def encode_images(self, images: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        import torch

        with torch.inference_mode():
            return [vectors for part in batched(images, self.batch_size) for vectors in self._model.image_vectors(part)]

    def encode_texts(self, texts: Sequence[str]) -> tuple[list[torch.Tensor], list[bool]]:
        import torch

        tokens, cut = self._model.tokens(texts)
        with torch.inference_mode():
            return [vector for part in batched(tokens, self.batch_size) for vector in self._model.text_vectors(part)], cut

    def match(self, image_features: Sequence[torch.Tensor], text_features: Sequence[torch.Tensor]) -> list[float]:
        import torch

        views, texts = torch.stack(list(image_features)), torch.stack(list(text_features))
        return torch.einsum("bqd,bd->bq", views, texts).amax(dim=1).tolist()


def create(source: str | None = None, **options: Any) -> Blip2Itc:
    return Blip2Itc(source, **options)
