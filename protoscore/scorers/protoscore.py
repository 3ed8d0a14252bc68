"""ProtoScore: the contrastively trained evaluator (paper, section 5). The shipped tiny checkpoint unless told otherwise.

``protoscore:FOLDER_OR_HUB_ID`` takes other weights (whole or an adapter), ``protoscore:http://HOST:PORT`` a vLLM pooling
server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from protoscore.errors import needs
from protoscore.scorers import Facts, Score

if TYPE_CHECKING:
    from PIL.Image import Image


class ProtoScoreScorer:
    """What is not given is as in :meth:`protoscore.modeling.protoscore.ProtoScore.from_pretrained`.

    Args:
        answers: two words, as in ``yes,no``.
    """

    facts = Facts(
        question="Does the picture show everything that the text states, however unusual its subject?",
        paper="arXiv 2601.04946",
        licence="Apache-2.0",
        known_bias="trained on the paper's pairs alone it learns to prefer the less typical subject; see the model card",
    )
    name = "protoscore"

    def __init__(
        self, source: str | None = None, batch_size: int = 64, dtype: str | None = None, device_map: str | None = None,
        quantization: str | None = None, revision: str | None = None, answers: str | tuple[str, str] | None = None,
        attn_implementation: str | None = None, trust_remote_code: bool | None = None,
    ) -> None:  # fmt: skip
        with needs("models"):
            from protoscore.modeling.protoscore import ProtoScore
        given = {
            "dtype": dtype, "device_map": device_map, "quantization": quantization, "revision": revision,
            "answers": tuple(answers.split(",")) if isinstance(answers, str) else answers,
            "attn_implementation": attn_implementation, "trust_remote_code": trust_remote_code,
        }  # fmt: skip
        options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        self._model = ProtoScore.from_pretrained(source, **options)
        self.name = f"protoscore:{source}" if source else "protoscore"
        self.revision = self._model.revision
        self.parameters: dict[str, Any] = {key: str(value) for key, value in options.items()}
        self.batch_size = batch_size
        if source is None:  # the one that ships; what others were trained on is theirs to say
            self.facts = self.facts.model_copy(update={"trained_on": "drawn scenes", "licence": "CC BY-SA 4.0"})

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> list[Score]:
        values, truncated = self._model.score_batch(images, texts)
        return [Score(value, truncated=cut) for value, cut in zip(values, truncated, strict=True)]


class ServedProtoScoreScorer:
    """The same from a server. What it has loaded is known by its served name only: give new weights a new name."""

    facts = ProtoScoreScorer.facts

    def __init__(
        self, source: str, batch_size: int = 64, model: str | None = None, concurrency: int = 16, timeout: float = 120.0
    ):  # fmt: skip
        from protoscore.modeling.served import ServedProtoScore

        self._model = ServedProtoScore(source, model, concurrency=concurrency, timeout=timeout)
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
