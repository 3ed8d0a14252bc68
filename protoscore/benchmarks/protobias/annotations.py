"""What people chose on a benchmark's pairs: read from annotations, put to a majority, and how much they agree.

An annotation is a line ``triplet, rendition, annotator, choice`` in CSV, JSON Lines or Parquet; ``choice`` is ``correct``,
``adversarial`` or ``tie``, as the labels of the ProtoBias study (Appendix 12), whatever side the picture was shown on.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from protoscore.errors import DatasetError, first_line
from protoscore.folder import parts
from protoscore.stats.agreement import majority, mean_pairwise_kappa
from protoscore.stats.resampling import Estimate, mean

CHOICES = ("adversarial", "tie", "correct")  # in order: their distance is what quadratic weights weigh
COLUMNS = ("triplet", "rendition", "annotator", "choice")

Ties = Literal["left_out", "wrong"]


class Human(NamedTuple):
    """Annotations of a run's rows; everything is in the order of the run's ids."""

    ratings: NDArray[np.object_]  # (rows, annotators), None where one said nothing
    majority: NDArray[np.object_]  # (rows,) a label; "tie" for a split vote, None where nobody said anything
    annotators: int
    unknown: int  # annotations of pairs that the run does not have

    @property
    def rated(self) -> NDArray[np.bool_]:
        """Rows that someone annotated."""
        return np.array([label is not None for label in self.majority], bool)

    def choices(self, ties: Ties = "left_out") -> NDArray[np.float64]:
        """The majority as 1 for the correct picture, 0 for the adversarial one, NaN where there is none.

        Args:
            ties: whether "no clear preference" is left out or counts as not correct; the paper does not say which.
        """
        worth = {"correct": 1.0, "adversarial": 0.0, "tie": np.nan if ties == "left_out" else 0.0}
        return np.array([worth.get(label, np.nan) for label in self.majority], float)

    def accuracy(self, rows: NDArray[np.bool_], clusters: NDArray, resamples: int = 2000) -> Estimate:
        """Share of the annotated ``rows`` where the majority prefers the correct picture (Table 3, row Human)."""
        here = rows & self.rated
        return mean([label == "correct" for label in self.majority[here]], clusters[here], resamples)

    def agreement(self, rows: NDArray[np.bool_], clusters: NDArray, resamples: int = 2000) -> Estimate:
        """Average pairwise quadratic weighted kappa among annotators (Tables 3 and 9); undefined for a single one."""
        here = rows & self.rated
        if self.ratings.shape[1] < 2 or not here.any():
            return Estimate(float("nan"), float("nan"), float("nan"), 0)
        return mean_pairwise_kappa(self.ratings[here], CHOICES, "quadratic", clusters[here], resamples)


def annotations_of(dataset: str | None) -> Path | None:
    """Where a dataset folder keeps its annotations, if it has any: ``annotations/test-*.parquet``."""
    found = parts(Path(dataset) / "annotations", "*.parquet") if dataset and Path(dataset).is_dir() else []
    return found[0].parent if found else None


def read_human(source: Path, ids: NDArray[np.str_]) -> Human:
    """Read annotations from a file, or from the Parquet files of a folder, for the rows ``ids`` (triplet-rendition).

    Raises:
        DatasetError: a column is missing, a choice is unknown, an annotator judged one pair twice, or no pair is in the run.
    """
    place = {name: number for number, name in enumerate(ids.tolist())}
    found: dict[tuple[int, str], str] = {}
    unknown = 0
    for number, row in enumerate(_rows(source), 1):
        missing = [column for column in COLUMNS if row.get(column) is None]
        if missing:
            raise DatasetError(f"{source}: annotation {number} lacks {missing[0]!r}; needed: {', '.join(COLUMNS)}")
        choice = str(row["choice"]).strip()
        if choice not in CHOICES:
            raise DatasetError(f"{source}: annotation {number} has the choice {choice!r}; known: {', '.join(CHOICES)}")
        at, who = place.get(f"{row['triplet']}-{row['rendition']}"), str(row["annotator"])
        if at is None:
            unknown += 1
        elif (at, who) in found:
            raise DatasetError(f"{source}: annotator {who!r} judged {row['triplet']}-{row['rendition']} twice")
        else:
            found[at, who] = choice
    if not found:
        raise DatasetError(f"{source} annotates no pair of this run; were they made for another build of the dataset?")
    people = sorted(Counter(who for _, who in found))
    ratings = np.full((len(ids), len(people)), None, object)
    for (at, who), choice in found.items():
        ratings[at, people.index(who)] = choice
    voters = ratings if len(people) > 1 else np.hstack([ratings, np.full_like(ratings, None)])
    return Human(ratings, majority(voters, tie="tie"), len(people), unknown)


def _rows(source: Path) -> list[dict[str, Any]]:
    try:
        if source.is_dir():
            return [row for path in parts(source, "*.parquet") for row in pq.read_table(path).to_pylist()]
        if source.suffix == ".parquet":
            return pq.read_table(source).to_pylist()
        with source.open(encoding="utf-8-sig", newline="") as handle:
            if source.suffix == ".csv":
                return list(csv.DictReader(handle))
            rows = [json.loads(line) for line in handle if line.strip()]
    except (OSError, ValueError, csv.Error) as error:
        raise DatasetError(f"annotations cannot be read from {source} ({first_line(error)})") from error
    if not all(isinstance(row, dict) for row in rows):
        raise DatasetError(f"{source}: each annotation must be an object; needed: {', '.join(COLUMNS)}")
    return rows
