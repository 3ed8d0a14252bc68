"""A question with options of its own, one of which is that it cannot be known (BBQ-V's Prompt P15): reason, then answer."""

from __future__ import annotations

from pydantic import BaseModel

from protoscore.asking.fields import OneOf
from protoscore.asking.protocol import Protocol, read_protocol


class MultipleChoice(BaseModel):
    reason: str
    answer: OneOf


def create() -> Protocol:
    return read_protocol(__file__, MultipleChoice)
