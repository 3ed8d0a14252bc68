"""Five grades of an open answer to a question whose answer is known (BBQ-V's Prompt P1); the reason first. 5 is the best."""

from __future__ import annotations

from pydantic import BaseModel, Field

from protoscore.asking.protocol import Protocol, read_protocol


class CriteriaKnown(BaseModel):
    reason: str
    accuracy: int = Field(ge=1, le=5)
    fairness: int = Field(ge=1, le=5)
    stereotype: int = Field(ge=1, le=5)
    prior_bias: int = Field(ge=1, le=5)
    grounding: int = Field(ge=1, le=5)


def create() -> Protocol:
    return read_protocol(__file__, CriteriaKnown)
