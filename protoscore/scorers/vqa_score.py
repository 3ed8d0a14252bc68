"""VQAScore (Lin et al. 2024, arXiv 2404.01291): how likely a model answers Yes to "does this figure show that text?"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from protoscore.batches import paired
from protoscore.errors import ConfigError, needs
from protoscore.scorers import Facts, Score, protobias_accuracy, split_variant

if TYPE_CHECKING:
    from PIL.Image import Image

    from protoscore.modeling.yes_no import Answer

HUB_ID = "zhiqiulin/clip-flant5-xxl"
VARIANTS = ("published", "p_yes", "p_yes_no")


class VqaScore:
    """A probability in [0, 1], from one forward pass and raw logits.

    ``published``: what the authors' code gives: for CLIP-FlanT5 the geometric mean of P(Yes) and of P(end) after it, for chat
    models P(Yes) among the whole vocabulary. ``p_yes``: P(Yes) for both. ``p_yes_no``: P(Yes) / (P(Yes) + P(No)). Numbers of
    different models or variants must not be compared.

    Args:
        source: folder or Hub id of CLIP-FlanT5 or of any image-text-to-text model with a chat template.
        question: with one ``{}`` for the text; the authors' wording for the kind of model if None.
        tokenizer: folder or Hub id, for CLIP-FlanT5 where ``source`` has none.
        tower: folder or Hub id of CLIP, for CLIP-FlanT5 where it is not what its configuration names.
    """

    facts = Facts(
        question="Would a vision-language model say that the picture shows the text?",
        paper="arXiv 2404.01291",
        hub_id=HUB_ID,
        licence="Apache-2.0",
        low=0.0,
        high=1.0,
        variants=VARIANTS,
        weights=11_459_819_520,
        known_bias=protobias_accuracy(0.51, 0.47, 0.55) + ", with CLIP-FlanT5-XXL",
    )

    def __init__(
        self, source: str | None = None, variant: str | None = None, question: str | None = None,
        tokenizer: str | None = None, tower: str | None = None, revision: str | None = None,
        device: str | None = None, dtype: str = "float32", batch_size: int = 8,
    ):  # fmt: skip
        self.name = ":".join(part for part in ("vqa_score", variant, source) if part)
        if variant is None:
            variant, source = split_variant(source, VARIANTS)
        if variant not in VARIANTS:
            raise ConfigError(f"variant {variant!r} is none of {', '.join(VARIANTS)}")
        if question is not None and question.count("{}") != 1:
            raise ConfigError(f"question {question!r} must hold {{}} once, for the text")
        with needs("models"):
            from protoscore.modeling.checkpoint import fetch
            from protoscore.modeling.records import config_of
            from protoscore.modeling.yes_no import ChatYesNo, ClipT5YesNo
        checkpoint = fetch(source or HUB_ID, revision)
        if config_of(checkpoint).get("model_type") == "clip_t5":
            self._model: Any = ClipT5YesNo(checkpoint, device, dtype, tokenizer, tower)
        else:
            self._model = ChatYesNo(checkpoint, device, dtype)
        self._question, self._variant = question or self._model.default_question, variant
        self.revision = checkpoint.revision
        self.parameters: dict[str, Any] = {**self._model.parameters, "question": self._question, "variant": variant}
        self.batch_size = batch_size

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> list[Score]:
        scores: list[Score] = []
        for some, theirs in paired(images, texts, self.batch_size):
            answers, cuts = self._model.ask(some, theirs, self._question)
            values = [value(answer, self._variant) for answer in answers]
            scores += [Score(each, truncated=was_cut) for each, was_cut in zip(values, cuts, strict=True)]
        return scores


def value(answer: Answer, variant: str) -> float:
    """The score of an answer, see :class:`VqaScore`."""
    if variant == "p_yes_no":
        return 0.5 + 0.5 * math.tanh((answer.yes - answer.no) / 2)  # the sigmoid of the difference, without overflow
    if variant == "p_yes" or answer.end is None:
        return math.exp(answer.yes)
    return math.exp((answer.yes + answer.end) / 2)


def create(source: str | None = None, **options: Any) -> VqaScore:
    return VqaScore(source, **options)
