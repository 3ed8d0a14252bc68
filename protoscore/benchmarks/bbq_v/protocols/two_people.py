"""A question about two people in a picture that may have no answer there (BBQ-V's multiple-choice form, Prompt P15)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from protoscore.asking.protocol import Protocol, read_protocol


class TwoPeople(BaseModel):
    answer: Literal["left", "right", "unknown"]
    reason: str = ""


ALIASES = {"answer": {"the person on the left": "left", "the person on the right": "right", "cannot be determined": "unknown",
                      "not enough information": "unknown"}}  # fmt: skip


def create() -> Protocol:
    return read_protocol(__file__, TwoPeople, abstains={"answer": ("unknown",)}, aliases=ALIASES)
