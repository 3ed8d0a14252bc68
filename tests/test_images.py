"""Pictures of any benchmark by any generator: no failure is lost, nothing is drawn twice, the bytes are always the same."""

from __future__ import annotations

import io
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import protoscore.images as stage
from protoscore.errors import DatasetError, MissingExtra
from protoscore.folder import locked, parts, read_manifest, read_rows, whole_file
from protoscore.generators import Generated, Wanted
from protoscore.images import make_pictures
from protoscore.scenes.spec import SceneSpec
from tests.conftest import ROOT, cli


class Plain:
    """Draws one colour per seed, and whatever ``odd`` says for an id; notes what it was asked for, and what it has drawn."""

    name, revision, photographic, batch_size = "plain", "1", False, 8

    def __init__(self, odd: dict[str, Any] | None = None, log: Path | None = None, seconds: float = 0.0):
        self.parameters: dict[str, Any] = {}
        self.odd, self.asked, self.log, self.seconds = odd or {}, [], log, seconds

    def generate(self, wanted: Sequence[Wanted]) -> list[Generated]:
        self.asked += [one.id for one in wanted]
        return [self._one(one) for one in wanted]

    def _one(self, one: Wanted) -> Generated:
        odd = self.odd.get(one.id)
        if isinstance(odd, BaseException):
            raise odd
        time.sleep(self.seconds)
        if self.log:
            with self.log.open("a") as file:
                file.write(f"{one.id}\n")
        noise = np.random.default_rng(one.seed).integers(1, 256, (24, 24, 3), dtype=np.uint8)
        return odd if odd is not None else Generated(Image.fromarray(noise), geometry=[["box", 0.5]])


