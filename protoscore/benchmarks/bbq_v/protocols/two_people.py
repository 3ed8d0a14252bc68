"""A question about two people in a picture that may have no answer there (BBQ-V's multiple-choice form, Prompt P15)."""

from __future__ import annotations

from pydantic import BaseModel

from protoscore.asking.fields import OneOf
from protoscore.asking.protocol import Protocol, read_protocol


class TwoPeople(BaseModel):
    answer: OneOf
    reason: str = ""


def create() -> Protocol:
    return read_protocol(__file__, TwoPeople)
