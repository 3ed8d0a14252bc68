"""ALIGN (Jia et al. 2021, arXiv 2102.05918) as open weights by Kakao Brain. The ProtoBias paper calls it AlignScore."""

from __future__ import annotations

from protoscore.errors import needs
from protoscore.scorers import Facts, protobias_accuracy
from protoscore.scorers._two_tower import TwoTower, named


class Align(TwoTower):
    """The cosine of an EfficientNet picture vector and of BERT's first token, projected. The learned temperature is a
    constant and changes no order, so that it is left out.
    """

    facts = Facts(
        question="How close are picture and text in ALIGN's space?",
        paper="arXiv 2102.05918",
        hub_id="kakaobrain/align-base",
        licence="Apache-2.0",
        low=-1.0,
        high=1.0,
        weights=172_117_841,
        known_bias=protobias_accuracy(0.51, 0.34, 0.32),
    )

    def __init__(
        self, source: str | None = None, revision: str | None = None, device: str | None = None,
        dtype: str = "float32", batch_size: int = 32,
    ):  # fmt: skip
        with needs("models"):
            from protoscore.modeling.towers import Towers
        towers = Towers(
            source or str(self.facts.hub_id), ("align",), revision=revision, device=device, dtype=dtype,
            max_length=64, padding="max_length",
        )  # fmt: skip
        super().__init__(named("align", source), towers, batch_size, "cos")


def create(source: str | None = None, **options) -> Align:
    return Align(source, **options)
