"""The pictures of a triplet are one scene: where they differ is where their specs do, measured on pixels."""

from __future__ import annotations

import random

import numpy as np
import pytest

from protoscore.benchmarks.protobias.schema import KNOBS, Cell, Triplet
from protoscore.benchmarks.protobias.taxonomy import load_taxonomy
from protoscore.benchmarks.protobias.triplets import wanted_pictures
from protoscore.benchmarks.protobias.writers.template import write
from protoscore.scenes.draw import Element, draw_scene
from protoscore.scenes.layout import arrange
from protoscore.scenes.spec import SceneSpec
from protoscore.scenes.sprites import manifest

COUNTS = {"animals": 350, "objects": 450, "demography": 200}
TRIPLETS = list(write(load_taxonomy(), COUNTS, seed=4, refuses=manifest().refused.get))
DEPTH = ("in_front", "behind")
SIZE = 96


def by_knob(each: int) -> list[Triplet]:
    return [t for knob in KNOBS for t in [t for t in TRIPLETS if t.knob == knob][:each]]


def pixels_outside(first: SceneSpec, second: SceneSpec, seed: int, roles: tuple[str, ...]) -> int:
    """How many pixels differ outside the boxes of ``roles`` (a shadow's margin around them) in either picture."""
    pictures, boxes = [], np.zeros((SIZE, SIZE), bool)
    for spec in (first, second):
        image, elements = draw_scene(spec, seed, SIZE)
        pictures.append(np.asarray(image).astype(int))
        for e in elements:
            if e.role in roles:
                left, right = (e.x - e.width / 2) * SIZE - 2, (e.x + e.width / 2) * SIZE + 2
                top, bottom = (e.base - e.height) * SIZE - 2, (e.base + 0.05 * e.width) * SIZE + 3
                boxes[max(0, int(top)) : int(bottom), max(0, int(left)) : int(right)] = True
    changed = (pictures[0] != pictures[1]).any(2)
    assert changed.any()
    return int((changed & ~boxes).sum())


@pytest.mark.parametrize("seed", range(2))
def test_right_and_wrong_differ_in_the_extra_element_only(seed):
    for t in by_knob(25):
        for right, wrong in ((Cell.NON_CORRECT, Cell.NON_VIOLATED), (Cell.PROTO_CORRECT, Cell.PROTO_VIOLATED)):
            assert pixels_outside(t.scene(right), t.scene(wrong), seed, ("extra",)) == 0, (t.text, right)


def test_two_subjects_differ_in_the_subject_only():
    """But where one covers the other: there the extra element stands where this subject's share is covered."""
    for seed, t in enumerate(by_knob(25)):
        roles = ("subject", "extra") if t.value in DEPTH else ("subject",)
        assert pixels_outside(t.scene(Cell.NON_CORRECT), t.scene(Cell.PROTO_CORRECT), seed, roles) == 0, t.text


def test_another_extra_or_another_place_changes_nothing_else():
    for seed, t in enumerate(by_knob(10)):
        spec = t.scene(Cell.NON_CORRECT)
        other = spec.model_copy(update={"extra": "vase" if spec.extra != "vase" else "book"})
        if spec.color_tone != "brown":
            assert pixels_outside(spec, other, seed, ("extra",)) == 0
        moved = spec.model_copy(update={"environment": "desert" if spec.environment != "desert" else "office"})
        assert draw_scene(spec, seed, 48)[1] == draw_scene(moved, seed, 48)[1]


def test_subjects_keep_area_side_and_paint_over_a_thousand_triplets():
    """Of one subject, right against wrong, every number is equal; the extra keeps its side unless the text tells sides."""
    assert len(TRIPLETS) == 1000
    for seed, t in enumerate(TRIPLETS):
        cells = {cell: arrange(t.scene(cell), random.Random(seed)) for cell in Cell}
        for right, wrong in ((Cell.NON_CORRECT, Cell.NON_VIOLATED), (Cell.PROTO_CORRECT, Cell.PROTO_VIOLATED)):
            assert cells[right][0] == cells[wrong][0]
        if t.value not in ("left", "right"):
            assert len({np.sign(c[1].x - c[0].x) for c in cells.values()}) == 1 or t.value in DEPTH
        assert len({(c[0].x, c[0].base) for c in cells.values()}) == 1


def test_people_and_colours_are_one_draw_for_the_whole_set():
    for seed, t in enumerate(by_knob(12)):
        found: list[list[Element]] = [draw_scene(t.scene(cell), seed, 48)[1] for cell in Cell]
        colors = {e.color for elements in found for e in elements if e.role == "extra"}
        assert len(colors) == (2 if t.knob == "color_tone" else 1)


def test_a_set_has_one_seed_and_with_nuisance_each_picture_its_own():
    one, free = (list(wanted_pictures(TRIPLETS[:2], 2, 7, nuisance=nuisance)) for nuisance in (False, True))
    assert len({w.seed for w in one}) == 4 and len({w.seed for w in free}) == len(free)
    assert [w.id for w in one] == [w.id for w in free]
