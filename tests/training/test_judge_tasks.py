"""The questions that the embedded judge learns from: their answers against the pictures themselves, and how they are dealt."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np

from protoscore.scenes.alone import TONES
from training.embedded.tasks import example, sets


def paint(tone: str) -> np.ndarray:
    return np.array([int(TONES[tone][0][i : i + 2], 16) for i in (1, 3, 5)])


def test_the_colour_that_is_told_is_in_the_picture():
    """And where nothing of the list is told, a thing of that colour is not what the picture is of."""
    asked = Counter()
    for seed in range(200):
        drawn = example("diversity/attribute_value", seed, "test")
        value = drawn.answer["value"]
        asked[drawn.fields["attribute"], value in drawn.fields["values"]] += 1
        assert value in (*drawn.fields["values"], sets.OTHER, sets.HIDDEN)
        if value in TONES:
            pixels = np.asarray(drawn.images[0], dtype=int)
            assert (np.abs(pixels - paint(value)).max(-1) < 24).mean() > 0.002, (seed, value)
    assert min(asked[name, True] for name in ("color", "place", "kind", "number")) >= 15
    assert 0.05 < sum(count for (_, listed), count in asked.items() if not listed) / 200 < 0.3


def test_a_set_shows_as_many_values_as_its_answer_names():
    """Every count comes up for sets of four and of eight; sets of one colour each are counted again by their paint."""
    counts = Counter()
    for seed in range(80):
        drawn = example("diversity/attribute_count", seed, "test")
        named = list(filter(None, drawn.answer["values"].split(", ")))
        assert len(drawn.images) == drawn.fields["size"] and len(named) == len(set(named)) == drawn.answer["count"]
        assert json.dumps(drawn.answer).startswith('{"values": ')  # what is counted is named first
        counts[drawn.fields["size"], len(named)] += 1
        if drawn.fields["attribute"] == "color":
            shown = {
                tone for tone in TONES for image in drawn.images
                if (np.abs(np.asarray(image, dtype=int) - paint(tone)).max(-1) < 12).mean() > 0.003
            }  # fmt: skip
            assert set(named) <= shown
    assert {count for size, count in counts if size == 4} >= {1, 2, 3, 4}
    assert {count for size, count in counts if size == 8} >= {1, 2, 3, 4, 5}


def test_each_of_two_people_is_told_apart_by_where_they_stand():
    """One figure in a picture of its own, on the side that the answer says: the other half has another child's size or none."""
    drawn = [example("both people", seed, "train") for seed in range(40)]
    for one in drawn:
        words = json.loads("[" + one.answer["answer"].replace('""', '", "') + "]")
        assert words[0] == "left" and words[5] == "right" and len(words) == 10
        heights = []  # the outline's topmost place: children are smaller
        dark = np.asarray(one.images[0].convert("L"), dtype=int) < 30
        for half in np.split(dark, [dark.shape[1] // 2], axis=1):
            heights.append(np.argmax(half.mean(1) > 0.02) / dark.shape[0])
        if {words[2], words[7]} == {"child", "young adult"}:
            assert (heights[0] > heights[1]) == (words[2] == "child"), words
