"""A floor: the same score for everything. Ties are failures, so its accuracies are 0 and its preference is 0.5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from protoscore.scorers import Facts, Score

if TYPE_CHECKING:
    from PIL.Image import Image


class Constant:
    facts = Facts(
        question="What does a metric get that sees nothing and says so?",
        paper="none",
        licence="Apache-2.0",
        low=0.5,
        high=0.5,
        known_bias="none: it cannot prefer anything",
    )
    name, revision, batch_size = "constant", "1", 1024

    def __init__(self) -> None:
        self.parameters: dict[str, Any] = {}

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> list[Score]:
        return [Score(0.5) for _ in texts]


def create() -> Constant:
    return Constant()
