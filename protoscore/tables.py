"""The table of scores as arrays: one row a (triplet, rendition), one column a cell."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from protoscore.errors import DatasetError
from protoscore.folder import read_manifest
from protoscore.schema import Cell, Status
from protoscore.stats.pairwise import FiveQuantities, five_quantities

CELLS = [cell.value for cell in Cell]


class CellTable(NamedTuple):
    """Scores of one scorer. ``scores`` is (rows, 4) in the order of :class:`Cell`, NaN where there is no number."""

    scorer: str
    ids: NDArray[np.str_]
    triplets: NDArray[np.str_]
    domains: NDArray[np.str_]
    knobs: NDArray[np.str_]
    scores: NDArray[np.float64]
    states: dict[str, int]  # how many scores ended in each state

    def quantities(self, rows: NDArray[np.bool_] | slice = slice(None), resamples: int = 2000) -> FiveQuantities:
        """The five quantities over ``rows``."""
        columns = dict(zip(CELLS, self.scores[rows].T, strict=True))
        return five_quantities(**columns, clusters=self.triplets[rows], resamples=resamples)


def read_scores(run: Path) -> list[CellTable]:
    """Every scorer's table of a run, in the order in which they were scored.

    Raises:
        DatasetError: the folder is no finished run.
    """
    read_manifest(run, "score")
    path = run / "scores.parquet"
    if not path.is_file():
        raise DatasetError(f"{run} holds no scores.parquet; run 'protoscore score' again, it goes on where it stopped")
    table = pq.read_table(path)
    names = table["scorer"].to_numpy(zero_copy_only=False)
    return [_pivot(name, table.filter(names == name)) for name in dict.fromkeys(names)]


def _pivot(name: str, table) -> CellTable:
    columns = {key: table[key].to_numpy(zero_copy_only=False) for key in ("id", "triplet", "cell", "domain", "knob", "status")}
    scores = np.where(columns["status"] == Status.OK.value, table["score"].to_numpy(zero_copy_only=False), np.nan)
    ids, first, index = np.unique(columns["id"].astype(str), return_index=True, return_inverse=True)
    wide = np.full((len(ids), len(CELLS)), np.nan)
    for position, cell in enumerate(CELLS):
        here = columns["cell"] == cell
        wide[index[here], position] = scores[here].astype(float)
    states = {str(state): int(count) for state, count in zip(*np.unique(columns["status"].astype(str), return_counts=True))}
    text = {key: columns[key][first].astype(str) for key in ("triplet", "domain", "knob")}
    return CellTable(name, ids, text["triplet"], text["domain"], text["knob"], wide, states)
