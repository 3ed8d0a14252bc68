"""Whether the place of a label, or of one of two alternatives, moves answers: position bias and flip rate of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.compute as pc

from protoscore.judging.audit import read_verdicts
from protoscore.schema import Status
from protoscore.stats.resampling import Estimate, mean


class Position(NamedTuple):
    """How one judge's answers to one field depend on what stood where. Intervals resample items."""

    judge: str
    field: str
    first: Estimate  # share of the answers that are what stood first
    by_chance: float  # that share where places do not matter
    flips: Estimate  # share of the questions asked in several orders whose answer is not the same in all of them


class _Choice(NamedTuple):
    judge: str
    field: str
    item: str
    question: tuple[Any, ...]
    label: str
    place: int
    places: int


def positions(run: Path, resamples: int = 2000) -> list[Position]:
    """Position bias and flip rate by judge and field; empty where every question kept the schema's order.

    Raises:
        DatasetError: the folder is not a finished judging run.
    """
    groups: dict[tuple[str, str], list[_Choice]] = {}
    for choice in _choices(run):
        groups.setdefault((choice.judge, choice.field), []).append(choice)
    return [_position(*group, some, resamples) for group, some in groups.items()]


def _choices(run: Path) -> Iterator[_Choice]:
    """Every label that was chosen where the order of labels or alternatives is known."""
    table = read_verdicts(run)
    table = table.filter(pc.is_valid(table["order"]))
    kept = [name for name in table.column_names if name.startswith(("answer_", "state_"))]
    for row in table.select(["item", "judge", "variant", "sample", "order", *kept]).to_pylist():
        for field, labels in json.loads(row["order"] or "{}").items():
            label = row[f"answer_{field}"]
            if row[f"state_{field}"] not in (Status.OK, Status.ABSTAINED) or not isinstance(label, str):
                continue
            question = row["item"], row["variant"], row["sample"]
            yield _Choice(row["judge"], field, row["item"], question, label, labels.index(label), len(labels))


def _position(judge: str, field: str, choices: list[_Choice], resamples: int) -> Position:
    first = mean([float(choice.place == 0) for choice in choices], [choice.item for choice in choices], resamples)
    questions: dict[tuple[Any, ...], list[str]] = {}
    for choice in choices:
        questions.setdefault(choice.question, []).append(choice.label)
    several = {question: labels for question, labels in questions.items() if len(labels) > 1}
    flips = mean([float(len(set(labels)) > 1) for labels in several.values()], [str(key[0]) for key in several], resamples)
    return Position(judge, field, first, sum(1 / choice.places for choice in choices) / len(choices), flips)
