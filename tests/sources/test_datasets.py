"""One way in: whatever rows come from, they have ids, pictures and fields; a finished run is a source; ids are kept apart."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from protoscore.benchmarks import report
from protoscore.benchmarks.protobias import ProtoBias
from protoscore.benchmarks.protobias.cells import CellRows
from protoscore.catalog import load
from protoscore.errors import DatasetError
from protoscore.scoring.stage import score_rows
from protoscore.sources import columns_of, open_rows
from protoscore.sources.records import HubRecords
from protoscore.sources.rows import View
from tests.conftest import ROOT, run
from tests.controls import png, table

PICTURE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def parquet(path, rows, pictures=()):
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        columns[name] = pa.array(values, PICTURE if name in pictures else None)
    pq.write_table(pa.table(columns), path)


def test_a_table_without_pictures_is_a_source_of_texts(tmp_path):
    (tmp_path / "texts.csv").write_text("id,question\n0,Who?\n1,What?\n")
    rows = list(open_rows(tmp_path / "texts.csv").rows())
    assert [(r.id, r.images, r.fields["question"]) for r in rows] == [("0", (), "Who?"), ("1", (), "What?")]


def test_pictures_as_bytes_as_struct_and_as_paths_are_pictures(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.png").write_bytes(png(1))
    rows = [{"id": 0, "image": {"bytes": png(0), "path": None}}, {"id": 1, "image": {"bytes": None, "path": "a.png"}},
            {"id": 2, "image": {"bytes": None, "path": "../../secret.png"}}, {"id": 3, "image": None}]  # fmt: skip
    parquet(tmp_path / "data" / "test-0.parquet", rows, ("image",))
    assert [(r.id, r.images) for r in open_rows(tmp_path).rows()] == [
        ("0", (png(0),)), ("1", (png(1),)), ("2", (b"",)), ("3", (b"",)),
    ]  # fmt: skip
    assert columns_of(tmp_path) == {"id", "image"}


def test_rows_from_the_middle_are_a_slice_of_all(tmp_path):
    for part in range(3):
        parquet(tmp_path / f"test-{part}.parquet", [{"id": f"{part}-{n}", "image": png(part, n)} for n in range(5)])
    rows = open_rows(tmp_path)
    everything = list(rows.rows())
    assert len(rows) == 15 and list(rows.rows(4, 11)) == everything[4:11]
    assert list(View(rows, 7).rows(5)) == everything[5:7]


def test_two_rows_with_one_id_are_refused_by_name(tmp_path):
    parquet(tmp_path / "set" / "a.parquet", [{"id": "x", "text": "a", "image": png(n)} for n in range(2)])
    with pytest.raises(DatasetError, match="two rows are called 'x'"):
        score_rows(open_rows(tmp_path / "set"), [load("scorers", "random")], tmp_path / "run")


def test_a_picture_that_a_dataset_of_the_hub_names_is_never_a_file_of_the_users(tmp_path, monkeypatch):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.png").write_bytes(png("secret"))
    named = [
        {"id": n, "image": {"bytes": None, "path": path}} for n, path in enumerate(["secret.png", str(tmp_path / "secret.png")])
    ]
    parquet(
        tmp_path / "set" / "data" / "test-0.parquet", [*named, {"id": 2, "image": {"bytes": png(0), "path": None}}], ("image",)
    )
    found = HubRecords(str(tmp_path / "set"), "test").read(0, 3)
    assert [record["image"]["bytes"] for record in found] == [b"", b"", png(0)]


def listing(folder, name, body, count=3):
    (folder / "sub").mkdir(parents=True)
    for n in range(count):
        (folder / ("sub" if n else ".") / f"{n}.png").write_bytes(png(n))
    (folder / name).write_text(body)
    return folder


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("metadata.csv", "file_name,text\n0.png,a\nsub/1.png,b\n"),
        ("metadata.jsonl", '{"file_name": "0.png", "text": "a"}\n{"file_name": "sub/1.png", "text": "b"}\n'),
        ("list.csv", "file;prompt\n0.png;a\nsub/1.png;b\n"),
    ],
)
def test_a_list_beside_pictures_is_used_by_folder_and_by_file(tmp_path, name, body):
    folder = listing(tmp_path / "p", name, body)
    for source in (folder, folder / name):
        rows = [(r.images, r.fields["text"], r.fields["image"]) for r in open_rows(source).rows()]
        assert rows == [((png(0),), "a", "0.png"), ((png(1),), "b", "sub/1.png")]


@pytest.mark.parametrize(
    ("name", "body", "says"),
    [
        ("prompts.csv", "prompt\na\nb\nc\n", "3 pictures and prompts.csv has no column file_name"),
        ("metadata.jsonl", '{"file_name": "0.png", "text": "a\\ud83d"}', "line 1: text holds half of a character"),
        ("metadata.jsonl", '{"file_name": ["0.png"]}', "line 1: file_name must be text"),
        ("metadata.jsonl", '{"file_name": "0.png"}\n{"text": "b"}', "1 line(s) of .* name no picture: 'line 2'"),
    ],
)
def test_a_list_that_leaves_pictures_out_is_refused(tmp_path, name, body, says):
    folder = listing(tmp_path / "p", name, body)
    with pytest.raises(DatasetError, match=says.replace("(s)", r"\(s\)")):
        open_rows(folder)


def test_several_tables_in_a_folder_are_named_and_one_is_taken(tmp_path):
    parquet(tmp_path / "one" / "test-0.parquet", [{"id": 1, "text": "a"}])
    parquet(tmp_path / "two" / "test-0.parquet", [{"id": 2, "words": "b"}])
    with pytest.raises(DatasetError, match="name one: --config one or two"):
        open_rows(tmp_path)
    assert [r.fields["words"] for r in open_rows(tmp_path, config="two").rows()] == ["b"]


def test_a_split_without_rows_is_said_to_be_one(tmp_path):
    pq.write_table(pa.table({"id": pa.array([], pa.int64()), "image": pa.array([], PICTURE)}), tmp_path / "test-0.parquet")
    with pytest.raises(DatasetError, match="no rows in the split 'test'"):
        open_rows(tmp_path)


def test_null_texts_and_null_pictures_end_in_states_in_score_and_in_judge_alike(tmp_path):
    """The same rows are read by both; nobody is asked about "None"."""
    rows = [{"id": n, "text": text, "image": None if n == 3 else png(n)} for n, text in enumerate(["a", None, " ", "d"])]
    parquet(tmp_path / "set" / "test-0.parquet", rows)
    (tmp_path / "r.jsonl").write_text('{"reply": {"score": 3}}')
    for command in (
        ["score", "set", "-s", "random", "--out", "scored"],
        ["judge", "fairjudge/alignment", "--items", "set", "-j", "scripted:r.jsonl", "--out", "judged"],
    ):
        result = run("-c", "from protoscore.cli import main; main()", *command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)})
        assert result.returncode == 0, result.stderr
    scores = [(r["id"], r["status"]) for r in table(tmp_path / "scored")]
    verdicts = pq.read_table(tmp_path / "judged" / "verdicts.parquet").to_pylist()
    assert scores == [("0", "ok"), ("1", "invalid"), ("2", "invalid"), ("3", "invalid")]
    assert [(r["item"], r["state"]) for r in verdicts] == [("0", "ok"), ("1", "error"), ("2", "error"), ("3", "error")]
    assert ["empty" in r["reason"] for r in verdicts] == [False, True, True, False]


def authors_rows(count=30, versions=3):
    """In the layout of the authors' public set: an id names the item, further columns say which of its rows one is."""
    return [
        {"id": f"ani{n // versions:05}", "domain": "animal", "knob": "count", "text": f"a bird with {n // versions} stones",
         "model": "w", "group_category": None, "image_model_short": f"m{n % versions}"}
        | {f"{side}_image": {"bytes": png(n, side), "path": None} for side in ("correct", "adversarial")}
        for n in range(count)
    ]  # fmt: skip


