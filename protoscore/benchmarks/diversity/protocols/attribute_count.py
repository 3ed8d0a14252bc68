"""How many values of a named attribute a set of pictures shows: the question that human raters answer best."""

from __future__ import annotations

from pydantic import BaseModel, Field

from protoscore.asking.protocol import Protocol, read_protocol


class Distinct(BaseModel):
    values: str = ""  # named before they are counted, which can be checked
    count: int = Field(ge=0, le=24)


def create() -> Protocol:
    return read_protocol(__file__, Distinct)
