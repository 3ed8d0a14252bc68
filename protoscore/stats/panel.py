"""Many scorers over the same rows, by group, from one set of bootstrap draws: what a study of ten metrics needs in seconds.

A draw picks whole clusters from the whole table, and every group, quantity, difference and kappa is read off the same draw, so
all of them are paired. Sums of wins are whole or half numbers, which float32 adds exactly up to millions of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from protoscore.stats.pairwise import (
    ElementSensitivity,
    FiveQuantities,
    comparisons,
    element_comparisons,
    elements_of,
    quantities_of,
)
from protoscore.stats.resampling import CHUNK, Estimate, cluster_index, cluster_weights, exact_bound, interval

Groups = Mapping[str, NDArray[np.bool_]]
Found = TypeVar("Found")


class Draws:
    """Bootstrap draws of whole clusters, kept to be used for everything: a byte a cluster and draw.

    Args:
        clusters: (rows,) labels of what was sampled independently: the triplet.
    """

    def __init__(self, clusters: ArrayLike, resamples: int = 10_000, seed: int = 0):
        labels = np.asarray(clusters)
        self.index, self.units = cluster_index(labels, len(labels))
        self.resamples = resamples
        parts = [np.minimum(weights, 255).astype(np.uint8) for weights in cluster_weights(self.units, resamples, seed)]
        self._counts = np.concatenate(parts) if parts else np.zeros((0, self.units), np.uint8)

    def units_in(self, rows: NDArray[np.bool_]) -> int:
        """How many clusters have a row among ``rows``."""
        return len(np.unique(self.index[rows]))

    def group_sums(self, columns: NDArray, groups: Groups) -> dict[str, NDArray[np.float32]]:
        """Column sums of each group in each draw, (resamples, columns).

        Rows of the same groups form a stratum; strata are summed once and added up to groups, which overlap.
        """
        member = np.stack([np.asarray(rows, bool) for rows in groups.values()], axis=1)
        kinds, stratum = np.unique(member, axis=0, return_inverse=True)
        parts = []
        for number, kind in enumerate(kinds):
            rows = np.flatnonzero(stratum.ravel() == number)
            used, place = np.unique(self.index[rows], return_inverse=True)
            order = np.argsort(place, kind="stable")
            starts = np.searchsorted(place[order], np.arange(len(used)))
            parts.append((used, np.add.reduceat(columns[rows[order]].astype(np.float32), starts), np.flatnonzero(kind)))
        out = np.zeros((len(groups), self.resamples, columns.shape[1]), np.float32)
        for start in range(0, self.resamples, CHUNK):
            part = slice(start, start + CHUNK)
            for used, sums, inside in parts:
                out[inside, part] += self._counts[part, used].astype(np.float32) @ sums
        return dict(zip(groups, out, strict=True))


def five_quantities_by_group(scores: ArrayLike, draws: Draws, groups: Groups) -> list[dict[str, FiveQuantities]]:
    """The five quantities of every scorer in every group of rows.

    Args:
        scores: (scorers, rows, 4) in the order of :class:`protoscore.schema.Cell`, higher is better, NaN where there is none.
        draws: of the triplets behind the rows.
        groups: (rows,) masks by name.

    Returns:
        One dict a scorer, by group; for a group of all rows the same as :func:`five_quantities`.
    """
    return _by_group([comparisons(*table.T) for table in np.asarray(scores, float)], quantities_of, draws, groups)


def elements_by_group(
    correct: ArrayLike, foils: ArrayLike, draws: Draws, groups: Groups
) -> list[dict[str, ElementSensitivity]]:
    """Element sensitivity of every scorer in every group of rows; of (scorers, rows, 2) and (scorers, rows, 3, 2) scores."""
    tables = [element_comparisons(*pair) for pair in zip(np.asarray(correct, float), np.asarray(foils, float), strict=True)]
    return _by_group(tables, elements_of, draws, groups)


def _by_group(
    tables: list[tuple[NDArray, NDArray, NDArray]], estimates: Callable[..., Found], draws: Draws, groups: Groups
) -> list[dict[str, Found]]:
    """``estimates`` of the wins, validity and ties, each (rows, 6), of every scorer in every group."""
    columns = np.hstack([np.hstack([wins, valid]) for wins, valid, _ in tables])
    samples = draws.group_sums(columns, groups)
    found: list[dict[str, Found]] = [{} for _ in tables]
    for name, rows in groups.items():
        units = draws.units_in(rows)
        for number, (wins, valid, ties) in enumerate(tables):
            here = samples[name][:, number * 12 : number * 12 + 12].astype(np.float64)
            with np.errstate(invalid="ignore", divide="ignore"):
                rates = here[:, :6] / here[:, 6:]
            found[number][name] = estimates(wins[rows], valid[rows], ties[rows], rates, units)
    return found


class ChoiceComparison(NamedTuple):
    """Two scorers' choices on the rows that both decided."""

    first: int
    second: int
    kappa: Estimate  # Cohen's, of right and wrong
    difference: Estimate  # rate of right choices, first minus second
    p: float  # two-sided, of no difference; inverts the percentile interval


