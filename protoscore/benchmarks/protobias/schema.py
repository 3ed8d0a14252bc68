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
Element = Literal["extra", "environment", "subject"]

DOMAINS: tuple[Domain, ...] = ("animals", "objects", "demography")
KNOBS: tuple[Knob, ...] = ("count", "color_tone", "layout_relation", "spatial", "scale_size")
ELEMENTS: tuple[Element, ...] = ("extra", "environment", "subject")


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


class Foil(StrEnum):
    """Pictures that keep all of a correct one but one noun of the text: what the four cells, which share every noun, miss."""

    NON_EXTRA = "non_extra_foil"
    PROTO_EXTRA = "proto_extra_foil"
    NON_ENVIRONMENT = "non_environment_foil"
    PROTO_ENVIRONMENT = "proto_environment_foil"
    NON_SUBJECT = "non_subject_foil"  # something that the text's hypernym does not name, as unusual in its own category
    PROTO_SUBJECT = "proto_subject_foil"

    @property
    def element(self) -> Element:
        return self.value.split("_")[1]  # type: ignore[return-value]

    @property
    def correct(self) -> Cell:
        """The cell that it is a foil of."""
        return Cell.NON_CORRECT if self.value.startswith("non") else Cell.PROTO_CORRECT


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
    foil_extra: str | None = None  # what the foils show instead; None where the taxonomy has nothing else to show
    foil_environment: str | None = None
    foil_non_subject: str | None = None
    foil_proto_subject: str | None = None
    non_extra_foil: str | None = None  # and what each foil is made from
    proto_extra_foil: str | None = None
    non_environment_foil: str | None = None
    proto_environment_foil: str | None = None
    non_subject_foil: str | None = None
    proto_subject_foil: str | None = None
    writer: str = "template"
    split: Literal["train", "test"] = "test"

    @property
    def has_foils(self) -> bool:
        return all(getattr(self, foil) is not None for foil in Foil)

    def description(self, picture: Cell | Foil) -> str:
        """The sentence that ``picture`` is made from. A foil needs :attr:`has_foils`."""
        if isinstance(picture, Foil):
            return getattr(self, picture)
        return {
            Cell.NON_CORRECT: self.correct,
            Cell.PROTO_VIOLATED: self.adversarial,
            Cell.PROTO_CORRECT: self.proto_correct,
            Cell.NON_VIOLATED: self.non_violated,
        }[picture]

    def scene(self, picture: Cell | Foil) -> SceneSpec:
        """The structured scene of ``picture``. A foil needs :attr:`has_foils`."""
        if isinstance(picture, Foil):
            key = f"{picture.correct.subject}_subject" if picture.element == "subject" else picture.element
            return self.scene(picture.correct).model_copy(update={picture.element: getattr(self, f"foil_{key}")})
        value = self.value if picture.is_correct else self.violation
        subject = self.non_subject if picture.subject == "non" else self.proto_subject
        knob: dict[str, Any] = {self.knob: NUMBERS[value] if self.knob == "count" else value}
        return SceneSpec(subject=subject, extra=self.extra, environment=self.environment, **knob)


NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}


Kind = Literal["triplets", "pairs", "controls", "foils"]
PICTURES: dict[Kind, dict[Cell | Foil, str]] = {  # config -> what each picture's columns are called by
    "pairs": {Cell.NON_CORRECT: "correct", Cell.PROTO_VIOLATED: "adversarial"},  # the paper's two
    "controls": {cell: cell.value for cell in Cell},
    "foils": {picture: picture.value for picture in (*Cell, *Foil)},
}


def features(kind: Kind) -> datasets.Features:
    """The column types of a published table.

    ``triplets``: one row a triplet, text only. The others: plus the picture and the filter score of each of
    :data:`PICTURES`, e.g. ``correct_image`` and ``correct_filter_score``.
    """
    from datasets import Features, Image, Value

    columns: dict[str, Any] = {name: Value("string") for name in Triplet.model_fields}
    if kind == "triplets":
        return Features(columns)
    columns |= {"triplet": Value("string"), "rendition": Value("int32"), "generator": Value("string")}
    for name in PICTURES[kind].values():
        columns |= {f"{name}_image": Image(), f"{name}_filter_score": Value("int32")}
    return Features(columns)