def wishes(count: int, group: int = 1) -> list[Wanted]:
    grouped = {n: str(n // group) if group > 1 else "" for n in range(count)}
    return [Wanted(f"w{n}", f"picture {n}", n, fields={"colour": "red"}, group=grouped[n]) for n in range(count)]


def make(out: Path, generator: Plain, wanted: list[Wanted] | None = None, **options: Any) -> dict[str, int]:
    return make_pictures(wishes(100) if wanted is None else wanted, generator, out, {"n": 100}, **options)


def rows(out: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in read_rows(parts(out))}


def content(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.iterdir()) if not path.name.startswith(".")}


def test_one_that_fails_leaves_ninety_nine(tmp_path):
    assert make(tmp_path, Plain({"w42": RuntimeError("out of memory")})) == {"ok": 99, "error": 1}
    found = rows(tmp_path)
    assert list(found) == [f"w{n}" for n in range(100)]
    assert found["w42"]["status"] == "error" and "out of memory" in found["w42"]["reason"] and found["w42"]["image"] is None
    assert {row["reason"] for name, row in found.items() if name != "w42"} == {""}
    first = found["w0"]
    assert (first["text"], first["seed"], first["colour"], first["geometry"]) == ("picture 0", 0, "red", '[["box", 0.5]]')
    assert Image.open(io.BytesIO(first["image"]["bytes"])).size == (24, 24) and first["image"]["path"].startswith("w0-")


@pytest.mark.parametrize(
    ("made", "status", "reason"),
    [
        (Generated(Image.new("RGB", (8, 8))), "invalid", "black"),
        (Generated(np.full((8, 8, 3), np.nan)), "invalid", "not finite"),
        (Generated(np.full((8, 8, 3), 2.0)), "invalid", "outside of [0, 1]"),
        (Generated(np.zeros((8, 8))), "invalid", "shape (8, 8)"),
        (Generated(np.zeros((8, 8, 3), np.float32)), "invalid", "black"),
        (Generated(None), "error", "no picture and no reason"),
        (Generated(None, "refused"), "error", "no picture and no reason"),
        (Generated(None, "refused", "not of people"), "refused", "not of people"),
        (Generated(np.full((8, 8, 3), 0.5)), "ok", ""),
        (SystemExit(0), "error", "SystemExit"),
    ],
)
def test_what_is_no_picture_is_a_state(tmp_path, made, status, reason):
    counts = make(tmp_path, Plain({"w3": made}), wishes(5))
    assert counts == Counter({"ok": 4}) + Counter({status: 1})
    row = rows(tmp_path)["w3"]
    assert row["status"] == status and reason in row["reason"] and (row["image"] is None) == (status != "ok")


def test_a_float_picture_keeps_its_values(tmp_path):
    values = np.linspace(0, 1, 192).reshape(8, 8, 3)
    make(tmp_path, Plain({"w0": Generated(values)}), wishes(1))
    shown = np.asarray(Image.open(io.BytesIO(rows(tmp_path)["w0"]["image"]["bytes"])))
    assert np.abs(shown - values * 255).max() <= 0.5


def test_what_would_meet_every_picture_ends_the_stage(tmp_path):
    with pytest.raises(MissingExtra):
        make(tmp_path, Plain({"w42": MissingExtra("diffusers", "generate")}))
    again = Plain()
    assert make(tmp_path, again) == {"ok": 100}
    assert again.asked == [f"w{n}" for n in range(40, 100)], "the batches before it were kept"


def test_one_refused_takes_its_group_out_and_no_other(tmp_path):
    make(tmp_path, Plain({"w5": Generated(None, "refused", "no such thing")}), wishes(12, group=4))
    assert [row["status"] for row in rows(tmp_path).values()] == ["ok"] * 4 + ["refused"] * 4 + ["ok"] * 4
    assert read_manifest(tmp_path)["refusals"] == {"no such thing": 4}


def test_parts_are_bounded_by_bytes_and_by_rows_and_cut_no_group(tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "PART_BYTES", 20_000)  # of pictures of about 1,800 bytes
    make(tmp_path / "bytes", Plain(), wishes(100, group=4))
    sizes = [pq.read_metadata(path).num_rows for path in parts(tmp_path / "bytes")]
    assert set(sizes[:-1]) == {12} and sum(sizes) == 100
    monkeypatch.setattr(stage, "PART_BYTES", 10**9)
    monkeypatch.setattr(stage, "PART_ROWS", 30)
    make(tmp_path / "rows", Plain(), wishes(100, group=4))
    assert [pq.read_metadata(path).num_rows for path in parts(tmp_path / "rows")] == [32, 32, 32, 4]


def test_only_what_failed_is_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "PART_ROWS", 30)
    out, again = tmp_path / "out", Plain()
    make(out, Plain({"w42": RuntimeError("busy"), "w7": Generated(None, "refused", "no")}))
    other = {path: path.stat().st_mtime_ns for path in parts(out) if path.name != "part-00001.parquet"}
    assert make(out, again, retry=["error"]) == {"ok": 99, "refused": 1}
    assert again.asked == ["w42"] and other == {path: path.stat().st_mtime_ns for path in other}
    make(out, Plain(), retry=["refused"])
    make(tmp_path / "whole", Plain())
    assert content(out) == content(tmp_path / "whole")


def test_a_repeat_draws_nothing_and_other_wishes_are_refused(tmp_path):
    make(tmp_path, Plain())
    again = Plain()
    before = content(tmp_path)
    assert make(tmp_path, again) == {"ok": 100} and not again.asked and content(tmp_path) == before
    changed = wishes(100)
    changed[50] = changed[50]._replace(text="another")
    with pytest.raises(DatasetError, match="other pictures"):
        make(tmp_path, Plain(), changed)
    with pytest.raises(DatasetError, match=r"generator\.parameters\.size: null there, 64 now"):
        larger = Plain()
        larger.parameters = {"size": 64}
        make(tmp_path, larger)
    assert content(tmp_path) == before


def test_malformed_wishes_are_named(tmp_path):
    with pytest.raises(DatasetError, match="called 'w1'"):
        make(tmp_path / "a", Plain(), [*wishes(3), wishes(2)[1]])
    with pytest.raises(DatasetError, match="field 'status'"):
        make(tmp_path / "b", Plain(), [Wanted("x", "x", 0, fields={"status": "ok"})])
    with pytest.raises(DatasetError, match="has the fields"):
        make(tmp_path / "c", Plain(), [*wishes(3), Wanted("x", "x", 0)])


