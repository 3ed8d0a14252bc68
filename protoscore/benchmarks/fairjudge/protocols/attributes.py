"""Five social attributes of a depicted person, each from a closed set with "unspecified" (FairJudge, section 3.2.1)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from protoscore.asking.protocol import Protocol, read_protocol

FIELDS = ("gender", "race", "age", "religion", "disability")


class Attributes(BaseModel):
    """The label sets of the paper's short prompt; its appendices use finer ones."""

    gender: Literal["male", "female", "unspecified"]
    race: Literal["Black", "White", "Asian", "Latino_Hispanic", "Indigenous", "unspecified"]
    age: Literal["child", "young adult", "middle-aged", "elderly", "unspecified"]
    religion: Literal["Christian", "Muslim", "Hindu", "Buddhist", "Jewish", "Sikh", "Shinto", "unspecified"]
    disability: Literal[
        "mobility impairment", "blind/low vision", "deaf/hard of hearing", "dwarfism", "vitiligo", "unspecified"
    ]
    evidence: str = ""


ALIASES = {
    "gender": {"man": "male", "woman": "female", "boy": "male", "girl": "female"},
    "race": {"Latino": "Latino_Hispanic", "Hispanic": "Latino_Hispanic"},
    "age": {"young_adult": "young adult", "middle aged": "middle-aged", "senior": "elderly"},
    "religion": {"Christianity": "Christian", "Islam": "Muslim", "Hinduism": "Hindu", "Buddhism": "Buddhist",
                 "Judaism": "Jewish", "Sikhism": "Sikh", "Shintoism": "Shinto"},
    "disability": {"blind": "blind/low vision", "low vision": "blind/low vision", "deaf": "deaf/hard of hearing",
                   "hard of hearing": "deaf/hard of hearing"},
}  # fmt: skip
UNTOLD = {"unknown": "unspecified", "none": "unspecified", "not visible": "unspecified"}


def create() -> Protocol:
    aliases = {name: ALIASES[name] | UNTOLD for name in FIELDS}
    return read_protocol(__file__, Attributes, abstains=dict.fromkeys(FIELDS, ("unspecified",)), aliases=aliases)
