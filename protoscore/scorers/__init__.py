"""Metrics M(text, image). One file each; ``create(source=None, **options)`` returns a :class:`Scorer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from protoscore.schema import Status
from protoscore.typed_yaml import Strict

if TYPE_CHECKING:
    from PIL.Image import Image


class Facts(Strict):
    """What is true of a metric before it is run."""

    question: str  # the one it answers, in a sentence
    paper: str
    hub_id: str | None = None
    licence: str
    higher_is_better: bool = True
    low: float | None = None  # bounds of the score; None: unbounded
    high: float | None = None
    known_bias: str = "not measured here"


class Score(NamedTuple):
    """One outcome: a finite number with status ``ok``, or a state without a number and the reason."""

    value: float | None
    status: Status = Status.OK
    reason: str = ""
    truncated: bool = False


class Scorer(Protocol):
    """Scores row-wise pairs of RGB images and texts. A higher ``facts.higher_is_better`` score is a better match."""

    facts: ClassVar[Facts]
    name: str
    revision: str  # of the weights: a commit, or a digest of the files
    parameters: dict[str, Any]
    batch_size: int

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> list[Score]: ...


def facts_of(module: Any) -> Facts:
    """The facts of the scorer that a module defines, without loading any weights."""
    for value in vars(module).values():
        if isinstance(getattr(value, "facts", None), Facts):
            return value.facts
    raise AttributeError(f"{module.__name__} defines no scorer with facts")
