"""Whether a generated picture shows its own description, 1 to 10; 8 and more is kept (ProtoBias, section 4.2)."""

from __future__ import annotations

from pydantic import BaseModel, Field

from protoscore.asking.protocol import Protocol, read_protocol


class Fit(BaseModel):
    score: int = Field(ge=1, le=10)
    reason: str = ""


def create() -> Protocol:
    return read_protocol(__file__, Fit)