def test_one_process_at_a_time_and_nothing_of_somebody_elses(tmp_path):
    with locked(tmp_path / "out", "images"), pytest.raises(DatasetError, match="another process"):
        make(tmp_path / "out", Plain(), wishes(3))
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "thesis.txt").write_text("three years")
    with pytest.raises(DatasetError, match="not an unfinished"):
        make(tmp_path / "theirs", Plain(), wishes(3))
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["thesis.txt"]


def test_what_a_killed_process_left_is_no_content_and_is_swept(tmp_path):
    """Temporary files of a plan and of a part, and a plan without a word (the power went); one in use stays."""
    for name in (".plan.json.0123456789ab.part", ".part-00000.parquet.1.part", ".lock", "plan.json"):
        (tmp_path / name).touch()
    with whole_file(tmp_path / "other.txt") as used:
        used.write_text("in use")
        assert make(tmp_path, Plain(), wishes(3)) == {"ok": 3}
        assert [path.name for path in tmp_path.glob(".*.part")] == [used.name]
    assert not list(tmp_path.glob(".*.part")) and (tmp_path / "other.txt").read_text() == "in use"


KILLED = """
import sys
from pathlib import Path
import protoscore.images as stage
from tests.test_images import Plain, make, wishes
stage.PART_ROWS, Plain.batch_size = 30, 3
make(Path(sys.argv[1]), Plain(log=Path(sys.argv[2]), seconds=0.003), wishes(100, group=4))
"""


def test_killed_ten_times_it_draws_nothing_twice_and_ends_with_the_same_bytes(tmp_path, monkeypatch):
    log, out, rng = tmp_path / "log", tmp_path / "out", random.Random(3)
    command = [sys.executable, "-c", KILLED, str(out), str(log)]
    lines = lambda: log.read_text().split() if log.is_file() else []  # noqa: E731
    for _ in range(10):
        stop = len(lines()) + rng.randint(2, 12)
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        while len(lines()) < stop and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL).returncode == 0
    drawn = Counter(lines())
    assert len(drawn) == 100 and drawn.total() <= 100 + 10 * 3, "a kill loses the batch in flight only"
    monkeypatch.setattr(stage, "PART_ROWS", 30)
    make(tmp_path / "whole", Plain(), wishes(100, group=4))
    assert content(out) == content(tmp_path / "whole") and not list(out.glob(".*.part"))


def test_any_list_of_prompts_can_be_drawn_by_any_generator(tmp_path):
    """The command line: a table of prompts; scenes need a spec, so each is refused by name; a benchmark by its folder."""
    (tmp_path / "prompts.csv").write_text("id,prompt\na,two cats\nb,a red cube\n")
    drawn = cli("images", tmp_path / "prompts.csv", "--out", tmp_path / "p", "--renditions", "2", "-o", "size=32")
    assert drawn.returncode == 0 and "4 refused" in drawn.stdout, drawn.stderr
    found = rows(tmp_path / "p")
    assert list(found) == ["a-0", "a-1", "b-0", "b-1"] and found["b-1"]["text"] == "a red cube"
    assert len({row["seed"] for row in found.values()}) == 4 and "from a spec" in found["a-0"]["reason"]
    unknown = cli("images", tmp_path / "none.csv", "--out", tmp_path / "q")
    assert unknown.returncode == 2 and "does not exist" in unknown.stderr and unknown.stderr.count("\n") == 1


def test_a_spec_is_kept_as_it_was(tmp_path):
    spec = SceneSpec(subject="penguin", extra="box", environment="park", color_tone="red")
    make(tmp_path, Plain(), [Wanted("x", "A penguin.", 0, spec)])
    assert SceneSpec.model_validate(json.loads(rows(tmp_path)["x"]["spec"])) == spec