def test_rows_of_the_authors_set_are_all_used_and_the_item_is_the_cluster(tmp_path):
    parquet(tmp_path / "set" / "data" / "test-0.parquet", authors_rows(), ("correct_image", "adversarial_image"))
    score_rows(CellRows(str(tmp_path / "set")), [load("scorers", "random")], tmp_path / "run")
    report(tmp_path / "run", ProtoBias(resamples=4000))
    found = json.loads((tmp_path / "run" / "results.json").read_text())["estimates"]["random"]["all"]["incongruent"]
    scored = table(tmp_path / "run")
    won = np.array([a["score"] > b["score"] for a, b in zip(scored[::2], scored[1::2], strict=True)], float)
    assert len({r["pair"] for r in scored}) == 30 == found["n"] and found["value"] == pytest.approx(won.mean())
    drawn = np.random.default_rng(0).integers(0, 10, (4000, 10))  # ten items of three rows each, resampled whole
    means = won.reshape(10, 3).mean(1)[drawn].mean(1)
    np.testing.assert_allclose([found["low"], found["high"]], np.quantile(means, [0.025, 0.975]), atol=0.03)


def test_true_doubles_of_the_authors_set_are_refused(tmp_path):
    rows = authors_rows(6)
    parquet(tmp_path / "set" / "data" / "test-0.parquet", [*rows, rows[0]], ("correct_image", "adversarial_image"))
    with pytest.raises(DatasetError, match="two rows are called 'ani00000-"):
        score_rows(CellRows(str(tmp_path / "set")), [load("scorers", "random")], tmp_path / "run")


