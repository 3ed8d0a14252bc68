"""The answers of a run, or of several over the same pictures, item by item, and what the items' columns say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from protoscore.benchmarks.fairjudge.truth import told
from protoscore.errors import DatasetError
from protoscore.judging.audit import read_verdicts
from protoscore.judging.truth import Answered, Decisions
from protoscore.schema import Status

USABLE = (Status.OK.value, Status.ABSTAINED.value)
FIXED = {"item", "state", "abstained", "asked", "usable", "contested", "judges"}


class Given(NamedTuple):
    """One judge's answers to one field, a row per item."""

    labels: NDArray[np.object_]  # a label, a number, or the abstention; None where there is no usable answer
    confidence: NDArray[np.float64]  # probability of the label, where the judge reads likelihoods; else NaN
    states: dict[str, int]
    unmapped: dict[str, int]  # what was said that is no label -> verdicts


class Answers(NamedTuple):
    """One judge's run."""

    name: str
    run: Path
    fields: Mapping[str, Answered]
    given: Mapping[str, Given]
    usage: Mapping[str, float]  # per picture


class Items(NamedTuple):
    """What was judged: names in order, and what else was known of each."""

    names: list[str]
    columns: Mapping[str, list[Any]]

    def clusters(self, column: str | None) -> NDArray[np.str_] | None:
        """What was sampled independently; None: each item."""
        return None if column is None else np.array([str(value) for value in self.columns[column]])


def read_answers(runs: Sequence[Path]) -> tuple[Items, list[Answers]]:
    """The answers of runs over the same items; the order is that of the first.

    Raises:
        DatasetError: one is not a finished run of questions, or is about other items or asked for other fields.
    """
    first = Decisions(runs[0])
    names = [str(name) for name in first.table["item"].to_pylist()]
    own = [c for c in first.table.column_names if c not in FIXED and not c.startswith(("answer_", "state_"))]
    items = Items(names, {column: first.table[column].to_pylist() for column in own})
    found: list[Answers] = []
    for run in runs:
        decisions = first if run == runs[0] else Decisions(run)
        answers = _of_run(decisions, names)
        if found and list(answers.fields) != list(found[0].fields):
            raise DatasetError(
                f"{run} was asked for {', '.join(answers.fields)} and {runs[0]} for {', '.join(found[0].fields)}"
            )
        name = answers.name
        while any(one.name == name for one in found):  # the same judge, asked in another way
            name += f" ({run.name})"
        found.append(answers._replace(name=name))
    return items, found


def _of_run(decisions: Decisions, names: list[str]) -> Answers:
    place = {str(name): row for row, name in enumerate(decisions.table["item"].to_pylist())}
    if set(place) != set(names):
        missing = len(set(names) ^ set(place))
        raise DatasetError(
            f"{decisions.run} is about other items ({missing} are in one run only); compare runs over the same ones"
        )
    order = np.array([place[name] for name in names])
    fields = decisions.fields()
    verdicts = read_verdicts(decisions.run)
    given = {name: _given(field, order, verdicts, names) for name, field in fields.items()}
    who = ", then ".join(judge["name"] for judge in decisions.manifest["parameters"]["judges"])
    return Answers(who, decisions.run, fields, given, _usage(decisions.run, len(names)))


def _given(field: Answered, order: NDArray, verdicts: Any, names: list[str]) -> Given:
    states = field.states[order]
    said = np.array([_said(field, field.values[row], field.states[row]) for row in order], object)
    sure = _confidences(field.field, verdicts, names, said)
    texts = [json.loads(text or "{}").get(field.field) for text in verdicts["unmapped"].to_pylist()]
    return Given(said, sure, dict(Counter(map(str, states))), dict(Counter(text for text in texts if text).most_common()))


def _said(field: Answered, value: Any, state: str) -> Any:
    if state == Status.ABSTAINED:
        return abstention(field)
    return value if state == Status.OK else None


def abstention(field: Answered) -> str:
    """The label by which a field withholds; "unspecified" where its set has none, which then nobody can say."""
    return next(iter(sorted(field.withholding)), "unspecified")


def _confidences(field: str, verdicts: Any, names: list[str], said: NDArray) -> NDArray[np.float64]:
    """The probability of each decided label, of the judge's first answer about the item."""
    sure = np.full(len(names), np.nan)
    held = verdicts["probabilities"].to_pylist()
    if not any(held):
        return sure
    place = {name: row for row, name in enumerate(names)}
    for item, text in zip(verdicts["item"].to_pylist(), held, strict=True):
        row = place[str(item)]
        if text and np.isnan(sure[row]) and said[row] is not None:
            sure[row] = json.loads(text).get(field, {}).get(str(said[row]), np.nan)
    return sure


def _usage(run: Path, items: int) -> dict[str, float]:
    path = run / "usage.json"
    if not path.is_file() or not items:
        return {}
    used = json.loads(path.read_text(encoding="utf-8"))
    named = {"seconds": "seconds_per_picture", "tokens": "tokens_per_picture", "cost": "cost_per_picture"}
    return {name: used[key] / items for key, name in named.items() if used.get(key)}


class Variant(NamedTuple):
    """The answers to one field under one wording, a row per item."""

    name: str  # empty: the protocol's own
    labels: NDArray[np.object_]


def variants(answers: Answers, field: str, names: list[str]) -> list[Variant]:
    """The first answer to every item under each wording, where the run asked in several."""
    table = read_verdicts(answers.run)
    wordings = list(dict.fromkeys(table["variant"].to_pylist()))
    if len(wordings) < 2:
        return []
    found = {name: np.full(len(names), None, object) for name in wordings}
    place, seen = {name: row for row, name in enumerate(names)}, set()
    columns = ["item", "variant", f"answer_{field}", f"state_{field}"]
    for row in table.select(columns).to_pylist():
        key = row["variant"], place[str(row["item"])]
        if key not in seen:
            seen.add(key)
            found[key[0]][key[1]] = _said(answers.fields[field], row[f"answer_{field}"], row[f"state_{field}"])
    return [Variant(name, labels) for name, labels in found.items()]


def in_set(attribute: str, given: NDArray, labels: Collection[str]) -> NDArray[np.object_]:
    """Answers in the words of a coarser set."""
    return np.array([None if label is None else told(attribute, label, labels) for label in given], object)
