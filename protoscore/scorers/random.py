"""A floor: a uniform score drawn from the content of the pair, so that it is the same on every machine and in any order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from protoscore.scorers import Facts, Score

if TYPE_CHECKING:
    from PIL.Image import Image


class Random:
    facts = Facts(
        question="What does a metric get that guesses?",
        paper="none",
        licence="Apache-2.0",
        low=0.0,
        high=1.0,
        known_bias="none: every accuracy is 0.5 in expectation",
    )
    name, revision, batch_size = "random", "1", 256

    def __init__(self, seed: int = 0) -> None:
        self.parameters: dict[str, Any] = {"seed": seed}

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> list[Score]:
        return [Score(self._draw(image, text)) for image, text in zip(images, texts, strict=True)]

    def _draw(self, image: Image, text: str) -> float:
        key = hashlib.blake2b(f"{self.parameters['seed']}\x1f{text}\x1f".encode(), digest_size=8)
        key.update(image.tobytes())
        return int.from_bytes(key.digest(), "big") / 2**64


def create(seed: int = 0) -> Random:
    return Random(seed)
