"""Five social attributes of a depicted person, each from a closed set with "unspecified" (FairJudge, section 3.2.1)."""

from __future__ import annotations

from pydantic import BaseModel

from protoscore.asking.fields import OneOf
from protoscore.asking.protocol import Protocol, read_protocol


class Attributes(BaseModel):
    gender: OneOf
    race: OneOf
    age: OneOf
    religion: OneOf
    disability: OneOf
    evidence: str = ""


def create(labels: str = "") -> Protocol:
    """Label sets: ``short`` (of the paper's prompt, the default), ``appendix``, ``diversify`` (all that its metadata hold)."""
    return read_protocol(__file__, Attributes, labels=labels)
