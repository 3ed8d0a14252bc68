"""Whether a picture shows what a neutral text says, 1 to 4: the LLM judge that ProtoBias compares metrics with (Table 21)."""

from __future__ import annotations

from pydantic import BaseModel, Field

from protoscore.asking.protocol import Protocol, read_protocol


class Rubric(BaseModel):
    score: int = Field(ge=1, le=4)
    reason: str = ""


def create() -> Protocol:
    return read_protocol(__file__, Rubric)
