"""The same table from one process, from torchrun and from Ray, with a real (tiny, random) two-tower model among the scorers."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, cli
from tests.controls import digest, png, table, write_controls

OPTIONS = ["-s", "random", "-s", "protoscore", "--batch-size", "8"]
ENV = {"OMP_NUM_THREADS": "1"}  # as torchrun sets it: another number of threads may move the last digit


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> tuple[Path, Path]:
    """A dataset and the table that one process makes of it."""
    folder = tmp_path_factory.mktemp("alone")
    write_controls(folder / "data", 17, picture=_picture)
    result = cli("score", folder / "data", *OPTIONS, "--out", folder / "run", env=ENV)
    assert result.returncode == 0, result.stderr
    return folder / "data", folder / "run"


def _picture(row: int, cell: str) -> bytes:
    return png(row, cell, size=32) if row != 3 else b"no picture"


def test_shards_by_hand(alone, tmp_path):
    data, run = alone
    for part in ("2/2", "1/2"):
        result = cli("score", data, *OPTIONS, "--out", tmp_path, "--shard", part, env=ENV)
        assert result.returncode == 0 and f"shard {part} is done" in result.stdout, result.stderr
    assert "136 scores, 0 made now" in cli("score", data, *OPTIONS, "--out", tmp_path, env=ENV).stdout
    assert digest(tmp_path) == digest(run)


def test_torchrun(alone, tmp_path):
    data, run = alone
    script = tmp_path / "score.py"
    script.write_text("from protoscore.cli import main\nmain()\n")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    for made in (130, 0):  # the four cells of row 3 hold the same bytes under the same text: one pair
        result = subprocess.run(
            [*map(str, command), "score", str(data), *OPTIONS, "--out", str(tmp_path / "run")],
            env=os.environ | ENV | {"PYTHONPATH": path}, text=True, capture_output=True, timeout=500,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        assert result.stdout.count(f"136 scores, {made} made now, 8 without a number") == 1, "one rank speaks, for all"
    assert len(list((tmp_path / "run").glob("shard-*-of-2/results.sqlite"))) == 2
    assert digest(tmp_path / "run") == digest(run)


@pytest.mark.skipif(not importlib.util.find_spec("ray"), reason="needs the extra 'distributed'")
def test_ray(alone, tmp_path):
    data, run = alone
    result = cli("score", data, *OPTIONS, "--out", tmp_path, "--engine", "ray", env=ENV)
    assert result.returncode == 0, result.stderr
    assert "136 scores, 130 made now, 8 without a number" in result.stdout
    # The manifest may say more: a worker that needs no torch notes that it has none.
    assert (tmp_path / "scores.parquet").read_bytes() == (run / "scores.parquet").read_bytes()


def test_what_does_not_go_together_is_one_line(alone, tmp_path):
    data, _ = alone
    for options, says in {
        ("--shard", "3/2"): "give i/n",
        ("--engine", "ray", "--shard", "1/2"): "shares the work by itself",
    }.items():
        result = cli("score", data, "-s", "constant", "--out", tmp_path / "out", *options)
        assert result.returncode == 2 and says in result.stderr and "Traceback" not in result.stderr
        assert not (tmp_path / "out").exists()


def test_the_manifest_says_with_what_and_names_no_machine(alone):
    import json
    import platform

    _, run = alone
    manifest = json.loads((run / "manifest.json").read_text())
    (made,) = manifest["made_with"]
    assert {"protoscore", "torch", "transformers", "pillow", "processor", "threads"} <= made.keys()
    assert [s["batch_size"] for s in manifest["parameters"]["scorers"]] == [8, 8]
    assert platform.node() not in json.dumps(made) and str(Path.home()) not in json.dumps(made)
    assert {row["status"] for row in table(run)} == {"ok", "invalid"}
