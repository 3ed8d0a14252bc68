"""Questions that compare a text with a picture: grades of three protocols, and in training, descriptions and texts to check."""

from __future__ import annotations

import random
from typing import Any

from protoscore.benchmarks.protobias.schema import NUMBERS, Cell, Triplet
from protoscore.scenes.geometry import assess
from protoscore.scenes.spec import SceneSpec
from protoscore.scenes.sprites import manifest
from protoscore.schema import derive_seed
from training.embedded.checked_texts import checked_texts, words_of
from training.embedded.tasks.base import SceneQuestion, Seeded, draw, triplets_in, triplets_of


def alignment(rng: Seeded, split: str) -> SceneQuestion:
    """5: as described; 4: another place; 3: another count, colour, side, depth or size; 2: another thing; 1: subject too."""
    return _graded(rng, split, {(): 5, ("environment",): 4, ("knob",): 3, ("extra",): 2, ("subject", "extra"): 1})


def rubric(rng: Seeded, split: str) -> SceneQuestion:
    """The neutral text, as in the paper. 4: as stated; 2: an attribute or a thing is wrong; 1: both; 3 is not drawn."""
    return _graded(rng, split, {(): 4, ("knob",): 2, ("extra",): 2, ("knob", "extra"): 1}, neutral=True)


def image_filter(rng: Seeded, split: str) -> SceneQuestion:
    """The geometric filter's own score of a picture against a description that fits it or not."""
    triplet, cell, change, rng = _asked(rng, split, [("knob",), ("extra",), ("subject",)])
    spec = triplet.scene(cell)
    image, elements = draw(_changed(spec, triplet, change, rng, split), rng)
    text = triplet.description(cell)
    wrong = words_of(change, text, triplet, cell, triplets_in(split, triplet.domain))
    return SceneQuestion([image], {"text": text}, {"score": assess(spec, elements).score}, wrong)


def sentences() -> list[str]:
    """Texts in which every word of scenes comes up."""
    return [text for t in triplets_of("train") for text in (t.text, *map(t.description, Cell))]


def description(rng: Seeded, split: str) -> SceneQuestion:
    """No question: the picture is described. Only for training, where it teaches which thing is which."""
    triplet, cell = rng.choice(triplets_of(split)), rng.choice(list(Cell))
    image, _ = draw(triplet.scene(cell), rng, fits=True)
    return SceneQuestion([image], {}, {"answer": triplet.description(cell)})


def check(rng: Seeded, split: str) -> SceneQuestion:
    """A text in which each word is right or wrong about the picture. Only for training."""
    triplet, cell = rng.choice(triplets_of(split)), rng.choice(list(Cell))
    image, _ = draw(triplet.scene(cell), rng, fits=True)
    text, wrong = rng.choice(checked_texts(triplet, cell, triplets_in(split, triplet.domain), rng))
    return SceneQuestion([image], {"text": text}, {}, wrong)


def _graded(rng: Seeded, split: str, grades: dict[tuple[str, ...], int], neutral: bool = False) -> SceneQuestion:
    triplet, cell, change, rng = _asked(rng, split, list(grades)[1:], neutral)
    image, _ = draw(_changed(triplet.scene(cell), triplet, change, rng, split), rng, fits=True)
    text = triplet.text if neutral else triplet.description(cell)
    wrong = words_of(change, text, triplet, cell, triplets_in(split, triplet.domain))
    return SceneQuestion([image], {"text": text}, {"score": grades[change]}, wrong)


def _asked(
    rng: Seeded, split: str, changes: list[tuple[str, ...]], neutral: bool = False
) -> tuple[Triplet, Cell, tuple[str, ...], random.Random]:
    """What the text is about, shared by two seeds, and what is changed in the picture: nothing for the even one."""
    pair, changed = divmod(rng.number, 2)
    shared = random.Random(derive_seed(rng.task, split, "pair", pair))
    cells = [cell for cell in Cell if cell.is_correct or not neutral]
    return shared.choice(triplets_of(split)), shared.choice(cells), rng.choice(changes) if changed else (), rng


def _changed(spec: SceneSpec, triplet: Triplet, change: tuple[str, ...], rng: random.Random, split: str) -> SceneSpec:
    """``spec`` with some of its parts swapped for others that are clearly different."""
    new: dict[str, Any] = {}
    domain = triplets_in(split, triplet.domain)
    for part in change:
        if part == "knob":
            value = triplet.violation if getattr(spec, triplet.knob) == _knob(triplet, triplet.value) else triplet.value
            new[triplet.knob] = _knob(triplet, value)
        else:
            taken = {getattr(triplet.scene(c), part) for c in Cell} if part == "subject" else {getattr(spec, part)}
            others = [s for t in rng.sample(domain, 12) if (s := getattr(t.scene(Cell.NON_CORRECT), part)) not in taken]
            if part == "extra" and spec.color_tone:
                others = [s for s in others if spec.color_tone in manifest().sprites[s].colors]
            new[part] = rng.choice(others) if others else getattr(spec, part)
    return spec.model_copy(update=new)


def _knob(triplet: Triplet, value: str) -> Any:
    return NUMBERS[value] if triplet.knob == "count" else value
