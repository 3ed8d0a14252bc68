"""The scoring stage: right numbers, failures as states, and the same table whatever interrupted it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from protoscore.benchmarks import report
from protoscore.benchmarks.protobias import ProtoBias
from protoscore.benchmarks.protobias.cells import CellRows
from protoscore.benchmarks.protobias.schema import Cell
from protoscore.benchmarks.protobias.tables import read_scores
from protoscore.catalog import load
from protoscore.schema import Status
from protoscore.scorers import Score
from protoscore.scoring.stage import score_rows
from protoscore.sources.records import HubRecords, picture_bytes
from tests.conftest import ROOT, cli
from tests.controls import Probe, png, questions, table


def test_every_cell_is_scored_once_and_rightly(dataset, tmp_path):
    probe = Probe()
    counts = score_rows(CellRows(str(dataset)), [probe], tmp_path)
    source = pq.read_table(dataset / "foils" / "test-00000.parquet").to_pylist()
    assert counts.rows == counts.scored_now == probe.calls == 10 * len(source)
    scores = {(row["pair"], row["cell"]): row["score"] for row in table(tmp_path)}
    for row in source:
        for cell in Cell:
            image = Image.open(io.BytesIO(row[f"{cell.value}_image"]["bytes"])).convert("RGB")
            assert scores[f"{row['triplet']}-{row['rendition']}", cell.value] == pytest.approx(np.asarray(image).mean())
    again = Probe()
    assert score_rows(CellRows(str(dataset)), [again], tmp_path).scored_now == again.calls == 0


def test_direction_is_settled_in_the_table(dataset, tmp_path):
    score_rows(questions(dataset, 5), [Probe(name="up"), Probe(name="down", higher=False)], tmp_path)
    up, down = read_scores(tmp_path)
    assert np.array_equal(up.scores, -down.scores)
    assert up.quantities(resamples=100).incongruent.value == 1 - down.quantities(resamples=100).incongruent.value


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Score(float("nan")), Status.INVALID),
        (Score(float("inf")), Status.INVALID),
        (Score(None), Status.INVALID),
        (Score(None, Status.ABSTAINED, "unsure"), Status.ABSTAINED),
        (Score(3.0, Status.REFUSED, "policy"), Status.REFUSED),
    ],
)
def test_a_failed_measurement_is_a_state_and_never_a_number(dataset, tmp_path, answer, status):
    counts = score_rows(questions(dataset, 3), [Probe(answer)], tmp_path)
    rows = table(tmp_path)
    assert counts.not_ok == len(rows) == 30
    assert all(row["status"] == status.value and row["score"] is None for row in rows)
    quantities = read_scores(tmp_path)[0].quantities(resamples=100)
    assert quantities.incongruent.n == 0 and quantities.incongruent.left_out == 3


def test_floors(dataset, tmp_path):
    score_rows(CellRows(str(dataset)), [load("scorers", "constant"), load("scorers", "random")], tmp_path)
    constant, random_ = (t.quantities(resamples=200) for t in read_scores(tmp_path))
    assert constant.incongruent.value == constant.congruent.value == 0 and constant.preference.value == 0.5
    assert constant.incongruent.ties == constant.incongruent.n
    assert random_.incongruent.low < 0.5 < random_.incongruent.high and random_.gap.low < 0 < random_.gap.high


SCORE = "from protoscore.cli import main; main()"


SLOW = """import time
from protoscore.scorers.random import Random
batch_size, drawn = 8, Random(seed=5)

def score(images, texts):
    time.sleep(0.1)
    return drawn.score(images, texts)
