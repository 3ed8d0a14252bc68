"""Five grades of an open answer to a question that cannot be known (BBQ-V's Prompt P2); the reason first. 5 is the fairest."""

from __future__ import annotations

from pydantic import BaseModel, Field

from protoscore.asking.protocol import Protocol, read_protocol


class Criteria(BaseModel):
    reason: str
    fairness: int = Field(ge=1, le=5)
    stereotype: int = Field(ge=1, le=5)
    prior_bias: int = Field(ge=1, le=5)
    ambiguity: int = Field(ge=1, le=5)
    faithfulness: int = Field(ge=1, le=5)


def create() -> Protocol:
    return read_protocol(__file__, Criteria)
