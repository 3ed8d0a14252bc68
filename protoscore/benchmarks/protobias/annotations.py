"""What people chose on a benchmark's pairs: read from annotations, put to a majority, and how much they agree.

An annotation is a line ``triplet, rendition, annotator, choice`` in CSV, JSON Lines or Parquet; ``choice`` is ``correct``,
``adversarial`` or ``tie``, as the labels of the ProtoBias study (Appendix 12), whatever side the picture was shown on.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from protoscore.errors import DatasetError
from protoscore.folder import parts
from protoscore.sources.tables import Line, read_table, text_of
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
    for line in _lines(source):
        number = line.number
        row = {name: text_of(line.values.get(name), f"{source}, line {number}: {name}") for name in COLUMNS}
        missing = [column for column in COLUMNS if not row[column]]
        if missing:
            raise DatasetError(f"{source}: line {number} lacks {missing[0]!r}; needed: {', '.join(COLUMNS)}")
        choice, who, pair = row["choice"], row["annotator"], f"{row['triplet']}-{_rendition(row['rendition'])}"
        if choice not in CHOICES:
            raise DatasetError(f"{source}: line {number} has the choice {choice!r}; known: {', '.join(CHOICES)}")
        at = place.get(pair)
        if at is None:
            unknown += 1
        elif (at, who) in found:
            raise DatasetError(f"{source}: annotator {who!r} judged {pair} twice")
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


def _lines(source: Path) -> list[Line]:
    """Every annotation of a file, or of the Parquet files of a folder."""
    paths = parts(source, "*.parquet") if source.is_dir() else [source]
    return [line for path in paths for line in read_table(path, "annotations")]


def _rendition(text: str) -> str:
    """How spreadsheets write a whole number: ``0.0`` is 0."""
    return text.removesuffix(".0")
