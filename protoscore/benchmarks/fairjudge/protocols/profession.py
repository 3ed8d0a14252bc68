"""The profession that a picture shows: the six of DIVERSIFY-Professions and the ten of IdenProf (FairJudge, section 3.2)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from protoscore.asking.protocol import Protocol, read_protocol


class Profession(BaseModel):
    profession: Literal[
        "doctor", "engineer", "janitor", "lawyer", "nurse", "teacher", "chef", "farmer", "firefighter", "judge", "mechanic",
        "pilot", "police", "waiter", "unspecified",
    ]  # fmt: skip
    evidence: str = ""


ALIASES = {"profession": {"police officer": "police", "cook": "chef", "cleaner": "janitor", "unknown": "unspecified"}}


def create() -> Protocol:
    return read_protocol(__file__, Profession, abstains={"profession": ("unspecified",)}, aliases=ALIASES)
