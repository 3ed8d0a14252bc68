"""The decisions of a run by field, also beside what is true: claims apart from abstentions, and what was taken for what."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from protoscore.asking.labels import fold
from protoscore.errors import DatasetError, UnknownName
from protoscore.folder import read_manifest
from protoscore.schema import Status
from protoscore.stats.abstention import abstention_columns

TORN = "(replies differ)"


class Confusion(NamedTuple):
    """How often each label was given to what is truly of each."""

    truth: list[str]
    given: list[str]  # the labels, then what was no label: "(unmapped)", "(replies differ)" ...
    counts: list[list[int]]  # (truth, given)


class Answered(NamedTuple):
    """One closed field of a run's decisions. Values are text; that of a list of labels is its labels in order."""

    field: str
    kind: str
    labels: tuple[str, ...]  # in the order of the schema; those that were given, where each item has labels of its own
    values: list[Any]  # of each item: as decided; None where nothing is
    given: tuple[str, ...]  # the same as text, or in brackets why there is none
    states: NDArray[np.str_]
    withholding: frozenset[str]  # labels that abstain
    spelled: Mapping[str, str]  # folded spelling -> label

    @property
    def claimed(self) -> NDArray[np.bool_]:
        return self.states == Status.OK

    def read(self, value: Any) -> str | None:
        """A value of a column as a label, or as its own text where it is none; None where there is nothing."""
        if value is None or value != value or str(value).strip() == "":
            return None
        if self.kind == "labels":
            return _joined([self._label(part) for part in _listed(value)])
        return self._label(int(value) if isinstance(value, float) and value.is_integer() else value)

    def _label(self, value: Any) -> str:
        return self.spelled.get(fold(text_of(value)), text_of(value))


class Against:
    """A field's answers beside the truth, item by item.

    Attributes:
        truth: (items,) a label, text that is no label of the field (no answer can be right there), or None: not known.
        correct: (items,) 1 or 0; NaN where the truth is not known, or where there is neither a claim nor an abstention.
        abstained: (items,) true where the field withholds its decision and the truth is known.
    """

    def __init__(self, answered: Answered, truth: Sequence[str | None]):
        self.answered, self.truth = answered, list(truth)
        self.known = np.array([true is not None for true in self.truth])
        self.abstained = (answered.states == Status.ABSTAINED) & self.known
        right = np.array([given == true for given, true in zip(answered.given, self.truth, strict=True)])
        withheld = np.array([true in answered.withholding for true in self.truth])
        scored = (answered.claimed | self.abstained) & self.known
        self.correct = np.where(scored, np.where(self.abstained, withheld, right), np.nan)

    @cached_property
    def columns(self) -> NDArray[np.float64]:
        """(items, 5) whose means are coverage, accuracy, selective accuracy, worst and best case (``AbstentionScores``)."""
        return np.where(self.known[:, None], abstention_columns(self.correct, self.abstained), np.nan)

    def confusion(self) -> Confusion:
        pairs = Counter((true, given) for true, given in zip(self.truth, self.answered.given, strict=True) if true is not None)
        labels = self.answered.labels
        truth = [*labels, *sorted({true for true, _ in pairs} - set(labels))]
        given = [*labels, *sorted({given for _, given in pairs} - set(labels))]
        truth = [true for true in truth if any(pairs[true, said] for said in given)]
        return Confusion(truth, given, [[pairs[true, said] for said in given] for true in truth])


class Decisions:
    """The combined decisions of a run, one per item.

    Raises:
        DatasetError: ``run`` is not a finished run of questions.
    """

    def __init__(self, run: Path):
        self.run, self.manifest = Path(run), read_manifest(run, "judge")
        path = self.run / "decisions.parquet"
        if not path.is_file() or "fields" not in self.manifest:
            raise DatasetError(f"{run} is not finished; run the same 'protoscore judge' again, it goes on where it stopped")
        self.table = pq.read_table(path)
        self.states = self.table["state"].to_numpy(zero_copy_only=False).astype(str)

    def column(self, name: str) -> list[Any]:
        """A column of the items' own fields.

        Raises:
            UnknownName: the run kept no such column.
        """
        if name not in self.table.column_names:
            own = [c for c in self.table.column_names if not c.startswith(("answer_", "state_"))]
            raise UnknownName(f"column of {self.run}", name, own)
        return self.table[name].to_pylist()

    def fields(self) -> dict[str, Answered]:
        """Every closed field that was decided, in the order of the schema."""
        names = [c.removeprefix("answer_") for c in self.table.column_names if c.startswith("answer_")]
        return {name: self._field(name, self.manifest["fields"][name]) for name in names if name in self.manifest["fields"]}

    def against(self, field: str, column: str) -> Against:
        """The answers to ``field`` beside the truth in ``column``.

        Raises:
            UnknownName: there is no such field or column.
            DatasetError: the column holds none of the field's labels.
        """
        known = self.fields()
        if field not in known:
            raise UnknownName(f"closed field of {self.run}", field, known)
        answered, values = known[field], self.column(column)
        truth = [answered.read(value) for value in values]
        if answered.kind != "labels" and answered.labels and not set(answered.labels) & set(truth):
            held = next((repr(true) for true in truth if true is not None), "nothing")
            shown = ", ".join(answered.labels[:8])
            raise DatasetError(f"column {column!r} holds no label of {field!r} ({held:.60}); its labels are: {shown}")
        return Against(answered, truth)

    def _field(self, name: str, about: Mapping[str, Any]) -> Answered:
        states = self.table[f"state_{name}"].to_numpy(zero_copy_only=False).astype(str)
        values = self.table[f"answer_{name}"].to_pylist()
        given = [_given(value, state) for value, state in zip(values, states, strict=True)]
        labels = [text_of(label) for label in about["labels"]]
        if not labels:
            labels = sorted({text for text, value in zip(given, values, strict=True) if value is not None})
        spelled = {fold(alias): text_of(label) for alias, label in about["aliases"].items()} | {fold(lb): lb for lb in labels}
        return Answered(
            name,
            about["kind"],
            tuple(labels),
            values,
            tuple(given),
            states,
            frozenset(map(text_of, about["abstains"])),
            spelled,
        )


def _given(value: Any, state: str) -> str:
    if value is not None:
        return _joined(value) if isinstance(value, list) else text_of(value)
    return TORN if state == Status.ABSTAINED else f"({state})"


def text_of(value: Any) -> str:
    """A label as it is shown and compared."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _joined(labels: Sequence[Any]) -> str:
    return ", ".join(sorted(map(text_of, labels))) or "(none)"


def _listed(value: Any) -> list[Any]:
    """A list, also as JSON, as tables hold one; a single label where it is neither."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(ValueError):
            value = json.loads(value)
    return value if isinstance(value, list) else [value]
