"""The parser log of a run: how its verdicts came about, with examples. Reads ``verdicts.parquet`` and computes nothing new."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from protoscore.errors import DatasetError, UnknownName
from protoscore.folder import read_manifest
from protoscore.schema import Status


class Example(NamedTuple):
    """A verdict as an audit shows it. Every text is safe for a terminal."""

    item: str
    judge: str
    asked: str  # variant and sample
    state: str
    cause: str
    reason: str
    repairs: str
    answer: str
    raw: str


class Audit(NamedTuple):
    """Counts of a run's verdicts and some of them."""

    verdicts: int
    states: dict[str, int]
    causes: dict[str, int]
    repairs: dict[str, int]
    repaired: int  # verdicts that took at least one repair
    withheld: dict[str, int]  # field -> verdicts that withhold it
    unmapped: dict[str, int]  # field -> verdicts that say there what its labels do not have
    judges: dict[str, dict[str, int]]  # judge -> state -> count
    examples: list[Example]


def audit(run: Path, state: str | None = None, repair: str | None = None, limit: int = 10) -> Audit:
    """Count the verdicts of ``run`` and show the first ``limit`` of those with the given state and repair.

    Without a filter the examples are those that are not ok or took a repair.

    Raises:
        DatasetError: the folder is not a judging run.
        UnknownName: no such state.
    """
    if state is not None and state not in set(Status):
        raise UnknownName("state", state, [s.value for s in Status])
    table = read_verdicts(run)
    rows = table.select(
        ["item", "judge", "variant", "sample", "state", "cause", "reason", "abstained", "unmapped", "repairs", "answer", "raw"]
    ).to_pylist()
    judges: dict[str, Counter[str]] = {}
    for row in rows:
        judges.setdefault(row["judge"], Counter())[row["state"]] += 1
    return Audit(
        len(rows),
        _counts(row["state"] for row in rows),
        _counts(row["cause"] for row in rows if row["cause"]),
        _counts(name for row in rows for name in row["repairs"]),
        sum(bool(row["repairs"]) for row in rows),
        _counts(name for row in rows for name in row["abstained"]),
        _counts(name for row in rows for name in json.loads(row["unmapped"] or "{}")),
        {name: dict(counts) for name, counts in judges.items()},
        [_example(row) for row in rows if _wanted(row, state, repair)][:limit],
    )


def read_verdicts(run: Path) -> Any:
    """The verdicts of a run as an Arrow table.

    Raises:
        DatasetError: the folder is not a judging run, or is not finished.
    """
    read_manifest(run, "judge")
    path = Path(run) / "verdicts.parquet"
    if not path.is_file():
        raise DatasetError(f"{run} holds no verdicts.parquet; run 'protoscore judge' again, it goes on where it stopped")
    return pq.read_table(path)


def safe(text: str, longest: int = 400) -> str:
    """``text`` in one line for a terminal: control characters, escape sequences and direction marks are shown as escapes."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: longest + 1])
    return shown if len(text) <= longest else f"{shown[:longest]} [{len(text) - longest} more characters]"


def _wanted(row: dict[str, Any], state: str | None, repair: str | None) -> bool:
    if state is None and repair is None:
        return row["state"] != Status.OK.value or bool(row["repairs"] or row["unmapped"])
    return (state is None or row["state"] == state) and (repair is None or repair in row["repairs"])


def _example(row: dict[str, Any]) -> Example:
    asked = f"{row['variant'] or 'own prompt'}, sample {row['sample']}"
    parts = (row["item"], row["judge"], asked, row["state"], row["cause"], row["reason"], ", ".join(row["repairs"]))
    return Example(*(safe(part) for part in (*parts, row["answer"] or "", row["raw"])))


def _counts(names: Iterator[str]) -> dict[str, int]:
    return dict(Counter(names).most_common())