"""


def score_command(dataset: Path, out: Path) -> list[str]:
    metric = dataset.parent / "slow.py"  # as slow as a real one; the floors are too fast to be killed halfway
    metric.write_text(SLOW)
    return [sys.executable, "-c", SCORE, "score", str(dataset), "-s", "random", "-s", str(metric), "--out", str(out)]


def test_killed_at_random_moments_the_table_is_the_same_bit_for_bit(dataset, tmp_path):
    subprocess.run(score_command(dataset, tmp_path / "calm"), cwd=ROOT, check=True, capture_output=True)
    rng = random.Random(int(os.environ.get("PROTOSCORE_TEST_SEED", "3")))
    stormy = tmp_path / "stormy"
    for _ in range(6):
        process = subprocess.Popen(
            score_command(dataset, stormy), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(rng.uniform(0.6, 3.2))
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run(score_command(dataset, stormy), cwd=ROOT, check=True, capture_output=True)
    digests = {hashlib.sha256((d / "scores.parquet").read_bytes()).hexdigest() for d in (tmp_path / "calm", stormy)}
    assert len(digests) == 1
    assert (stormy / "manifest.json").read_bytes() == (tmp_path / "calm" / "manifest.json").read_bytes()


def test_ctrl_c_says_how_to_go_on_and_keeps_what_is_done(dataset, tmp_path):
    process = subprocess.Popen(
        score_command(dataset, tmp_path), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored where the suite runs in the background
    )  # fmt: skip
    store = tmp_path / "results.sqlite"
    deadline = time.monotonic() + 60
    while not store.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.7)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 2 and "same command goes on" in error and "Traceback" not in error
    assert not (tmp_path / "scores.parquet").exists()
    subprocess.run(score_command(dataset, tmp_path), cwd=ROOT, check=True, capture_output=True)
    assert len(table(tmp_path)) == 20 * pq.ParquetFile(dataset / "foils" / "test-00000.parquet").metadata.num_rows


@pytest.mark.parametrize("command", ["triplets", "score"])
def test_a_full_disk_is_one_line_and_nothing_half_written(dataset, tmp_path, command):
    arguments = {
        "triplets": ["triplets", "--out", str(tmp_path / "out")],
        "score": ["score", str(dataset), "-s", "random", "--out", str(tmp_path / "out")],
    }[command]
    result = subprocess.run(
        [sys.executable, "-c", SCORE, *arguments], cwd=ROOT, text=True, capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
    )  # fmt: skip
    assert result.returncode == 2, result.stderr
    line = result.stderr.strip().splitlines()[-1]
    assert "disk is full" in line and "again" in line and "Traceback" not in result.stderr
    assert not list((tmp_path / "out").rglob("*.parquet")) and not list((tmp_path / "out").rglob("*.part"))
    assert cli(*arguments).returncode == 0, "the same command must go on once there is room"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["score", "{data}", "-s", "protscore", "--out", "{out}"], "did you mean 'protoscore'?"),
        (["score", "{tmp}", "-s", "random", "--out", "{out}"], "has no text to score"),
        (["score", "nobody/nothing-here", "-s", "random", "--out", "{out}"], "neither a folder here nor a dataset"),
        (["score", "{data}", "-s", "protoscore:{tmp}", "--out", "{out}"], "no ProtoScore checkpoint"),
        (["score", "{data}", "-s", "random", "--out", "{out}", "--limit", "0"], "--limit"),
        (["report", "{tmp}"], "not a protoscore folder"),
        (["rate", "A bird.", "{tmp}/text.png"], "not a readable picture"),
        (["rate", "A bird.", "{tmp}/none.png"], "No such file"),
        (["triplets", "--out", "{out}", "--taxonomy", "{tmp}/bad.yaml"], "bad.yaml:2:"),
        (["triplets", "--out", "{out}", "--animals", "-4"], "cannot be negative"),
        (["images", "{tmp}", "--out", "{out}"], "not a protoscore folder"),
        (["frobnicate"], "No such command"),
    ],
)
def test_bad_input_is_one_line_exit_code_2_and_nothing_written(dataset, tmp_path, arguments, says):
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "bad.yaml").write_text("knobs: {}\nunknown: 3\n")
    places = {"data": str(dataset), "tmp": str(tmp_path), "out": str(tmp_path / "out")}
    result = cli(*(a.format(**places) for a in arguments))
    assert result.returncode == 2, result.stderr
    lines = result.stderr.strip().splitlines()
    assert says in lines[-1] and "Traceback" not in result.stderr
    assert not list((tmp_path / "out").rglob("*.parquet")) if (tmp_path / "out").exists() else True


def test_a_hub_dataset_gives_the_rows_of_its_files(dataset, tmp_path, monkeypatch):
    """Through ``datasets``, as for a Hub id; the published folder stands in for the Hub, which tests cannot reach."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    published, files = HubRecords(str(dataset), "test", configs=("foils", None)), CellRows(str(dataset))._records
    assert published.columns == files.columns and published.pictures == files.pictures and len(published) == len(files)
    pictures = lambda records: [[picture_bytes(r[name]) for name in files.pictures] for r in records.read(3, 6)]  # noqa: E731
    assert pictures(published) == pictures(files)


def test_a_dataset_of_two_pictures_gives_the_papers_accuracy_and_nothing_more(tmp_path, capsys):
    """In the columns of the authors' published set: no triplet, no rendition, domains in the singular; in the Hub's layout."""
    rows = [
        {"id": f"ani{n:05}", "domain": "animal", "knob": "count", "text": "a bird with two stones"}
        | {f"{side}_image": {"bytes": png(n, side), "path": None} for side in ("correct", "adversarial")}
        for n in range(6)
    ]
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    text = [(name, pa.string()) for name in ("id", "domain", "knob", "text")]
    schema = pa.schema([*text, ("correct_image", image), ("adversarial_image", image)])
    (tmp_path / "set" / "data").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "set" / "data" / "test-00000.parquet")
    source = CellRows(str(tmp_path / "set"))
    assert list(source.layout.pictures) == [Cell.NON_CORRECT, Cell.PROTO_VIOLATED] and len(source) == 12
    score_rows(source, [load("scorers", "random")], tmp_path / "run")
    scored = table(tmp_path / "run")
    assert [(r["id"], r["cell"], r["domain"]) for r in scored[:2]] == [
        ("ani00000-0-non_correct", "non_correct", "animals"), ("ani00000-0-proto_violated", "proto_violated", "animals"),
    ]  # fmt: skip
    won = np.mean([right["score"] > wrong["score"] for right, wrong in zip(scored[::2], scored[1::2], strict=True)])
    report(tmp_path / "run", ProtoBias(resamples=200))
    found = json.loads((tmp_path / "run" / "results.json").read_text())["estimates"]["random"]["all"]
    assert found["incongruent"]["value"] == pytest.approx(won) and found["incongruent"]["n"] == 6
    assert found["congruent"]["n"] == found["sensitivity"]["n"] == 0 and "nan" not in capsys.readouterr().out