PROTOCOLS = {
    "answer": ("answer: str", "Answer freely: {{ item.question | quoted }}"),
    "grade": ("grade: Literal['good', 'bad']", "Is {{ item.reply | quoted }} an answer to {{ item.question | quoted }}?"),
}


def protocol(folder, name):
    field, prompt = PROTOCOLS[name]
    (folder / f"{name}.py").write_text(
        "from typing import Literal\nfrom pydantic import BaseModel\nfrom protoscore.asking.protocol import read_protocol\n"
        f"class Given(BaseModel):\n    {field}\ndef create():\n    return read_protocol(__file__, Given)\n"
    )
    (folder / f"{name}.md").write_text(prompt + " Reply like {{ shape }}")
    return str(folder / f"{name}.py")


MODEL = """
import re


def reply(request):
    number = re.search(r"Question (\\d)", request.prompt)[1]
    return '{"answer": "I see %d pictures, number %s"}' % (len(request.images), number)
"""
JUDGE = """
import re


def reply(request):
    number = int(re.search(r"number (\\d)", request.prompt)[1])
    assert f"I see {len(request.images)} pictures" in request.prompt
    return '{"grade": "%s"}' % ("good" if number % 2 else "bad")
"""


@pytest.mark.parametrize("pictures", [True, False])
def test_open_answers_of_one_model_are_judged_by_a_second_in_two_commands(tmp_path, pictures):
    """The second one sees the pictures that the first one saw, and none where there were none."""
    folder = tmp_path / "items"
    folder.mkdir()
    with (folder / "metadata.csv").open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["file_name", "question"] if pictures else ["id", "question"])
        for n in range(6):
            (folder / f"{n}.png").write_bytes(png(n))
            writer.writerow([f"{n}.png" if pictures else n, f"Question {n}?"])
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "judge.py").write_text(JUDGE)
    for name, items, judge, out in (
        ("answer", "items" if pictures else "items/metadata.csv", "scripted:model.py", "answers"),
        ("grade", "answers", "scripted:judge.py", "grades"),
    ):
        command = ("judge", protocol(tmp_path, name), "--items", items, "--judge", judge, "--out", out)
        result = run("-c", "from protoscore.cli import main; main()", *command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)})
        assert result.returncode == 0, result.stderr
    rows = pq.read_table(tmp_path / "grades" / "verdicts.parquet").to_pylist()
    assert [row["answer_grade"] for row in rows] == ["bad", "good"] * 3
    assert [row["question"] for row in rows] == [f"Question {n}?" for n in range(6)]
    assert all(f"I see {int(pictures)} pictures" in row["item_reply" if "item_reply" in row else "reply"] for row in rows)
