"""BLIP-2's matching score (Li et al. 2023, arXiv 2301.12597): a classifier that reads picture and text together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from protoscore.batches import batched, paired
from protoscore.scorers import Facts, protobias_accuracy
from protoscore.scorers._blip2 import HUB_ID, Blip2Scorer

if TYPE_CHECKING:
    import torch


class Blip2Itm(Blip2Scorer):
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

    metric, rule = "blip2_itm", "softmax over no match and match"

    def encode_images(self, images: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        import torch

        with torch.inference_mode():
            return [patches for part in batched(images, self.batch_size) for patches in self._model.patches(part)]

    def encode_texts(self, texts: Sequence[str]) -> tuple[list[torch.Tensor], list[bool]]:
        return self._model.tokens(texts)

    def match(self, image_features: Sequence[torch.Tensor], text_features: Sequence[torch.Tensor]) -> list[float]:
        import torch

        values: list[float] = []
        with torch.inference_mode():
            for patches, tokens in paired(image_features, text_features, self.batch_size):
                values += self._model.match_probability(torch.stack(patches), tokens).tolist()
        return values


def create(source: str | None = None, **options: Any) -> Blip2Itm:
    return Blip2Itm(source, **options)
