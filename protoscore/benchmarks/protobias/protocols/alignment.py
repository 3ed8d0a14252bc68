"""Text-image alignment on the five-step rubric (FairJudge, section 3.2.2), asked about ProtoBias's neutral texts."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from protoscore.judging.protocol import Protocol, read_protocol


class Alignment(BaseModel):
    """``alignment``: 1 nothing matches, 5 everything does. ``reason``: what was seen, for audit."""

    alignment: Annotated[int, Field(ge=1, le=5)]
    reason: str = ""


def rescaled(alignment: int) -> float:
    """The rubric on the scale of a cosine: 1 -> -1, 3 -> 0, 5 -> 1 (FairJudge, section 3.2.2)."""
    return (alignment - 3) / 2


def create() -> Protocol:
    return read_protocol(__file__, Alignment)
