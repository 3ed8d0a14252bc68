"""ProtoScore: the contrastively trained evaluator (paper, section 5). The shipped tiny checkpoint unless told otherwise.

``protoscore:FOLDER_OR_HUB_ID`` takes other weights (whole or an adapter), ``protoscore:http://HOST:PORT`` a vLLM pooling
server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from protoscore.scorers import Facts, Score, needs

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
        with needs("models"):
            from protoscore.modeling.protoscore import ProtoScore
        self._model = ProtoScore.from_pretrained(source, **options)
        self.name = f"protoscore:{source}" if source else "protoscore"
        self.revision = self._model.revision
        self.parameters: dict[str, Any] = {key: str(value) for key, value in options.items()}
        self.batch_size = batch_size

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> list[Score]:
        values, truncated = self._model.score_batch(images, texts)
        return [Score(value, truncated=cut) for value, cut in zip(values, truncated, strict=True)]


class ServedProtoScoreScorer:
    """The same from a server. What it has loaded is known by its served name only: give new weights a new name."""

    facts = ProtoScoreScorer.facts

    def __init__(self, source: str, batch_size: int = 64, **options: Any) -> None:
        from protoscore.modeling.served import ServedProtoScore

        self._model = ServedProtoScore(source, **options)
        self.name = f"protoscore:{source}"
        self.revision = self._model.revision
        self.parameters: dict[str, Any] = {}
        self.batch_size = batch_size

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> list[Score]:
        return self._model.score_states(images, texts)


def create(source: str | None = None, **options: Any) -> ProtoScoreScorer | ServedProtoScoreScorer:
    if source and source.startswith(("http://", "https://")):
        return ServedProtoScoreScorer(source, **options)
    return ProtoScoreScorer(source, **options)
