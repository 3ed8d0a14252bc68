"""A benchmark that somebody else writes: one file and the two files of a protocol, installed beside the library, and nothing of
the library touched. It gets pictures, scores, verdicts, a page with intervals and results to publish, from the command line.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.conftest import cli

BENCHMARK = '''
"""Does the picture show the stated colour?"""
from protoscore.benchmarks import Benchmark
from protoscore.generators import Wanted
from protoscore.reporting.results import Task
from protoscore.scenes.spec import SceneSpec
from protoscore.sources import open_rows

COLOURS = ("red", "blue", "green", "yellow")


class Shades(Benchmark):
    name = "shades"
    tasks = (Task(id="brighter"),)

    def __init__(self, source=None, resamples=2000, above=0.5):
        super().__init__(resamples)
        self.source, self.above = source, above

    def pictures(self):
        for n in range(24):
            spec = SceneSpec(subject="penguin", extra="balloon", environment="beach", color_tone=COLOURS[n % 4])
            text = f"A penguin beside a {COLOURS[n % 4]} balloon, number {n}."
            yield Wanted(f"w{n:02}", text, n, spec, {"colour": COLOURS[n % 4]})

    def items(self):
        return open_rows(self.source, benchmark=self.name)

    def evaluate(self, run):
        results = super().evaluate(run)
        for groups in results.estimates.values():
            for quantities in groups.values():
                if "mean" in quantities:
                    quantities["brighter"] = quantities.pop("mean")
        return results


def create(source=None, resamples=2000, above=0.5):
    return Shades(source, resamples, above)
'''
QUESTION = '''
"""Which colour does the balloon have?"""
from typing import Literal

from pydantic import BaseModel

from protoscore.asking.protocol import Protocol, read_protocol


class Colour(BaseModel):
    colour: Literal["red", "blue", "green", "yellow", "unspecified"]


def create() -> Protocol:
    return read_protocol(__file__, Colour, abstains={"colour": ("unspecified",)})
'''
JUDGE = """
import re


def reply(request):
    return '{"colour": "%s"}' % re.search(r"a (\\w+) balloon", request.prompt)[1]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder on the path with the installed package, and all that the commands make of it."""
    root = tmp_path_factory.mktemp("toy")
    package, info = root / "site" / "shades", root / "site" / "shades-1.0.dist-info"
    (package / "protocols").mkdir(parents=True)
    info.mkdir()
    (package / "__init__.py").write_text(BENCHMARK)
    (package / "protocols" / "__init__.py").touch()
    (package / "protocols" / "question.py").write_text(QUESTION)
    (package / "protocols" / "question.md").write_text(
        'Which colour: {{ labels.colour | join(", ") }}? Text: {{ item.text | quoted }} Reply like {{ shape }}'
    )
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shades\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[protoscore.benchmarks]\nshades = shades\n")
    (root / "judge.py").write_text(JUDGE)
    return root


def run(place: Path, *arguments: str) -> str:
    result = cli(*(a.format(here=place) for a in arguments), env={"PYTHONPATH": f"{place / 'site'}"})
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_a_benchmark_of_ones_own_goes_all_the_way(place):
    run(place, "images", "shades", "--out", "{here}/pictures", "-o", "size=64")
    run(place, "score", "shades:{here}/pictures", "-s", "constant", "-s", "random", "--out", "{here}/run")
    said = run(place, "report", "{here}/run")
    assert "brighter" in said and "random" in said
    body = json.loads((place / "run" / "results.json").read_text())
    scores = [r["score"] for r in pq.read_table(place / "run" / "scores.parquet").to_pylist() if r["scorer"] == "random"]
    found = body["estimates"]["random"]["all"]["brighter"]
    assert body["benchmark"] == "shades" and found["n"] == 24 == len(scores)
    assert found["value"] == pytest.approx(sum(scores) / 24) and found["low"] < found["value"] < found["high"]
    page = (place / "run" / "report.html").read_text()
    assert f"{found['value']:.3f}" in page and f"[{found['low']:.3f}, {found['high']:.3f}]" in page
    row = json.loads((place / "run" / "leaderboard.jsonl").read_text().splitlines()[1])
    assert row["benchmark"] == "shades" and row["value"] == found["value"] and row["scenes"] is True
    sent = run(
        place,
        "publish",
        "results",
        "{here}/run",
        "--repo-id",
        "o/m",
        "--benchmark",
        "o/shades",
        "--scorer",
        "random",
        "--dry-run",
    )
    assert "task_id: brighter" in sent and f"value: {round(found['value'], 6)}" in sent and "nothing was sent" in sent


def judge_the_pictures(place):
    """The verdicts on the pictures, made where a test that ran before in the same process has not made them."""
    if not (place / "pictures").is_dir():
        run(place, "images", "shades", "--out", "{here}/pictures", "-o", "size=64")
    if not (place / "verdicts").is_dir():
        items = ("--items", "shades:{here}/pictures", "--judge", "scripted:{here}/judge.py", "--out", "{here}/verdicts")
        run(place, "judge", "shades/question", *items)


def test_its_verdicts_have_a_page_with_intervals_too(place):
    judge_the_pictures(place)
    run(place, "report", "{here}/verdicts")
    (found,) = json.loads((place / "verdicts" / "results.json").read_text())["estimates"].values()
    assert {name: e["value"] for name, e in found["all"].items()} == {"usable replies": 1, **{f"colour: {c}": 0.25 for c in
        ("blue", "green", "red", "yellow")}}  # fmt: skip
    assert re.search(r"colour: red.*?0\.250.*?\[0\.\d+, 0\.\d+\]", (place / "verdicts" / "report.html").read_text(), re.DOTALL)


def test_an_option_that_it_does_not_have_is_one_line(place):
    judge_the_pictures(place)
    result = cli("report", str(place / "verdicts"), "-o", "abov=1", env={"PYTHONPATH": str(place / "site")})
    assert result.returncode == 2 and "did you mean 'above'" in result.stderr and result.stderr.count("\n") == 1
