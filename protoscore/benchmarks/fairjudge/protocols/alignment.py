"""How well a picture fits a description, 1 to 5 (FairJudge, section 3.2.2; reported as (score - 3) / 2)."""

from __future__ import annotations

from pydantic import BaseModel, Field

from protoscore.asking.protocol import Protocol, read_protocol


class Alignment(BaseModel):
    score: int = Field(ge=1, le=5)
    reason: str = ""


def create() -> Protocol:
    return read_protocol(__file__, Alignment)
