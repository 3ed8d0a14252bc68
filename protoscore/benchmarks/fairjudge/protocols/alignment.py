"""How well a picture fits a description, 1 to 5 (FairJudge, section 3.2.2; reported as (score - 3) / 2)."""

from __future__ import annotations

from pydantic import BaseModel, Field

from protoscore.asking.protocol import Protocol, read_protocol


class Alignment(BaseModel):
    score: int = Field(ge=1, le=5)
    reason: str = ""


def rescaled(score: int) -> float:
    """The grade on the scale of a cosine: 1 -> -1, 3 -> 0, 5 -> 1."""
    return (score - 3) / 2


def create() -> Protocol:
    return read_protocol(__file__, Alignment)
