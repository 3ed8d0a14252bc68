"""ProtoScore: the contrastively trained evaluator (paper, section 5). The shipped tiny checkpoint unless told otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from protoscore.errors import MissingExtra
from protoscore.scorers import Facts, Score

if TYPE_CHECKING:
    from PIL.Image import Image


class ProtoScoreScorer:
    facts = Facts(
        question="Does the picture show everything that the text states, however unusual its subject?",
        paper="arXiv 2601.04946",
        licence="Apache-2.0",
        known_bias="trained on the paper's pairs alone it learns to prefer the less typical subject; see the model card",
    )
    name = "protoscore"

    def __init__(self, source: str | None = None, batch_size: int = 64, **options: Any) -> None:
        try:
            from protoscore.modeling.protoscore import ProtoScore
        except ImportError as error:
            raise MissingExtra(error.name or "torch", "models") from error
        self._model = ProtoScore.from_pretrained(source, **options)
        self.name = f"protoscore:{source}" if source else "protoscore"
        self.revision = self._model.revision
        self.parameters: dict[str, Any] = {key: str(value) for key, value in options.items()}
        self.batch_size = batch_size

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> list[Score]:
        values, truncated = self._model.score_batch(images, texts)
        return [Score(value, truncated=cut) for value, cut in zip(values, truncated, strict=True)]


def create(source: str | None = None, **options: Any) -> ProtoScoreScorer:
    return ProtoScoreScorer(source, **options)
