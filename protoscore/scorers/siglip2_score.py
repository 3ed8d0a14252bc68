"""SigLIP 2 (Tschannen et al. 2025, arXiv 2502.14786): the probability that a text belongs to a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from protoscore.errors import needs
from protoscore.scorers import Facts
from protoscore.scorers._two_tower import TwoTower, named

if TYPE_CHECKING:
    import torch


class Siglip2Score(TwoTower):
    """sigmoid(exp(s) cos + b) with the learned scale and bias. Takes the checkpoints of fixed resolution and NaFlex.

    As in training, texts are lower-case, padded to 64 tokens, and the padding is not masked.
    """

    facts = Facts(
        question="How probable is it that picture and text belong together?",
        paper="arXiv 2502.14786",
        hub_id="google/siglip2-base-patch16-224",
        licence="Apache-2.0",
        low=0.0,
        high=1.0,
        weights=375_187_970,
    )

    def __init__(
        self, source: str | None = None, revision: str | None = None, device: str | None = None,
        dtype: str = "float32", batch_size: int = 32,
    ):  # fmt: skip
        with needs("models"):
            from protoscore.modeling.towers import Towers
        towers = Towers(
            source or str(self.facts.hub_id), ("siglip", "siglip2"), revision=revision, device=device, dtype=dtype,
            max_length=64, padding="max_length", attend=False,
        )  # fmt: skip
        self._scale = towers.model.logit_scale.detach().double().exp().item()
        self._bias = towers.model.logit_bias.detach().double().item()
        super().__init__(named("siglip2_score", source), towers, batch_size, "sigmoid(exp(logit_scale) * cos + logit_bias)")
        self.parameters["lower_case"] = True

    def encode_texts(self, texts: Sequence[str]) -> tuple[list[torch.Tensor], list[bool]]:
        return super().encode_texts([text.lower() for text in texts])

    def _from_cosine(self, cosines: torch.Tensor) -> torch.Tensor:
        return (self._scale * cosines + self._bias).sigmoid()


def create(source: str | None = None, **options) -> Siglip2Score:
    return Siglip2Score(source, **options)
