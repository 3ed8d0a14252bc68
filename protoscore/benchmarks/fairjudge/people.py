"""What people said about the same pictures, and how far a judge agrees with them.

A table with a column ``item`` (or ``id``), perhaps ``annotator``, and a column for each attribute or ``score`` that people
gave; one line per picture and annotator.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from protoscore.benchmarks.fairjudge.truth import attributes, finest, told
from protoscore.errors import DatasetError
from protoscore.judging.truth import Answered
from protoscore.sources.tables import read_table, text_of
from protoscore.stats.agreement import cohen_kappa, majority, mean_pairwise_kappa
from protoscore.stats.resampling import Draw, Estimate

QUADRATIC: Literal["quadratic"] = "quadratic"


class Agreement(NamedTuple):
    """Kappa: 1 agreement, 0 what chance gives. Of labels unweighted, of grades with quadratic weights."""

    judges: dict[str, Estimate]  # each judge with the majority of people
    people: Estimate | None  # mean over pairs of annotators; None for a single one
    annotators: int
    unknown: dict[str, int]  # what people said that is no label -> lines; left out


class Ratings(NamedTuple):
    """(rows, annotators) labels of one field; None where one said nothing."""

    labels: NDArray[np.object_]
    unknown: dict[str, int]


def read_people(path: Path, names: list[str], fields: Mapping[str, Answered]) -> dict[str, Ratings]:
    """People's labels by field, for the fields that the table has a column for.

    Raises:
        DatasetError: no column says which picture a line is about, none is a field that was judged, or no picture is judged.
    """
    lines = read_table(path, "human=")
    held = list(lines[0].values)
    key = next((name for name in ("item", "id") if name in held), None)
    rated = [name for name in fields if name in held]
    if key is None or not rated:
        wanted = "'item' that names the picture" if key is None else f"of what was judged ({', '.join(fields)})"
        raise DatasetError(f"human= {path} has no column {wanted}; it has: {', '.join(held)}")
    place = {name: row for row, name in enumerate(names)}
    people = list(dict.fromkeys(text_of(line.values.get("annotator"), "annotator") for line in lines))
    found = {name: Ratings(np.full((len(names), len(people)), None, object), {}) for name in rated}
    seen: set[tuple[int, str]] = set()
    for line in lines:
        row = place.get(text_of(line.values[key], f"line {line.number}: {key}"))
        who = text_of(line.values.get("annotator"), "annotator")
        if row is None:
            continue
        if (row, who) in seen:
            raise DatasetError(
                f"human= {path}: line {line.number}: {who or 'somebody'!r} rated {names[row]} twice; name annotators"
            )
        seen.add((row, who))
        for name in rated:
            _put(found[name], row, people.index(who), line.values[name], name, fields[name])
    if not seen:
        raise DatasetError(f"human= {path} is about no picture of this run; its {key!r} must be the names in decisions.parquet")
    return found


def _put(ratings: Ratings, row: int, column: int, value: Any, name: str, field: Answered) -> None:
    label = field.read(value)
    if label is None:
        return
    fine = finest(name, label) if label not in field.labels and name in attributes() else None
    label = told(name, fine, field.labels) if fine else label
    if label in field.labels:
        ratings.labels[row, column] = label
    else:
        ratings.unknown[label] = ratings.unknown.get(label, 0) + 1


def agreement(given: Mapping[str, NDArray], ratings: Ratings, field: Answered, draw: Draw) -> Agreement:
    """Each judge with the people's majority (a split vote has none), and people among themselves.

    Args:
        given: judge -> (rows,) labels or grades; None where there is no usable answer.
    """
    count = ratings.labels.shape[1]
    voters = ratings.labels if count > 1 else np.hstack([ratings.labels, np.full_like(ratings.labels, None)])
    voted, weights = majority(voters), QUADRATIC if field.kind == "integer" else None
    judges = {
        name: cohen_kappa(np.array([None if s is None else str(s) for s in said], object), voted, field.labels, weights, *draw)
        for name, said in given.items()
    }
    people = mean_pairwise_kappa(ratings.labels, field.labels, weights, *draw) if count > 1 else None
    return Agreement(judges, people, count, ratings.unknown)
