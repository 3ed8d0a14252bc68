"""Scenes show what their spec says, measured on the pixels, and the filter refuses what they do not show."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from protoscore.benchmarks.protobias.schema import Cell, Triplet
from protoscore.benchmarks.protobias.taxonomy import load_taxonomy
from protoscore.benchmarks.protobias.writers.template import write
from protoscore.catalog import load
from protoscore.errors import ConfigError, UnknownName
from protoscore.generators import Wanted
from protoscore.image_filters import Shown
from protoscore.scenes.draw import draw_scene, visible_shares
from protoscore.scenes.geometry import assess
from protoscore.scenes.people import Person, draw_person
from protoscore.scenes.spec import SceneSpec
from protoscore.scenes.sprites import PALETTE, manifest

TAXONOMY = load_taxonomy()
DRAWABLE = list(write(TAXONOMY, {"animals": 260, "objects": 260, "demography": 120}, seed=1, refuses=manifest().refused.get))
triplets = st.sampled_from(DRAWABLE)
cells = st.sampled_from(list(Cell))
seeds = st.integers(0, 2**40)


def box_pixels(image: Image.Image, element) -> np.ndarray:
    size = image.width
    left, top = (element.x - element.width / 2) * size, (element.base - element.height) * size
    box = (left, top, left + element.width * size, element.base * size)
    return np.asarray(image.crop(tuple(round(v) for v in box))).reshape(-1, 3).astype(int)


@settings(max_examples=40, deadline=None)
@given(triplets, cells, seeds)
def test_the_same_request_gives_the_same_pixels_and_another_seed_others(triplet, cell, seed):
    spec = triplet.scene(cell)
    first, elements = draw_scene(spec, seed, 96)
    again, _ = draw_scene(spec, seed, 96)
    other, _ = draw_scene(spec, seed + 1, 96)
    assert first.tobytes() == again.tobytes() != other.tobytes()
    assert first.mode == "RGB" and first.size == (96, 96)
    assert [e.key for e in elements if e.role == "subject"] == [spec.subject]
    assert [e.key for e in elements if e.role == "extra"] == [spec.extra] * spec.count


@settings(max_examples=60, deadline=None)
@given(triplets, cells, seeds)
def test_a_scene_shows_its_own_side_of_the_knob_and_not_the_other(triplet: Triplet, cell: Cell, seed):
    """The filter accepts a scene for its own description, and refuses it for the one that differs in the knob."""
    spec = triplet.scene(cell)
    other = triplet.scene({Cell.NON_CORRECT: Cell.NON_VIOLATED, Cell.NON_VIOLATED: Cell.NON_CORRECT,
                           Cell.PROTO_CORRECT: Cell.PROTO_VIOLATED, Cell.PROTO_VIOLATED: Cell.PROTO_CORRECT}[cell])  # fmt: skip
    _, elements = draw_scene(spec, seed, 96)
    own = assess(spec, elements)
    assert 1 <= own.score <= 10 and bool(own.reason) == (own.score < 10)
    assert assess(other, elements).score < 8


def test_a_few_scenes_in_a_hundred_are_rejected_and_each_with_a_reason():
    drawn = list(write(TAXONOMY, {"animals": 250, "objects": 250, "demography": 200}, seed=3, refuses=manifest().refused.get))
    verdicts = [assess(t.scene(c), draw_scene(t.scene(c), i, 64)[1]) for i, t in enumerate(drawn) for c in Cell]
    assert 0.01 < np.mean([v.score < 8 for v in verdicts]) < 0.05
    assert all(v.reason for v in verdicts if v.score < 8)


@pytest.mark.parametrize("color", sorted(PALETTE))
def test_a_named_colour_is_the_colour_that_is_seen(color):
    """Independent of the drawing code: which palette tone is nearest to most pixels of the extra's box?"""
    extras = [key for key, sprite in manifest().sprites.items() if color in sprite.colors]
    assert extras
    for seed, extra in enumerate(extras):
        spec = SceneSpec(subject="penguin", extra=extra, environment="studio", color_tone=color)
        image, elements = draw_scene(spec, seed, 256)
        pixels = box_pixels(image, next(e for e in elements if e.role == "extra"))
        counts = {}
        for name, (main, _) in PALETTE.items():
            tone = np.array([int(main[i : i + 2], 16) for i in (1, 3, 5)])
            counts[name] = int((np.abs(pixels - tone).sum(1) < 24).sum())
        counts["black"] -= counts["black"] // 2 if color != "black" else 0  # outlines are dark everywhere
        assert max(counts, key=counts.get) == color, (extra, counts)


def test_visibility_by_hand():
    """Opaque squares of 10 px in a frame of 20: the second covers half of the first, the third is half outside."""
    square = Image.new("RGBA", (10, 10), (0, 0, 0, 255))
    layers = [(square, (0, 0)), (square, (5, 0)), (square, (15, 10)), (square, (40, 40))]
    assert visible_shares(layers, 20) == [0.5, 1.0, 0.5, 0.0]


@pytest.mark.parametrize("key", ["cat", "sofa", "mug", "penguin", "bicycle"])
def test_what_stands_in_front_covers_a_part_of_what_is_behind_and_the_filter_holds_it_to_that(key):
    kept = 0
    for seed in range(10):
        for relation in ("behind", "in_front"):
            spec = SceneSpec(subject=key, extra="stone", environment="studio", layout_relation=relation)
            _, elements = draw_scene(spec, seed, 192)
            subject, extra = (next(e for e in elements if e.role == role) for role in ("subject", "extra"))
            near, far = (subject, extra) if relation == "behind" else (extra, subject)
            assert near.base > far.base
            covered = 0.15 <= 1 - far.visible <= 0.4
            assert (assess(spec, elements).score >= 8) <= covered
            kept += covered
            for wrong in (0.1, 0.5):  # hardly touched; mostly hidden
                moved = [e._replace(visible=1 - wrong) if e is far else e for e in elements]
                assert assess(spec, moved).score < 8
    assert kept >= 15


def test_what_cannot_be_shown_is_refused_by_name():
    generator = load("generators", "scene", size=48)
    wishes = [SceneSpec(subject=s, extra="box", environment="park") for s in ("muslim_woman", "nigerian_woman")]
    person = Person(gender="female", age="elderly")
    drawn, refused, portrait, unspecified = generator.generate(
        [Wanted(str(n), "A woman.", 0, spec) for n, spec in enumerate([*wishes, person, None])]
    )
    assert drawn.image is not None and drawn.status == "ok" and drawn.geometry
    assert refused.status == "refused" and "nigerian_woman" in refused.reason and "legal status" in refused.reason
    assert portrait.image.tobytes() == draw_person(person, 0, 48).tobytes() and portrait.geometry is None
    assert unspecified.status == "refused" and "from a spec" in unspecified.reason
    with pytest.raises(UnknownName, match="did you mean 'penguin'"):
        draw_scene(SceneSpec(subject="pengin", extra="box", environment="park"), 0, 48)
    with pytest.raises(UnknownName, match="backdrop"):
        draw_scene(SceneSpec(subject="penguin", extra="box", environment="moon"), 0, 48)


def test_the_geometric_filter_does_not_pretend_to_see_photographs(tmp_path):
    spec = SceneSpec(subject="penguin", extra="box", environment="park").model_dump()
    with pytest.raises(ConfigError, match="scenes only"):
        list(load("image_filters", "geometric").measure(iter([Shown("1", b"", "A penguin.", spec, None)]), tmp_path))
