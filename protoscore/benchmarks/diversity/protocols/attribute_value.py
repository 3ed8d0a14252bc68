"""Which value of an attribute one picture shows, from a list: what counts, coverage and entropy can be made of."""

from __future__ import annotations

from pydantic import BaseModel

from protoscore.asking.fields import OneOf
from protoscore.asking.protocol import Protocol, read_protocol


class Value(BaseModel):
    value: OneOf
    reason: str = ""


def create() -> Protocol:
    return read_protocol(__file__, Value)
