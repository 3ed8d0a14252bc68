"""BBQ-V's own questions about drawn people: neutral in the text, counterbalanced, and a planted bias comes back."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter

import pytest

from protoscore import benchmarks
from protoscore.asking.protocol import load_protocol
from protoscore.benchmarks.bbq_v.scenes import UNKNOWN, pairs, wanted
from protoscore.generators.scene import create
from protoscore.images import make_pictures
from protoscore.judging.stage import judge_items
from protoscore.sources.decoding import open_image
from protoscore.vlms import Reply

GROUPS = (
    "old young elderly aged youth senior man men woman women male female boy girl guy lady gentleman he she his her hers him "
    "mother father son daughter wife husband muslim jew jewish christian hindu buddhist sikh mosque church synagogue "
    "disabled disability wheelchair blind deaf cane crutches hearing-aid"
).split()


def test_the_text_never_says_who_is_who():
    for one in wanted(1, 0):
        words = set(re.findall(r"[a-z-]+", f"{one.fields['context']} {one.fields['question']} {one.fields['options']}".lower()))
        assert not words & set(GROUPS), one.id


def test_sides_polarities_and_options_are_counterbalanced():
    made = list(wanted(2, 0))
    assert len({one.fields["stem"] for one in made}) >= 60 and len({one.id for one in made}) == len(made)
    open_ = [one.fields for one in made if one.fields["condition"] == "ambig"]
    assert len(open_) >= 500
    assert len(set(Counter((one["polarity"], one["stereotyped_side"]) for one in open_).values())) == 1
    for some in (open_, [one.fields for one in made if one.fields["condition"] == "disambig"]):
        assert len(set(Counter(one["unknown"] for one in some).values())) == 1
        assert len(set(Counter(one["target"] for one in some).values())) == 1


def test_what_is_told_gives_the_answer_and_the_answer_turns_with_the_question():
    for one in wanted(1, 0):
        options = json.loads(one.fields["options"])
        if one.fields["condition"] == "ambig":
            assert options[one.fields["right"]] == UNKNOWN and "person on the" not in one.fields["context"]
            continue
        side = one.id.split("-")[-2]  # of whom the negative question is about
        stem = next(stem for pair in pairs().values() for stem in pair.stems if stem.source == one.fields["stem"])
        other = "right" if side == "left" else "left"
        told = stem.told.format(x=f"the person on the {side}", y=f"the person on the {other}")
        assert one.fields["context"].lower().endswith(told.lower())
        assert one.fields["right_text"].endswith(side if one.fields["polarity"] == "neg" else other)


class Planted:
    """Answers by the stereotype in a share of the stems; it tells the pictures apart by their pixels."""

    revision, batch_size, concurrency, billed = "1", 64, 1, False

    def __init__(self, dose: float, answers: dict[bytes, str]):
        self.name, self.parameters, self._answers = f"planted-{dose}", {"dose": dose}, answers

    async def reply(self, requests):
        said = [self._answers[_pixels(one.images[0])] for one in requests]
        return [Reply(json.dumps({"reason": "", "answer": letter}), "stop") for letter in said]

    async def close(self):
        pass


def _pixels(image) -> bytes:
    return hashlib.sha256(image.convert("RGB").tobytes()).digest()


def _biased(fields) -> str:
    other = ({"A", "B", "C"} - {fields["unknown"], fields["target"]}).pop()
    return fields["target"] if fields["polarity"] == "neg" else other


@pytest.mark.parametrize("dose", [0.0, 0.3, 0.6, 1.0])
def test_a_planted_bias_comes_back_on_500_ambiguous_scenes(pictures, dose):
    items = benchmarks.find(str(pictures)).items()
    rows = list(items.rows())
    assert len(rows) >= 500 and items.scenes
    stems = sorted({row.fields["stem"] for row in rows})
    planted = set(stems[: round(dose * len(stems))])
    said = {
        _pixels(open_image(row.images[0])): _biased(row.fields) if row.fields["stem"] in planted else row.fields["unknown"]
        for row in rows
    }
    assert len(said) == len(rows)
    run = pictures.parent / f"run-{dose}"
    judge_items(load_protocol("bbq_v/multiple_choice"), items, Planted(dose, said), run)
    found = benchmarks.of_run(run, resamples=200).evaluate(run).estimates[f"planted-{dose}"]["all"]
    assert found["withheld_amb"].value == pytest.approx(1 - dose, abs=0.01)
    if dose:
        assert found["s_amb"].value == pytest.approx(dose, abs=0.01) and found["s_amb"].low <= dose <= found["s_amb"].high
    else:
        assert found["s_amb"].n == 0


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bbq_v") / "pictures"
    made = (one for one in wanted(2, 0) if one.fields["condition"] == "ambig")
    make_pictures(made, create(32), folder, {"benchmark": "bbq_v"})
    return folder
