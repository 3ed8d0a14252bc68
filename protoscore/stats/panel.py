"""Many scorers over the same rows, by group, from one set of bootstrap draws: what a study of ten metrics needs in seconds.

A draw picks whole clusters from the whole table, and every group, quantity, difference and kappa is read off the same draw, so
all of them are paired. Sums of wins are whole or half numbers, which float32 adds exactly up to millions of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from protoscore.stats.pairwise import FiveQuantities, comparisons, quantities_of
from protoscore.stats.resampling import Estimate, cluster_index, cluster_weights, exact_bound, interval

Groups = Mapping[str, NDArray[np.bool_]]


def five_quantities_by_group(
    scores: ArrayLike, clusters: ArrayLike, groups: Groups, resamples: int = 10_000, seed: int = 0
) -> list[dict[str, FiveQuantities]]:
    """The five quantities of every scorer in every group of rows.

    Args:
        scores: (scorers, rows, 4) in the order of :class:`protoscore.schema.Cell`, higher is better, NaN where there is none.
        clusters: (rows,) triplet of each row.
        groups: (rows,) masks by name.

    Returns:
        One dict a scorer, by group; for a group of all rows the same as :func:`five_quantities`.
    """
    tables = [comparisons(*np.asarray(table, float).T) for table in np.asarray(scores, float)]
    columns = np.hstack([np.hstack([wins, valid]) for wins, valid, _ in tables])
    index, _ = cluster_index(clusters, len(columns))
    samples = _group_sums(columns, clusters, groups, resamples, seed)
    found: list[dict[str, FiveQuantities]] = [{} for _ in tables]
    for name, rows in groups.items():
        units = len(np.unique(index[rows]))
        for number, (wins, valid, ties) in enumerate(tables):
            here = samples[name][:, number * 12 : number * 12 + 12].astype(np.float64)
            with np.errstate(invalid="ignore", divide="ignore"):
                rates = here[:, :6] / here[:, 6:]
            found[number][name] = quantities_of(wins[rows], valid[rows], ties[rows], rates, units)
    return found


class Pairing(NamedTuple):
    """Two scorers' choices on the rows that both decided."""

    first: int
    second: int
    kappa: Estimate  # Cohen's, of right and wrong
    difference: Estimate  # rate of right choices, first minus second
    p: float  # two-sided, of no difference; inverts the percentile interval


def compare_choices(
    choices: ArrayLike, clusters: ArrayLike, groups: Groups, pairs: Sequence[tuple[int, int]] | None = None,
    resamples: int = 10_000, seed: int = 0,
) -> dict[str, list[Pairing]]:  # fmt: skip
    """Agreement and difference of scorers (or people) that made the same choices, by group.

    Args:
        choices: (rows, scorers), 1 right, 0 wrong, NaN undecided.
        pairs: which columns to compare; default each with each.
    """
    table = np.asarray(choices, float)
    pairs = list(combinations(range(table.shape[1]), 2)) if pairs is None else list(pairs)
    if not pairs:
        return {name: [] for name in groups}
    decided, right = np.isfinite(table), np.nan_to_num(table)
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    both = decided[:, first] & decided[:, second]
    a, b = right[:, first] * both, right[:, second] * both
    columns = np.hstack([both, a, b, a * b])
    index, _ = cluster_index(clusters, len(columns))
    samples = _group_sums(columns, clusters, groups, resamples, seed)
    found = {}
    for name, rows in groups.items():
        units = len(np.unique(index[rows]))
        seen = columns[rows].sum(0).reshape(4, 1, -1)
        drawn = samples[name].astype(np.float64).reshape(-1, 4, len(pairs)).transpose(1, 0, 2)
        size = int(np.count_nonzero(rows))
        found[name] = [_pairing(pair, seen[:, :, k], drawn[:, :, k], units, size) for k, pair in enumerate(pairs)]
    return found


def _pairing(pair: tuple[int, int], seen: NDArray, drawn: NDArray, units: int, rows: int) -> Pairing:
    n = int(seen[0, 0])
    gap, gaps = (float(_gap(seen)[0]), _gap(drawn))
    gaps = gaps[np.isfinite(gaps)]
    tail = min((gaps <= 0).sum(), (gaps >= 0).sum()) + 1
    low, high = interval(gaps)
    if low == high == 0 and n:
        low, high = -exact_bound(units), exact_bound(units)
    difference = Estimate(gap, low, high, n, rows - n, int(seen[0, 0] - seen[1, 0] - seen[2, 0] + 2 * seen[3, 0]))
    kappa = Estimate(float(binary_kappa(seen)[0]), *interval(binary_kappa(drawn)), n, rows - n)
    return Pairing(*pair, kappa, difference, float(min(1.0, 2 * tail / (len(gaps) + 1))) if n else float("nan"))


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


def _group_sums(
    columns: NDArray, clusters: ArrayLike, groups: Groups, resamples: int, seed: int
) -> dict[str, NDArray[np.float32]]:
    """Resampled column sums of each group, (resamples, columns).

    Rows of the same groups form a stratum; strata are summed once and added up to groups, which overlap.
    """
    index, units = cluster_index(clusters, len(columns))
    member = np.stack([np.asarray(rows, bool) for rows in groups.values()], axis=1)
    kinds, stratum = np.unique(member, axis=0, return_inverse=True)
    parts = []
    for number in range(len(kinds)):
        rows = np.flatnonzero(stratum.ravel() == number)
        used, place = np.unique(index[rows], return_inverse=True)
        sums = np.zeros((len(used), columns.shape[1]), np.float32)
        np.add.at(sums, place, columns[rows].astype(np.float32))
        parts.append((used, sums, np.flatnonzero(kinds[number])))
    out = np.zeros((len(groups), resamples, columns.shape[1]), np.float32)
    start = 0
    for weights in cluster_weights(units, resamples, seed):
        stop = start + len(weights)
        light = weights.astype(np.float32)
        for used, sums, inside in parts:
            out[inside, start:stop] += light[:, used] @ sums
        start = stop
    return dict(zip(groups, out, strict=True))
