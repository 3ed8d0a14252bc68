"""What people, or a judge, said about two sets side by side.

Annotators send back a table with the columns ``task``, ``annotator``, ``choice`` (left, right, equal, unable), and where they
counted ``count_left`` and ``count_right``, perhaps ``confidence`` and ``seconds``. ``tasks.csv`` says what each task was about:
``task``, ``pair``, ``left``, ``right`` (models), ``number`` (of the comparison), ``size``, and for a task whose answer is known
``expected``.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from protoscore.errors import DatasetError
from protoscore.judging.audit import read_verdicts
from protoscore.sources.pictures import refuse
from protoscore.sources.sets import FIRST, SECOND, SIZE
from protoscore.sources.tables import read_table, text_of

CHOICES = {"left": 1.0, "right": -1.0, "equal": 0.0, "unable": float("nan")}
MANY = 10  # answers from which on somebody who always answers one side is named


class VotedTask(NamedTuple):
    """What was shown side by side."""

    pair: str
    left: str
    right: str
    number: int
    size: int
    expected: str = ""


class SideVote(NamedTuple):
    """One answer."""

    task: str
    annotator: str
    choice: float  # 1 left, -1 right, 0 equal, NaN unable
    counts: tuple[float, float]  # NaN where nobody counted


class Votes(NamedTuple):
    """Every answer, and what its import found."""

    tasks: dict[str, VotedTask]
    votes: list[SideVote]
    one_sided: list[str]  # annotators who always chose the same side


def read_votes(tables: Sequence[Path], asked: Path) -> Votes:
    """Read and check what annotators sent back, or what a judge said in a run of ``diversity/side_by_side``.

    Raises:
        DatasetError: a task is unknown, answered twice by one person, or a count exceeds its set; or a choice is none.
    """
    runs = [path for path in tables if path.is_dir()]
    tasks = read_tasks(asked) if len(runs) < len(tables) else {}
    votes: list[SideVote] = []
    for path in tables:
        if path.is_dir():
            judged, some = _of_run(path)
            tasks |= judged
        else:
            some = _of_table(path, tasks)
        votes += some
    twice = [f"{who} on {task}" for (task, who), n in Counter((v.task, v.annotator) for v in votes).items() if n > 1]
    refuse(twice, "{} task(s) are answered twice by one annotator")
    sides: dict[str, set[float]] = {}
    for vote in votes:
        sides.setdefault(vote.annotator, set()).add(vote.choice)
    answers = Counter(vote.annotator for vote in votes)
    one_sided = [who for who, some in sides.items() if answers[who] >= MANY and len(some) == 1 and some <= {1.0, -1.0}]
    return Votes(tasks, votes, one_sided)


def _of_table(path: Path, tasks: Mapping[str, VotedTask]) -> list[SideVote]:
    lines = read_table(path, "votes")
    for name in ("task", "choice"):
        if name not in lines[0].values:
            raise DatasetError(f"{path} has no column {name!r}; it has: {', '.join(lines[0].values)}")
    unknown = [str(line.values["task"]) for line in lines if str(line.values["task"]) not in tasks]
    refuse(unknown, f"{path}: {{}} vote(s) are for unknown tasks")
    return [_vote(f"{path}, line {line.number}", line.values, tasks, path.stem) for line in lines]


def _of_run(run: Path) -> tuple[dict[str, VotedTask], list[SideVote]]:
    """The answers of a judge that saw two sets in both orders: it votes for what it prefers in both, and equal otherwise."""
    tasks: dict[str, VotedTask] = {}
    seen: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for row in read_verdicts(run).to_pylist():
        if FIRST not in row or "answer_choice" not in row:
            raise DatasetError(f"{run} is not about sets side by side; judge diversity/side_by_side with --sets and --beside")
        number = row["item"].rpartition("#")[2]
        tasks[row["item"]] = VotedTask(row["pair"], row[FIRST], row[SECOND], int(number), row[SIZE])
        choice = _CHOSEN.get(row["answer_choice"] or "", math.nan)
        counts = [
            math.nan if (one := row.get(f"answer_count_shown_{side}")) is None else float(one) for side in (FIRST, SECOND)
        ]
        turned = json.loads(row["order"] or "{}").get("choice", [FIRST])[0] == SECOND
        left, right = counts[::-1] if turned else counts
        seen.setdefault((row["item"], row["judge"]), []).append((choice, left, right))
    votes = []
    for (item, judge), orders in seen.items():
        choices = [choice for choice, _, _ in orders]
        known = not any(math.isnan(choice) for choice in choices)
        choice = (choices[0] if len(set(choices)) == 1 else 0.0) if known else math.nan
        votes.append(
            SideVote(item, judge, choice, (_mean([left for _, left, _ in orders]), _mean([right for *_, right in orders])))
        )
    return tasks, votes


_CHOSEN = {"first": 1.0, "second": -1.0, "equal": 0.0}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def read_tasks(path: Path) -> dict[str, VotedTask]:
    """What was asked about.

    Raises:
        DatasetError: the table is not there or lacks a column.
    """
    lines = read_table(path, "tasks")
    missing = [name for name in ("task", "pair", "left", "right", "number", "size") if name not in lines[0].values]
    if missing:
        raise DatasetError(f"{path} has no column {missing[0]!r}; give the tasks.csv that was written beside the pages")
    found = {}
    for line in lines:
        told = {name: text_of(value, f"{path}, line {line.number}: {name}") for name, value in line.values.items()}
        where = f"{path}, line {line.number}"
        number, size = (int(_number(told[name], where)) for name in ("number", "size"))
        found[told["task"]] = VotedTask(told["pair"], told["left"], told["right"], number, size, told.get("expected", ""))
    return found


def _vote(where: str, values: Mapping[str, Any], tasks: Mapping[str, VotedTask], file: str) -> SideVote:
    told = {name: text_of(value, f"{where}: {name}").strip() for name, value in values.items()}
    choice = told["choice"].lower()
    if choice not in CHOICES:
        raise DatasetError(f"{where}: the choice {told['choice']!r} is none; it is one of: {', '.join(CHOICES)}")
    counts = tuple(_number(told.get(f"count_{side}", ""), where) for side in ("left", "right"))
    size = tasks[told["task"]].size
    if any(count > size or count < 0 for count in counts):
        raise DatasetError(f"{where}: a count of {max(counts):g} does not fit a set of {size} pictures")
    return SideVote(told["task"], told.get("annotator") or file, CHOICES[choice], (counts[0], counts[1]))


def _number(text: str, where: str) -> float:
    try:
        return float(text) if text else float("nan")
    except ValueError:
        raise DatasetError(f"{where}: {text!r} is not a number") from None
