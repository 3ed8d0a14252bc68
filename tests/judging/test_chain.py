"""Runs that chain, from the command line alone: open questions, their grades, a choice in both orders; killed and resumed."""

from __future__ import annotations

import csv
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq

from tests.conftest import ROOT

ITEMS = 40
PROTOCOL = """
from typing import Literal
from pydantic import BaseModel, Field
from protoscore.asking.protocol import Alternatives, read_protocol
class Answer(BaseModel):
    {field}
def create():
    return read_protocol(__file__, Answer{more})
"""
RULE = """
import json, re, time
def reply(request):
    time.sleep(0.02)
    {body}
"""
STEPS = {  # name -> field, further arguments, prompt, the judge's rule
    "describe": (
        "said: str", "", "Describe {{ item.thing }}.",
        "n = int(re.search(r'No. (\\d+)', request.prompt)[1]); return 'a thing, ' + 'very ' * (n % 3) + f'red, No. {n}'",
    ),
    "grade": (
        "grade: int = Field(ge=1, le=5)", "", "Grade: {{ item.reply }}",
        "return json.dumps({'grade': 1 + request.prompt.count('very')})",
    ),
    "prefer": (
        "choice: Literal['first', 'second']", ', alternatives=Alternatives("choice", swaps=(("said", "thing"),))',
        "{{ item.said }} | {{ item.thing }}",
        "a, b = request.prompt.split(' | '); flip = 'very very' in request.prompt\\n"
        "    return json.dumps({'choice': 'first' if flip or a.startswith('a thing') else 'second'})",
    ),
}  # fmt: skip


def prepared(folder: Path) -> Path:
    folder.mkdir()
    with (folder / "things.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "thing"])
        rows.writerows([f"t{n:02}", f"thing No. {n}"] for n in range(ITEMS))
    for name, (field, more, prompt, body) in STEPS.items():
        (folder / f"{name}.py").write_text(PROTOCOL.format(field=field, more=more))
        (folder / f"{name}.md").write_text(prompt + "\n")
        (folder / f"rule_{name}.py").write_text(RULE.format(body=body.replace("\\n", "\n")))
    return folder


def commands() -> list[list[str]]:
    """The three steps as typed, each about the run before."""
    sources = ["things.csv", "describe_run", "grade_run"]
    return [
        ["judge", f"{name}.py", "--items", source, "--judge", f"scripted:rule_{name}.py", "-o", "batch_size=4",
         *(["--field", "said=answer_said"] if name == "prefer" else []), "--out", f"{name}_run"]
        for name, source in zip(STEPS, sources, strict=True)
    ]  # fmt: skip


def start(command: list[str], folder: Path) -> subprocess.Popen:
    code = [sys.executable, "-c", "from protoscore.cli import main; main()"]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [*code, *command], cwd=folder, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )


def tables(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.glob("*_run/*.parquet"))}


def test_three_steps_from_the_command_line_killed_anywhere_end_with_the_same_bytes(tmp_path):
    whole, broken, draw = prepared(tmp_path / "whole"), prepared(tmp_path / "broken"), random.Random(5)
    for command in commands():
        process = start(command, whole)
        assert (process.wait(), process.stderr.read()) and process.returncode == 0
        ledger = broken / command[-1] / "replies.sqlite"
        for _ in range(2):
            process = start(command, broken)
            while process.poll() is None and not ledger.exists():
                time.sleep(0.01)
            time.sleep(draw.uniform(0, 0.5))
            process.send_signal(signal.SIGKILL)
            process.wait()
        process = start(command, broken)
        assert process.wait() == 0, process.stderr.read()
    assert tables(broken) == tables(whole) and len(tables(whole)) == 6

    grades = pq.read_table(whole / "grade_run" / "decisions.parquet").to_pylist()
    assert {row["item"]: row["answer_grade"] for row in grades} == {f"t{n:02}": 1 + n % 3 for n in range(ITEMS)}
    choices = pq.read_table(whole / "prefer_run" / "decisions.parquet").to_pylist()
    assert len(choices) == ITEMS
    for n, row in enumerate(choices):  # who says "very very" takes what stands first: no decision
        assert (row["state"], row["answer_choice"]) == (("abstained", None) if n % 3 == 2 else ("ok", "first")), row
