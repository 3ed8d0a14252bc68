"""Two runs over the same prompts: right verdicts, nothing left out without a word, and exit codes that CI can use."""

from __future__ import annotations

import csv
import json
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from protoscore.cli import main
from protoscore.errors import DatasetError
from protoscore.folder import write_manifest, write_table
from protoscore.reporting.comparison import as_json, compare, write_comparison
from protoscore.reporting.tables import export
from tests.conftest import ROOT

T2I = ROOT.parent / "shared" / "data" / "t2i"


@pytest.fixture
def cli(monkeypatch, capsys):
    """The command line in this process: exit code, what it printed, what it complained."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["protoscore", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return SimpleNamespace(returncode=ended.value.code, stdout=said.out, stderr=said.err)

    return run


def outcome(value):
    return {"status": "ok", "score": value} if value == value else {"status": "refused", "score": None}


def run_of(folder, scores, revision="1", prompts=None):
    """A run folder with ``scores`` {scorer: [[per picture] per prompt]}, NaN for a failure."""
    rows = []
    for name, table in scores.items():
        for i, some in enumerate(table):
            keys = {
                "id": f"p{i}",
                "prompt": (prompts or {}).get(i, f"prompt {i}"),
                "scorer": name,
                "reason": "",
                "truncated": False,
            }
            rows += [keys | {"image": f"{i}_{k}.png"} | outcome(value) for k, value in enumerate(some)]
    text = [(n, pa.string()) for n in ("id", "prompt", "image", "scorer", "status", "reason")]
    schema = pa.schema([*text, ("score", pa.float64()), ("truncated", pa.bool_())])
    write_table(folder / "scores.parquet", pa.Table.from_pylist(rows, schema))
    write_manifest(
        folder, "score", {"source": "x", "scorers": [{"name": n, "revision": revision, "parameters": {}} for n in scores]}
    )
    return folder


@pytest.fixture
def pair(tmp_path):
    rng = np.random.default_rng(0)
    base = rng.normal(0, 1, (80, 1)) + rng.normal(0, 0.1, (80, 2))
    drop = base - 0.5 + rng.normal(0, 0.3, (80, 2))
    noise = base + rng.normal(0, 0.4, (80, 2))
    gain = base + 0.3 + rng.normal(0, 0.3, (80, 2))
    a = run_of(tmp_path / "a", dict.fromkeys(["drops", "stays", "gains", "same"], base.tolist()))
    b = run_of(tmp_path / "b", {"drops": drop.tolist(), "stays": noise.tolist(), "gains": gain.tolist(), "same": base.tolist()})
    return a, b


def test_verdicts_values_and_words(pair):
    found = compare(*pair, resamples=2000)
    by_name = {d.scorer: d for d in found.differences}
    assert [d.scorer for d in found.differences] == ["drops", "gains", "stays", "same"]  # worse ones first
    assert [d.verdict for d in found.differences] == ["worse", "better", "no detectable difference", "no detectable difference"]
    assert found.headline == "B is worse on drops, B is better on gains, no detectable difference on stays and same."
    tables = [pq.read_table(run / "scores.parquet").to_pylist() for run in pair]
    means = [
        np.array([np.mean([r["score"] for r in t if r["scorer"] == "drops" and r["id"] == f"p{i}"]) for i in range(80)])
        for t in tables
    ]
    drops = by_name["drops"]
    assert drops.estimate.value == pytest.approx((means[1] - means[0]).mean()) and drops.estimate.n == 80
    assert drops.wins == int((means[1] > means[0]).sum()) and drops.wins + drops.losses == 80
    spread = (means[1] - means[0]).std(ddof=1)
    # z(1 - 0.05 / 4 / 2), since four metrics are tested, and z(0.8)
    assert drops.units.needed == np.ceil(((2.497705 + 0.841621) * spread / drops.estimate.value) ** 2)
    assert "more prompts would show it" in by_name["stays"].sentence and by_name["stays"].units.more > 0
    assert "same score in both runs" in by_name["same"].sentence
    assert [c.b - c.a for c in drops.most[:5]] == sorted(means[1] - means[0])[:5]
    mirrored = {d.scorer: d for d in compare(*reversed(pair), resamples=2000).differences}
    assert mirrored["drops"].verdict == "better" and mirrored["drops"].estimate.value == -drops.estimate.value


def test_many_pictures_of_a_prompt_are_one_unit(tmp_path):
    """Six prompts whose pictures are copies are six units, whether there is one copy or a hundred."""
    gaps = [0.3, 0.5, -0.1, 0.4, 0.2, 0.6]
    a = [[0.0]] * 6
    one = compare(run_of(tmp_path / "a", {"m": a}), run_of(tmp_path / "b", {"m": [[g] for g in gaps]})).differences[0]
    many = compare(tmp_path / "a", run_of(tmp_path / "c", {"m": [[g] * 100 for g in gaps]})).differences[0]
    assert one.estimate == pytest.approx(many.estimate) and one.p == many.p and one.units == many.units
    assert one.p == 4 / 64 and one.verdict == "no detectable difference"  # |sum| >= 1.9: itself, 0.1 turned, and mirrored


def test_what_is_not_in_both_is_left_out_counted_and_named(tmp_path):
    nan = float("nan")
    a = run_of(tmp_path / "a", {"m": [[1.0], [2.0], [nan], [4.0, nan]], "only a": [[1.0]] * 4})
    b = run_of(tmp_path / "b", {"m": [[1.5], [2.5], [3.5], [4.5]]}, prompts={1: "another\x1b[31m <i>"})
    found = compare(a, b)
    d = found.differences[0]
    assert found.prompts == 3 and found.only_a == ["prompt 1"] and found.only_b == ["another\x1b[31m <i>"]
    assert d.estimate.n == 2 and d.estimate.left_out == 1 and d.unscored == ["prompt 2"]
    notes = "\n".join(found.notes())
    for part in (
        "only a: only in A",
        "1 prompt(s) are in A only",
        "1 prompt(s) are in B only",
        "A has pictures without a score: 2 refused",
    ):
        assert part in notes
    assert "\x1b" not in notes
    write_comparison(found, a, b, tmp_path / "page.html")
    assert "another" in (page := (tmp_path / "page.html").read_text()) and "<i>" not in page
    json.dumps(as_json(found), allow_nan=False)


def test_runs_that_cannot_be_compared_are_refused(tmp_path, pair):
    other = run_of(tmp_path / "o", {"drops": [[1.0]] * 80}, revision="2")
    with pytest.raises(DatasetError, match=r"no metric in common.*drops: its revision in A is 1 and in B 2"):
        compare(pair[0], other)
    with pytest.raises(DatasetError, match="no prompt in common"):
        compare(pair[0], run_of(tmp_path / "p", {"drops": [[1.0]]}, prompts={0: "else"}))
    with pytest.raises(DatasetError, match="not a protoscore folder"):
        compare(pair[0], tmp_path)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.one_of(st.just(float("nan")), st.floats(-1e6, 1e6))), min_size=1, max_size=7)
)
def test_any_scores_give_finite_json_and_one_verdict(tmp_path_factory, values):
    folder = tmp_path_factory.mktemp("any")
    a = run_of(folder / "a", {"m": [[x] for x, _ in values]})
    b = run_of(folder / "b", {"m": [[y] for _, y in values]})
    found = compare(a, b, resamples=1000)
    d = found.differences[0]
    assert d.estimate.n + d.estimate.left_out == len(values) and found.headline and d.sentence
    if d.estimate.n < 6:
        assert d.verdict in ("no detectable difference", "nothing to compare")  # no exact test can say more
    json.dumps(as_json(found), allow_nan=False)
    write_comparison(found, a, b, folder / "page.html")


def test_exit_codes(pair, cli):
    a, b = map(str, pair)
    assert cli("compare", a, b).returncode == 0
    worse = cli("compare", a, b, "--fail-if-worse")
    assert worse.returncode == 1 and "Failed: drops" in worse.stdout and "Traceback" not in worse.stderr
    assert cli("compare", a, a, "--fail-if-worse", "--fail-below", "-0.01").returncode == 0
    assert cli("compare", a, b, "--fail-below", "-0.9").returncode == 0  # no metric has lost that much
    assert cli("compare", a, b, "--fail-below", "-0.2").returncode == 1
    assert cli("compare", a, "nowhere").returncode == cli("compare", a, b, "--fail-below", "x").returncode == 2
    body = json.loads((pair[1] / "comparison.json").read_text())
    assert body["differences"][0]["verdict"] == "worse" and (pair[1] / "comparison.html").is_file()


def test_a_spreadsheet_runs_no_formula_of_ours(tmp_path):
    hostile = {0: "=cmd|' /C calc'!A0", 1: "+1+1", 2: " @SUM(A1)", 3: "-2", 4: "\t=1", 5: 'a "quoted", =line\nbreak'}
    run = run_of(tmp_path / "r", {"m": [[-1.5]] * 6}, prompts=hostile)
    rows = list(csv.DictReader(export(run, "csv").open(newline="")))
    assert [row["prompt"] for row in rows] == [f"'{hostile[i]}" for i in range(5)] + [hostile[5]]
    assert {row["score"] for row in rows} == {"-1.5"}
    assert [row["prompt"] for row in json.loads(export(run, "json").read_text())] == list(hostile.values())


@pytest.mark.skipif(not T2I.is_dir(), reason="the real pictures of ../shared/data/t2i are not here")
def test_eleven_real_pictures_from_the_command_line(tmp_path, cli, monkeypatch):
    monkeypatch.chdir(
        T2I.parent
    )  # a manifest holds no absolute path, so that a report finds pictures from where they were named
    scored = cli("score", "--images", T2I.name, "--prompts", str(T2I / "prompts.csv"), "-s", "protoscore", "-s", "random",
                 "--out", str(tmp_path / "run"), "--format", "csv")  # fmt: skip
    assert scored.returncode == 0 and "11 pairs, by file name" in scored.stdout, scored.stderr
    rows = list(csv.DictReader((tmp_path / "run" / "scores.csv").open(newline="")))
    wanted = {(r["file"], r["prompt"]) for r in csv.DictReader((T2I / "prompts.csv").open(newline=""))}
    assert {(r["image"], r["prompt"]) for r in rows} == wanted and len(rows) == 22 and {r["status"] for r in rows} == {"ok"}
    assert "protoscore was trained on drawn scenes only" in scored.stderr and "random was" not in scored.stderr
    reported = cli("report", str(tmp_path / "run"))
    page = (tmp_path / "run" / "report.html").read_text()
    assert reported.returncode == 0 and "horned_cat.jpg" in page and "trained on drawn scenes only" in page
    assert page.count("<img ") >= 8  # the lowest and the highest of both metrics
    means = json.loads((tmp_path / "run" / "results.json").read_text())["estimates"]["random"]["all"]["mean"]
    by_prompt = [
        np.mean([float(r["score"]) for r in rows if r["scorer"] == "random" and r["prompt"] == p])
        for p in {p for _, p in wanted}
    ]
    assert means["n"] == 4 and means["value"] == pytest.approx(np.mean(by_prompt))


def test_a_damaged_picture_ends_in_a_state_and_options_that_do_not_fit_are_one_line(tmp_path, cli):
    folder = tmp_path / "pictures"
    folder.mkdir()
    Image.new("RGB", (32, 32)).save(folder / "good.png")
    (folder / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\nno")
    (tmp_path / "p.txt").write_text("a thing\n")
    result = cli(
        "score", "--images", str(folder), "--prompts", str(tmp_path / "p.txt"), "-s", "random", "--out", str(tmp_path / "run")
    )
    assert result.returncode == 0, result.stderr
    rows = {r["image"]: r for r in pq.read_table(tmp_path / "run" / "scores.parquet").to_pylist()}
    assert rows["good.png"]["status"] == "ok" and rows["bad.png"]["status"] != "ok" and rows["bad.png"]["score"] is None
    for wrong in (["--prompts", "p.txt"], [str(folder), "--images", str(folder)], []):
        refused = cli("score", *wrong, "-s", "random", "--out", str(tmp_path / "other"))
        assert refused.returncode == 2 and refused.stderr.count("\n") == 1 and not (tmp_path / "other").exists()
