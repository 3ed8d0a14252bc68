"""What every room shares: how a measurement ended, and names and seeds that depend on values only."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from numbers import Real
from typing import Any, NamedTuple


class Status(StrEnum):
    """What became of a measurement. Only ``OK`` carries a number; the others are counted beside every mean."""

    OK = "ok"
    ABSTAINED = "abstained"
    UNMAPPED = "unmapped"  # an answer in words that the closed set does not have
    INVALID = "invalid"
    REFUSED = "refused"
    ERROR = "error"


class Score(NamedTuple):
    """One outcome: a finite number with status ``ok``, or a state without a number and the reason."""

    value: float | None
    status: Status = Status.OK
    reason: str = ""
    truncated: bool = False


def number(value: Any) -> float:
    """A score as a float, from a number of Python, numpy or torch.

    Raises:
        TypeError: it is something else. Text and booleans can be read as numbers, but nobody measured those.
    """
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, bool) or not isinstance(plain, Real):
        raise TypeError(f"{value!r:.60} ({type(value).__name__}) is not a number")
    return float(plain)


def content_id(*parts: object, length: int = 12) -> str:
    """A short stable name for a tuple of values: the same parts give the same id on every machine."""
    return hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=length // 2).hexdigest()


def derive_seed(*parts: object) -> int:
    """A seed in [0, 2**63) that depends on the values of ``parts`` only."""
    return int(content_id(*parts, length=16), 16) >> 1
