"""Pictures with what they show, in words, and where: what the embedded judge learns to see by."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from PIL import Image

from protoscore.benchmarks.protobias.schema import NUMBERS, Cell, Triplet
from protoscore.benchmarks.protobias.taxonomy import extra_noun, load_taxonomy
from protoscore.scenes.people import Person, draw_person, draw_two, draw_worker, random_person, random_worker
from protoscore.scenes.spec import SceneSpec
from training.embedded.checked_texts import subject_phrase
from training.embedded.tasks.base import Seeded, draw, size_of, triplets_of

Box = tuple[float, float, float, float]
FRAME: Box = (0.0, 0.0, 1.0, 1.0)
LEFT, RIGHT = (0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0)


class NamedBox(NamedTuple):
    """Words for something that a picture shows, and its box: left, top, right, bottom in fractions of the frame."""

    words: str
    box: Box


def sight(seed: int, split: str = "train") -> tuple[Image.Image, list[NamedBox]]:
    """The picture of ``seed``, RGB: as many scenes as pictures of people, for what these wear is small and takes longer."""
    rng = Seeded("sight", split, seed)
    kind = rng.random()
    if kind < 0.48:
        triplet, cell = rng.choice(triplets_of(split)), rng.choice(list(Cell))
        image, elements = draw(triplet.scene(cell), rng, fits=True)
        boxes = {role: [_box(e) for e in elements if e.role == role] for role in ("subject", "extra")}
        return image, _of_scene(triplet, cell, boxes)
    size = size_of(rng)
    if kind < 0.84:
        person = random_person(rng, cue=0.7)
        return draw_person(person, rng.getrandbits(60), size), _of_person(person, FRAME)
    if kind < 0.90:
        worker = random_worker(rng)
        shown = [NamedBox(label("gender", worker.gender), FRAME), NamedBox(label("profession", worker.profession), FRAME)]
        return draw_worker(worker, rng.getrandbits(60), size), shown
    people = random_person(rng), random_person(rng)
    return draw_two(*people, rng.getrandbits(60), size), _of_person(people[0], LEFT) + _of_person(people[1], RIGHT)


def label(field: str, value: str) -> str:
    """A label as the answers spell it; a withheld one is named by its field too, for it is not a word of its own."""
    return f"no {field}" if value == "unspecified" else json.dumps(value)


def _of_person(person: Person, box: Box) -> list[NamedBox]:
    return [NamedBox(label(field, value), box) for field, value in person.model_dump().items()]


def _of_scene(triplet: Triplet, cell: Cell, boxes: dict[str, list[Box]]) -> list[NamedBox]:
    spec = triplet.scene(cell)
    subject = re.sub(r"^an? ", " ", subject_phrase(triplet, cell))
    shown = [NamedBox(subject, box) for box in boxes["subject"]]
    extra = load_taxonomy().extra(triplet.domain, triplet.extra)
    words = [f" {extra_noun(triplet.extra, extra, n)}" for n in range(1, 1 + min(2, spec.count))] + _knob_words(spec)
    shown += [NamedBox(word, box) for word in words for box in boxes["extra"]]
    count = next(word for word, number in NUMBERS.items() if number == spec.count)
    return [*shown, NamedBox(f" {load_taxonomy().environments[spec.environment]}", FRAME), NamedBox(f" {count}", FRAME)]


def _knob_words(spec: SceneSpec) -> list[str]:
    values = (spec.color_tone, spec.layout_relation, spec.spatial, spec.scale_size)
    return [" " + value.replace("_", " ") for value in values if value]


def _box(element) -> Box:
    return (element.x - element.width / 2, element.base - element.height, element.x + element.width / 2, element.base)
