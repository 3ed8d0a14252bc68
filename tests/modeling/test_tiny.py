"""protoscore-tiny does what its card says, on triplets drawn here."""

from __future__ import annotations

import json

import numpy as np
import pytest

from protoscore.benchmarks.protobias.schema import Cell
from protoscore.benchmarks.protobias.taxonomy import load_taxonomy
from protoscore.benchmarks.protobias.wording import reading
from protoscore.benchmarks.protobias.writers.template import write
from protoscore.modeling.protoscore import ProtoScore
from protoscore.scenes.draw import draw_scene
from protoscore.scenes.sprites import manifest
from protoscore.schema import derive_seed
from protoscore.stats.pairwise import FiveQuantities, five_quantities
from protoscore.stats.resampling import Estimate
from tests.conftest import ROOT, cli

DEMO = ROOT / "model_cards" / "demo.results.json"
RESULTS = ROOT / "model_cards" / "protoscore-tiny.results.json"


@pytest.fixture(scope="module")
def scores() -> np.ndarray:
    """(240, 4) scores of fresh test triplets, a seed of this test's own."""
    counts = {"animals": 90, "objects": 90, "demography": 60}
    triplets = list(write(load_taxonomy(), counts, seed=777, split="test", refuses=manifest().refused.get))
    pictures = [draw_scene(t.scene(c), derive_seed(t.id, c.value), 256)[0] for t in triplets for c in Cell]
    return np.array(ProtoScore.from_pretrained().score(pictures, [t.text for t in triplets for _ in Cell])).reshape(-1, 4)


def test_it_reads_the_text_whichever_subject_is_typical(scores):
    q = five_quantities(*scores.T, clusters=np.arange(len(scores)), resamples=300)
    # 0.95 is the promise over 1,000 triplets; 240 leave room for about two standard errors.
    assert min(q.incongruent.value, q.congruent.value, q.sensitivity.value) >= 0.92
    assert abs(q.gap.value) <= 0.06 and q.incongruent.ties == 0


def test_the_card_and_the_readme_give_the_figures_of_the_results_file():
    groups = json.loads(RESULTS.read_text())["estimates"]["protoscore"]
    card = (ROOT / "protoscore" / "assets" / "protoscore-tiny" / "README.md").read_text()
    readme = (ROOT / "README.md").read_text()
    for quantity in ("incongruent", "congruent", "sensitivity", "preference", "gap"):
        e = groups["all"][quantity]
        text = f"{e['value']:.3f} [{e['low']:.3f}, {e['high']:.3f}]"
        assert text in card and text in readme
    for scorer in ("protoscore", "protoscore:demo/paper"):
        for e in json.loads(DEMO.read_text())["estimates"][scorer]["all"].values():
            assert f"{e['value']:.3f} [{e['low']:.3f}, {e['high']:.3f}]" in readme
    for name, group in groups.items():
        assert f"| {name.replace('_', ' ')} | {group['incongruent']['value']:.3f}" in card


def test_the_promises_hold_in_the_results_file():
    report = json.loads(RESULTS.read_text())
    groups = report["estimates"]["protoscore"]
    assert report["details"]["triplets"] == 1000
    assert min(groups["all"][q]["value"] for q in ("incongruent", "congruent", "sensitivity")) >= 0.95
    assert abs(groups["all"]["gap"]["value"]) <= 0.03
    for name, group in groups.items():
        if " / " in name:
            assert min(group[q]["value"] for q in ("incongruent", "congruent", "sensitivity")) >= 0.88, name


def test_the_shortcut_shows_in_the_demo_and_is_called_by_name():
    five = json.loads(DEMO.read_text())["estimates"]["protoscore:demo/paper"]["all"]
    assert five["incongruent"]["value"] >= 0.95 and five["sensitivity"]["value"] <= 0.6
    q = FiveQuantities(**{name: Estimate(**values) for name, values in five.items()})
    assert reading(q).verdict == "anti-prototype shortcut"


def test_rate_puts_the_right_picture_first(tmp_path):
    triplet = next(iter(write(load_taxonomy(), {"animals": 1}, seed=5, split="test")))
    for name, cell in (("right", Cell.NON_CORRECT), ("wrong", Cell.PROTO_VIOLATED)):
        draw_scene(triplet.scene(cell), 1, 256)[0].save(tmp_path / f"{name}.png")
    result = cli("rate", triplet.text, str(tmp_path / "wrong.png"), str(tmp_path / "right.png"))
    assert result.returncode == 0, result.stderr
    lines = result.stdout.strip().splitlines()
    assert lines[0].endswith("right.png") and lines[1].endswith("wrong.png")
    assert float(lines[0].split()[0]) > float(lines[1].split()[0])
