"""The rows of ProtoBias: triplets of texts, their four cells, and the columns of what is published."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from protoscore.scenes.spec import SceneSpec
from protoscore.typed_yaml import Strict

if TYPE_CHECKING:
    import datasets

Domain = Literal["animals", "objects", "demography"]
Knob = Literal["count", "color_tone", "layout_relation", "spatial", "scale_size"]
Pole = Literal["positive", "negative"]

DOMAINS: tuple[Domain, ...] = ("animals", "objects", "demography")
KNOBS: tuple[Knob, ...] = ("count", "color_tone", "layout_relation", "spatial", "scale_size")


class Cell(StrEnum):
    """The four pictures of a triplet: which subject is shown, and whether the neutral text holds."""

    NON_CORRECT = "non_correct"  # I_corr of the paper
    PROTO_VIOLATED = "proto_violated"  # I_adv of the paper
    PROTO_CORRECT = "proto_correct"  # control
    NON_VIOLATED = "non_violated"  # control

    @property
    def subject(self) -> Literal["non", "proto"]:
        return "non" if self.value.startswith("non") else "proto"

    @property
    def is_correct(self) -> bool:
        return self.value.endswith("correct")


class Triplet(Strict):
    """A neutral text, its four descriptions, and the structure that they were written from (paper, section 4.1)."""

    id: str
    domain: Domain
    subcategory: str
    hypernym: str  # "a bird", "person"
    non_prototype: str  # taxonomy key, e.g. "penguin", "Muslim"
    prototype: str
    non_phrase: str  # as it stands in the descriptions, e.g. "a penguin", "Muslim woman wearing a headscarf"
    proto_phrase: str
    non_subject: str  # what the scene world draws, e.g. "penguin", "muslim_woman"
    proto_subject: str
    knob: Knob
    value: str  # what the text states
    violation: str  # what the violated cells show instead
    extra: str
    environment: str
    text: str  # T
    correct: str  # D_c
    adversarial: str  # D_a
    proto_correct: str  # control: the prototype, and the text holds
    non_violated: str  # control: the non-prototype, and the text does not hold
    group_category: str | None = None
    socio_attr: str | None = None
    pole: Pole | None = None
    attr_token: str | None = None
    gender: Literal["man", "woman"] | None = None
    advantaged_group: str | None = None
    disadvantaged_group: str | None = None
    writer: str = "template"
    split: Literal["train", "test"] = "test"

    def description(self, cell: Cell) -> str:
        """The sentence that the picture of ``cell`` is made from."""
        return {
            Cell.NON_CORRECT: self.correct,
            Cell.PROTO_VIOLATED: self.adversarial,
            Cell.PROTO_CORRECT: self.proto_correct,
            Cell.NON_VIOLATED: self.non_violated,
        }[cell]

    def scene(self, cell: Cell) -> SceneSpec:
        """The structured scene of ``cell``."""
        value = self.value if cell.is_correct else self.violation
        subject = self.non_subject if cell.subject == "non" else self.proto_subject
        knob: dict[str, Any] = {self.knob: NUMBERS[value] if self.knob == "count" else value}
        return SceneSpec(subject=subject, extra=self.extra, environment=self.environment, **knob)


NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}


def features(kind: Literal["triplets", "pairs", "controls"]) -> datasets.Features:
    """The column types of a published table.

    ``triplets``: one row a triplet, text only. ``pairs``: plus ``correct_image`` and ``adversarial_image`` (the paper's
    two). ``controls``: plus the images of all four cells, named by cell.
    """
    from datasets import Features, Image, Value

    columns: dict[str, Any] = {name: Value("string") for name in Triplet.model_fields}
    if kind == "triplets":
        return Features(columns)
    columns |= {"triplet": Value("string"), "rendition": Value("int32"), "generator": Value("string")}
    cells = [Cell.NON_CORRECT, Cell.PROTO_VIOLATED] if kind == "pairs" else list(Cell)
    names = {Cell.NON_CORRECT: "correct", Cell.PROTO_VIOLATED: "adversarial"} if kind == "pairs" else {}
    for cell in cells:
        name = names.get(cell, cell.value)
        columns |= {f"{name}_image": Image(), f"{name}_filter_score": Value("int32")}
    return Features(columns)
