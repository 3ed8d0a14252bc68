"""Which of two sets of pictures is more diverse, in the three conditions of the paper's template for people.

``diversity/side_by_side`` counts first and then compares, ``diversity/side_by_side:aspect`` names the attribute and has no
counts, ``diversity/side_by_side:none`` does not name it. Each question is asked in both orders, and a change of mind is a tie.
The counts are of the sets in the order in which they were shown.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import BaseModel, Field

from protoscore.asking.protocol import Alternatives, Protocol, read_protocol
from protoscore.errors import UnknownName

CONDITIONS = ("count", "aspect", "none")
Choice = Literal["first", "second", "equal", "unable"]


class CountedChoice(BaseModel):
    count_shown_first: int = Field(ge=0, le=24)
    count_shown_second: int = Field(ge=0, le=24)
    choice: Choice


class PlainChoice(BaseModel):
    choice: Choice


def create(labels: str = "count") -> Protocol:
    """``labels``: the condition."""
    if labels not in CONDITIONS:
        raise UnknownName("condition of diversity/side_by_side", labels, CONDITIONS)
    counting = labels == "count"
    asked = read_protocol(
        __file__, CountedChoice if counting else PlainChoice, {"choice": ("unable",)}, alternatives=Alternatives("choice")
    )
    name = asked.name if counting else f"{asked.name}:{labels}"
    return replace(asked, name=name, prompt=asked.variants.get(labels, asked.prompt), variants={})
