"""The profession that a picture shows (FairJudge, section 3.2)."""

from __future__ import annotations

from pydantic import BaseModel

from protoscore.asking.fields import OneOf
from protoscore.asking.protocol import Protocol, read_protocol


class Profession(BaseModel):
    profession: OneOf
    evidence: str = ""


def create(labels: str = "") -> Protocol:
    """Label sets: ``all`` (DIVERSIFY-Professions and IdenProf, the default), ``diversify``, ``idenprof``."""
    return read_protocol(__file__, Profession, labels=labels)
