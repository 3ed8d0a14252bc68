"""Filters measure each picture once, against its own description; what fails is a state, and several must agree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from protoscore.benchmarks.protobias.taxonomy import load_taxonomy
from protoscore.benchmarks.protobias.triplets import wanted_pictures
from protoscore.benchmarks.protobias.writers.template import write
from protoscore.catalog import load
from protoscore.errors import ConfigError, DatasetError
from protoscore.filters import filter_pictures
from protoscore.image_filters import Measured, Shown
from protoscore.images import make_pictures
from protoscore.schema import Status
from tests.conftest import cli

# A model that answers by the picture's own description, and notes every question.
RULE = """
import json
from pathlib import Path

def reply(request):
    with Path({log!r}).open("a") as file:
        file.write("asked\\n")
    description = request.prompt.split("Description: ")[1]
    if "rain" in description:
        return "I'm sorry, I cannot look at rain."
    if "two" in description:
        return "It looks fine."
    return json.dumps({{"score": 4 if "red" in description else 9, "reason": "seen"}})
"""


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("drawn") / "pictures"
    triplets = list(write(load_taxonomy(), {"animals": 12, "demography": 6}, seed=3))
    make_pictures(wanted_pictures(triplets), load("generators", "scene", size=48), out, {"benchmark": "protobias"})
    return out


def table(path: Path) -> list[dict[str, Any]]:
    return pq.read_table(path).to_pylist()


def drawn(pictures: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for path in sorted(pictures.glob("part-*")) for row in table(path)}


@pytest.fixture
def model(tmp_path) -> tuple[str, Any]:
    log, rule = tmp_path / "log", tmp_path / "rule.py"
    rule.write_text(RULE.format(log=str(log)))
    return f"vlm:protobias/image_filter:scripted:{rule}", lambda: len(log.read_text().split()) if log.is_file() else 0


def test_two_filters_must_agree_and_a_repeat_asks_nothing(pictures, model, tmp_path):
    spec, asked = model
    filters = [load("image_filters", "geometric"), load("image_filters", spec)]
    counts = filter_pictures(pictures, filters, tmp_path / "out")
    shown = drawn(pictures)
    usable = {name: row for name, row in shown.items() if row["status"] == "ok"}
    assert usable and len(usable) < len(shown) and asked() == len(usable)

    by = {(row["id"], row["filter"]): row for row in table(tmp_path / "out" / "measurements.parquet")}
    assert len(by) == 2 * len(shown)
    for row in table(tmp_path / "out" / "kept.parquet"):
        geometric, seen = (by[row["id"], one.name] for one in filters)
        assert row["kept"] == ((geometric["score"] or 0) >= 8 and (seen["score"] or 0) >= 8)
        assert row["cell"] == shown[row["id"]]["cell"] == seen["cell"]
        text = shown[row["id"]]["text"]
        if row["id"] not in usable:
            assert seen["status"] == geometric["status"] == "refused" and row["reason"] == shown[row["id"]]["reason"]
        elif "rain" in text:
            assert seen["status"] == "refused" and seen["score"] is None
        elif "two" in text:
            assert seen["status"] == "invalid" and row["status"] == "invalid" and not row["kept"]
        else:
            assert (seen["status"], seen["score"]) == ("ok", 4 if "red" in text else 9) and geometric["score"] >= 1
    states = json.loads((tmp_path / "out" / "manifest.json").read_text())["states"]
    assert states[filters[1].name]["invalid"] >= 1 and sum(counts.values()) == len(shown)
    assert 0 < counts["kept"] < len(usable) and counts["rejected"] >= 1

    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert filter_pictures(pictures, filters, tmp_path / "out") == counts and asked() == len(usable)
    (tmp_path / "out" / "manifest.json").unlink()  # killed before the end: what was measured is there
    assert filter_pictures(pictures, filters, tmp_path / "out") == counts and asked() == len(usable)
    for name in ("manifest.json", "kept.parquet", "measurements.parquet"):
        assert (tmp_path / "out" / name).read_bytes() == before[name]


def test_each_picture_is_held_against_its_own_description(pictures, tmp_path):
    seen: list[Shown] = []

    class Sees:
        name, revision, parameters = "sees", "1", {}

        def measure(self, shown: Iterator[Shown], folder: Path) -> Iterator[Measured]:
            for one in shown:
                seen.append(one)
                yield Measured(10)

    filter_pictures(pictures, [Sees()], tmp_path / "out")
    shown = drawn(pictures)
    assert all(one.text == shown[one.id]["text"] and one.image == shown[one.id]["image"]["bytes"] for one in seen)
    assert all(one.spec["subject"] for one in seen)


def test_a_stopped_filter_goes_on_where_it_was(pictures, tmp_path):
    class Breaks:
        name, revision, parameters = "breaks", "1", {}
        left, measured = 20, 0

        def measure(self, shown: Iterator[Shown], folder: Path) -> Iterator[Measured]:
            for number, one in enumerate(shown):
                if number == self.left:
                    raise KeyboardInterrupt
                self.measured += 1
                yield Measured(len(one.text) % 11, Status.OK) if number % 5 else Measured(None, Status.ERROR, "busy")

    import protoscore.filters as stage

    once, usable = Breaks(), sum(row["status"] == "ok" for row in drawn(pictures).values())
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(stage, "TOGETHER", 4)
        filter_pictures(pictures, [once], tmp_path / "out")
    once.left = 10**9
    counts = filter_pictures(pictures, [once], tmp_path / "out")
    assert once.measured == 20 + (usable - 16), "the four that failed are tried again, the others are not"
    assert counts["error"] >= 1 and counts.get("invalid", 0) == sum(
        row["status"] == "invalid" for row in table(tmp_path / "out" / "kept.parquet")
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("vlm", "name a protocol and a model"),
        ("vlm:protobias/image_filter", "name a protocol and a model"),
        ("vlm:fairjudge/alignment:local", "one whole number, from 1 to 10"),
        ("geometric:x", "geometric takes no source"),
    ],
)
def test_a_filter_that_cannot_be_is_one_line(spec, message):
    with pytest.raises(ConfigError, match=message):
        load("image_filters", spec)


def test_a_budget_ends_the_stage_and_keeps_what_was_answered(pictures, model, tmp_path):
    spec, asked = model
    result = cli("filter", pictures, "--filter", spec, "-o", "max_calls=10", "-o", "batch_size=5", "--out", tmp_path / "out")
    assert result.returncode == 2 and "budget" in result.stderr and asked() == 10, result.stderr
    result = cli("filter", pictures, "--filter", spec, "-o", "batch_size=5", "--out", tmp_path / "out", "--keep-from", "8")
    usable = sum(row["status"] == "ok" for row in drawn(pictures).values())
    assert result.returncode == 0 and asked() == usable, result.stderr
    result = cli("filter", pictures, "--filter", spec, "--filter", "geometric", "-o", "batch_size=5", "--out", tmp_path / "b")
    assert result.returncode == 2 and "-o vlm.batch_size" in result.stderr


def test_a_folder_of_something_else_is_refused(tmp_path):
    with pytest.raises(DatasetError, match="not a protoscore folder"):
        filter_pictures(tmp_path, [load("image_filters", "geometric")], tmp_path / "out")
    assert not (tmp_path / "out").exists()