def compare_choices(
    choices: ArrayLike, draws: Draws, groups: Groups, pairs: Sequence[tuple[int, int]] | None = None
) -> dict[str, list[ChoiceComparison]]:
    """Agreement and difference of scorers (or people) that made the same choices, by group.

    Args:
        choices: (rows, choices a row, scorers), 1 right, 0 wrong, NaN undecided.
        pairs: which scorers to compare; default each with each.
    """
    table = np.asarray(choices, float)
    pairs = list(combinations(range(table.shape[2]), 2)) if pairs is None else list(pairs)
    if not pairs:
        return {name: [] for name in groups}
    decided, right = np.isfinite(table), np.nan_to_num(table)
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    both = decided[:, :, first] & decided[:, :, second]
    a, b = right[:, :, first] * both, right[:, :, second] * both
    columns = np.hstack([part.sum(1) for part in (both, a, b, a * b)])
    samples = draws.group_sums(columns, groups)
    found = {}
    for name, rows in groups.items():
        units, size = draws.units_in(rows), int(np.count_nonzero(rows)) * table.shape[1]
        seen = columns[rows].sum(0).reshape(4, 1, -1)
        drawn = samples[name].astype(np.float64).reshape(-1, 4, len(pairs)).transpose(1, 0, 2)
        found[name] = [_pairing(pair, seen[:, :, k], drawn[:, :, k], units, size) for k, pair in enumerate(pairs)]
    return found


def _pairing(pair: tuple[int, int], seen: NDArray, drawn: NDArray, units: int, rows: int) -> ChoiceComparison:
    n = int(seen[0, 0])
    gap, gaps = (float(_gap(seen)[0]), _gap(drawn))
    gaps = gaps[np.isfinite(gaps)]
    tail = min((gaps <= 0).sum(), (gaps >= 0).sum()) + 1
    low, high = interval(gaps)
    if low == high == 0 and n:
        low, high = -exact_bound(units), exact_bound(units)
    difference = Estimate(gap, low, high, n, rows - n, int(seen[0, 0] - seen[1, 0] - seen[2, 0] + 2 * seen[3, 0]))
    kappa = Estimate(float(binary_kappa(seen)[0]), *interval(binary_kappa(drawn)), n, rows - n)
    return ChoiceComparison(*pair, kappa, difference, float(min(1.0, 2 * tail / (len(gaps) + 1))) if n else float("nan"))


def _gap(sums: NDArray) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return (sums[1] - sums[2]) / sums[0]


def binary_kappa(sums: NDArray) -> NDArray[np.float64]:
    """Cohen's kappa from (4, ...) sums: rows, right by the first, right by the second, right by both; NaN where undefined."""
    n, a, b, both = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        agree = (n - a - b + 2 * both) / n
        chance = (a * b + (n - a) * (n - b)) / n**2
        return np.where(chance < 1, (agree - chance) / (1 - chance), np.nan)
