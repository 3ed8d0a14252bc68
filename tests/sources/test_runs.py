"""A finished run is a source: its replies or scores, with the pictures of what they are about where those are to be had."""

from __future__ import annotations

import hashlib
import json
import shutil

import pyarrow.parquet as pq
import pytest

from protoscore.benchmarks.protobias.cells import CellRows
from protoscore.sources import open_rows
from tests.conftest import ROOT, run
from tests.controls import png, write_controls

PROTOCOL = (
    "from typing import Literal\nfrom pydantic import BaseModel\nfrom protoscore.asking.protocol import read_protocol\n"
    "class Given(BaseModel):\n    grade: Literal['good', 'bad']\ndef create():\n    return read_protocol(__file__, Given)\n"
)
MODEL = """
NUMBER = 0


def reply(request):
    global NUMBER
    NUMBER += 1
    return '{"grade": "%s"}' % ("bad" if WAVERS and NUMBER % 2 else "good")
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "look.py").write_text(PROTOCOL)
    (tmp_path / "look.md").write_text("Look at {{ item.text | quoted }}. Reply like {{ shape }}")
    (tmp_path / "grade.py").write_text(PROTOCOL)
    (tmp_path / "grade.md").write_text("Is {{ item.reply | quoted }} right? Reply like {{ shape }}")
    (tmp_path / "one.py").write_text("WAVERS = False\n" + MODEL)
    (tmp_path / "two.py").write_text("WAVERS = True\n" + MODEL)
    return tmp_path


def own_pictures(place, count=4):
    (place / "pictures" / "sub").mkdir(parents=True)
    lines = []
    for n in range(count):
        name = f"sub/{n}.png" if n % 2 else f"{n}.png"
        (place / "pictures" / name).write_bytes(png(n))
        lines.append(json.dumps({"file": name, "prompt": f"text {n}"}))
    (place / "prompts.jsonl").write_text("\n".join(lines))
    return ["--images", "pictures", "--prompts", "prompts.jsonl"]


def command(place, *arguments, code=0):
    result = run("-c", "from protoscore.cli import main; main()", *arguments, cwd=place, env={"PYTHONPATH": str(ROOT)})
    assert result.returncode == code and "Traceback" not in result.stderr, result.stderr
    return result


def judged(place, protocol, *source, out, judge="one.py", extra=(), code=0):
    return command(place, "judge", f"{protocol}.py", *source, "-j", f"scripted:{judge}", "--out", out, *extra, code=code)


def shown(place, source, **options):
    """(item, its pictures) of each row, read where the commands run."""
    code = f"""
import hashlib, json
from protoscore.cli.inputs import rows_from
rows = rows_from({str(source)!r}, None, None, {{}}, "test", None, [], [], None, {options.get("about")!r})
print(json.dumps([(r.id, r.fields["item"], r.fields.get("text"), [hashlib.sha256(i).hexdigest() for i in r.images])
                  for r in rows.rows()]))
"""
    result = run("-c", code, cwd=place, env={"PYTHONPATH": str(ROOT)})
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), result.stderr


def pictures_of(rows):
    return [(row.id, [hashlib.sha256(image).hexdigest() for image in row.images]) for row in rows]


def test_a_run_over_own_pictures_brings_them_along_from_subfolders_too(place):
    from protoscore.sources.pairing import OwnImages

    judged(place, "look", *own_pictures(place), out="answers")
    rows, said = shown(place, "answers")
    expected = pictures_of(OwnImages(place / "pictures", place / "prompts.jsonl").rows())
    assert [(item, images) for _, item, _, images in rows] == expected and said == ""
    judged(place, "grade", "--items", "answers", out="grades")
    assert pq.read_table(place / "grades" / "verdicts.parquet").num_rows == 4


def test_a_run_over_four_cells_brings_the_picture_of_each(place):
    write_controls(place / "cells", 3)
    judged(place, "look", "--items", "cells", out="answers")
    rows, said = shown(place, "answers")
    assert [(item, images) for _, item, _, images in rows] == pictures_of(CellRows(str(place / "cells")).rows())
    assert len(rows) == 12 and said == ""


def test_replies_of_two_judges_about_one_item_are_two_rows_with_its_picture(place):
    """The second judge comes after all of the first one's replies, so that earlier rows are read again."""
    source = own_pictures(place)
    (place / "look.again.md").write_text("Again: {{ item.text | quoted }}. Reply like {{ shape }}")
    judged(place, "look", *source, out="both", judge="two.py",
           extra=("--second", "scripted:one.py", "--variant", "again"))  # fmt: skip
    rows, _ = shown(place, "both")
    by_item = {}
    for row_id, item, _, images in rows:
        by_item.setdefault(item, []).append((row_id, images))
    assert len({row_id for row_id, *_ in rows}) == len(rows) == 12
    for item, some in by_item.items():
        assert [row_id for row_id, _ in some] == [item, f"{item}#2", f"{item}#3"]
        assert len({tuple(images) for _, images in some}) == 1 and some[0][1]


