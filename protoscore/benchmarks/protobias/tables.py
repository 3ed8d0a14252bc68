"""The table of scores as the four cells of each row, and its foils."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from protoscore.benchmarks.protobias.schema import Cell, Foil
from protoscore.errors import DatasetError
from protoscore.reporting.tables import is_own_images, numbers_of, scores_file, states_of
from protoscore.stats.pairwise import FiveQuantities, five_quantities

CELLS = [cell.value for cell in Cell]
FOILS = [foil.value for foil in Foil]  # by element, of both subjects each


class CellTable(NamedTuple):
    """Scores of one scorer. ``scores`` is (rows, 4) in the order of :class:`Cell`, ``foils`` (rows, 3, 2) by element and
    subject in the order of :class:`Foil`; NaN where there is no number."""

    scorer: str
    ids: NDArray[np.str_]
    triplets: NDArray[np.str_]
    domains: NDArray[np.str_]
    knobs: NDArray[np.str_]
    scores: NDArray[np.float64]
    foils: NDArray[np.float64]
    states: dict[str, int]  # how many scores ended in each state

    def quantities(self, rows: NDArray[np.bool_] | slice = slice(None), resamples: int = 2000) -> FiveQuantities:
        """The five quantities over ``rows``."""
        columns = dict(zip(CELLS, self.scores[rows].T, strict=True))
        return five_quantities(**columns, clusters=self.triplets[rows], resamples=resamples)


def read_scores(run: Path) -> list[CellTable]:
    """Every scorer's table of a run, in the order in which they were scored.

    Raises:
        DatasetError: the folder is not a finished run.
    """
    if is_own_images(run):
        raise DatasetError(f"{run} is a run over your own pictures, without the four cells of a benchmark")
    table = pq.read_table(scores_file(run))
    names = table["scorer"].to_numpy(zero_copy_only=False)
    return [_pivot(str(name), table.filter(names == name)) for name in dict.fromkeys(names)]


def _pivot(name: str, table: pa.Table) -> CellTable:
    scores = numbers_of(table)
    ids, first, index = np.unique(np.array(table["pair"].to_pylist(), dtype=str), return_index=True, return_inverse=True)
    cells = table["cell"].to_numpy(zero_copy_only=False)
    wide = np.full((len(ids), len(CELLS) + len(FOILS)), np.nan)
    for position, cell in enumerate(CELLS + FOILS):
        here = cells == cell
        wide[index[here], position] = scores[here]
    triplets, domains, knobs = (
        np.array(table[key].take(first).to_pylist(), dtype=str) for key in ("triplet", "domain", "knob")
    )
    scores, foils = wide[:, : len(CELLS)], wide[:, len(CELLS) :].reshape(-1, 3, 2)
    return CellTable(name, ids, triplets, domains, knobs, scores, foils, states_of(table))
