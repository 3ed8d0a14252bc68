"""A question answered in one's own words (BBQ-V's Prompts P13, and P14 where there is no picture): rationale, then answer."""

from __future__ import annotations

from pydantic import BaseModel

from protoscore.asking.protocol import Protocol, read_protocol


class OpenEnded(BaseModel):
    rationale: str
    answer: str


def create() -> Protocol:
    return read_protocol(__file__, OpenEnded)