def test_pictures_that_moved_are_named_and_others_are_never_taken_for_them(place):
    write_controls(place / "cells", 3)
    judged(place, "look", "--items", "cells", out="answers")
    expected, _ = shown(place, "answers")
    shutil.move(place / "cells", place / "moved")
    texts, said = shown(place, "answers")
    assert all(images == [] for *_, images in texts) and "name it with --source" in said
    assert shown(place, "answers", about="moved")[0] == expected
    write_controls(place / "cells", 3, picture=lambda *seed: png("another", *seed))
    assert shown(place, "answers")[0] == texts, "other pictures lie under the old name"
    result = judged(place, "grade", "--items", "moved", "--source", "cells", out="x", code=2)
    assert "is not a finished run" in result.stderr


def test_scores_are_rows_by_scorer_with_their_pictures(place):
    command(place, "score", *own_pictures(place), "-s", "random", "-s", "constant", "--out", "scored")
    rows, _ = shown(place, "scored")
    assert len(rows) == len({row_id for row_id, *_ in rows}) == 8 and all(len(images) == 1 for *_, images in rows)
    records = [row.fields for row in open_rows(place / "scored").rows()]
    assert [r["scorer"] for r in records] == ["random"] * 4 + ["constant"] * 4 and records[4]["score"] == 0.5


def test_a_failed_question_stays_in_the_chain_with_its_state(place):
    """One of four has no text, so it was never asked; whoever grades the replies has no reply of it to grade."""
    source = own_pictures(place)
    lines = (place / "prompts.jsonl").read_text().splitlines()
    (place / "prompts.jsonl").write_text("\n".join([*lines[:3], json.dumps({"file": "sub/3.png", "prompt": None})]))
    first = judged(place, "look", *source, out="answers")
    assert "3 ok, 1 error of 4 items" in first.stdout and "1 of 4 prompts are empty" in first.stderr
    assert "3 ok, 1 error of 4 items" in judged(place, "grade", "--items", "answers", out="grades").stdout
    last = pq.read_table(place / "grades" / "verdicts.parquet").to_pylist()[3]
    assert last["raw"] == "" and last["item_state"] == "error" and "empty" in last["reason"]


def test_a_paid_run_goes_on_after_its_pictures_moved_and_not_on_other_ones(place):
    source = own_pictures(place)
    judged(place, "look", *source, out="run")
    shutil.move(place / "pictures", place / "elsewhere")
    shutil.move(place / "prompts.jsonl", place / "elsewhere" / "p.jsonl")
    again = judged(place, "look", "--images", "elsewhere", "--prompts", "elsewhere/p.jsonl", out="run")
    assert "4 ok of 4 items; 0 asked now" in again.stdout
    other = (place / "elsewhere" / "p.jsonl").read_text().replace("text 1", "text one")
    (place / "elsewhere" / "p.jsonl").write_text(other)
    refused = judged(place, "look", "--images", "elsewhere", "--prompts", "elsewhere/p.jsonl", out="run", code=2)
    assert "holds the result of other parameters" in refused.stderr


def test_no_manifest_names_a_folder_of_the_users_machine(place):
    own_pictures(place)
    own = ["--images", str(place / "pictures"), "--prompts", str(place / "prompts.jsonl")]
    command(place, "score", *own, "-s", "random", "--out", "scored")
    judged(place, "look", *own, out="judged")
    command(place, "report", "scored")
    for name in ("scored/manifest.json", "scored/report.html", "judged/manifest.json", "judged/plan.json"):
        assert str(place) not in (place / name).read_text(), name
