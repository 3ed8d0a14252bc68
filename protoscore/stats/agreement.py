"""Agreement between raters, and between a metric and people, each with a cluster-bootstrap interval.

Ratings are labels: text or numbers, ``None`` or NaN where a rater said nothing (left out, and counted). Where the papers are
silent the choice is a named parameter, with this default:

* ``weights=None`` (:func:`cohen_kappa`): unweighted. ProtoBias (Table 3) uses it between a metric's choice and the human
  majority, and ``"quadratic"`` among annotators; BBQ-V (Table A.5) uses ``"quadratic"`` on its 1-5 criteria.
* ``labels=None``: the labels seen, sorted. Weighted kappa and ordinal alpha depend on that order: give it for words. Whole
  numbers are a scale: for weighted kappa those between the ones seen belong to it.
* ``tie=None``, ``strict=False`` (:func:`majority`): the most frequent label wins; a split vote has no majority.

An undefined value (one label only, nothing rated twice) is NaN, never 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from protoscore.errors import ConfigError
from protoscore.stats.resampling import Draw, Estimate, cluster_index, cluster_sums, exact_bound, interval

Weights = Literal["linear", "quadratic"] | None
Level = Literal["nominal", "ordinal", "interval"]
NAN = float("nan")
MOST_GRADES = 100


def encode(ratings: ArrayLike, labels: Sequence[Any] | None = None) -> tuple[NDArray[np.int64], list[Any]]:
    """Each rating as the position of its label, -1 where there is none, and the labels.

    Raises:
        ConfigError: a rating is none of ``labels``.
    """
    values = np.asarray(ratings, dtype=object)
    flat = [None if v is None or v != v else v for v in values.ravel().tolist()]
    seen = {v for v in flat if v is not None}
    known = list(labels) if labels is not None else _sorted(seen)
    if unknown := seen - set(known):
        raise ConfigError(f"rating {_sorted(unknown)[0]!r} is none of the labels {known}")
    position = {label: i for i, label in enumerate(known)} | {None: -1}
    return np.array([position[v] for v in flat], np.int64).reshape(values.shape), known


def _scale(ratings: NDArray) -> Sequence[int] | None:
    """The grades from the lowest to the highest; None where ratings are something else, or further apart than grades are."""
    seen = {v for v in ratings.ravel().tolist() if v is not None and v == v}
    grades = {int(v) for v in seen if isinstance(v, int | float | np.number) and not isinstance(v, bool) and v == int(v)}
    small = seen and len(grades) == len(seen) and max(grades) - min(grades) <= MOST_GRADES
    return range(min(grades), max(grades) + 1) if small else None


def _sorted(labels: set) -> list:
    try:
        return sorted(labels)
    except TypeError:  # numbers and words in one column
        return sorted(labels, key=lambda v: (type(v).__name__, v))


def cohen_kappa(
    first: ArrayLike, second: ArrayLike, labels: Sequence[Any] | None = None, weights: Weights = None,
    clusters: ArrayLike | None = None, resamples: int = 2000, seed: int = 0,
) -> Estimate:  # fmt: skip
    """Cohen's kappa of two raters (1960; weighted 1968): 1 agreement, 0 what chance gives, range [-1, 1].

    Args:
        first, second: (rows,) labels; a row that either did not rate is left out.
        labels: every label in order; default those seen, sorted.
        weights: how a disagreement counts: None all alike, or by the distance of the labels' positions.
        clusters: (rows,) what was sampled independently; default each row.
    """
    ratings = _columns(first, second)
    both, known = encode(ratings, _scale(ratings) if labels is None and weights else labels)
    return _mean_kappa(both, [(0, 1)], len(known), weights, (clusters, resamples, seed))


def mean_pairwise_kappa(
    ratings: ArrayLike, labels: Sequence[Any] | None = None, weights: Weights = "quadratic",
    clusters: ArrayLike | None = None, resamples: int = 2000, seed: int = 0,
) -> Estimate:  # fmt: skip
    """Cohen's kappa averaged over all pairs of raters: the Human row of ProtoBias, Table 3.

    Args:
        ratings: (items, raters). A pair of raters without a common item, or with one label only, is left out of the average.
    """
    codes, known = encode(_matrix(ratings), _scale(_matrix(ratings)) if labels is None and weights else labels)
    pairs = list(combinations(range(codes.shape[1]), 2))
    return _mean_kappa(codes, pairs, len(known), weights, (clusters, resamples, seed))


def _mean_kappa(codes: NDArray, pairs: list[tuple[int, int]], k: int, weights: Weights, draw: Draw) -> Estimate:
    cost = disagreement(k, weights)
    valid = np.stack([(codes[:, a] >= 0) & (codes[:, b] >= 0) for a, b in pairs], axis=1)
    n = int(valid.sum())
    left_out = valid.size - n
    if not n:
        return Estimate(NAN, NAN, NAN, 0, left_out)
    cells = np.zeros((len(codes), len(pairs) * k * k))
    for p, (a, b) in enumerate(pairs):
        rows = np.flatnonzero(valid[:, p])
        cells[rows, p * k * k + codes[rows, a] * k + codes[rows, b]] = 1

    def kappas(tables: NDArray) -> NDArray:
        return nanmean(_kappa(tables.reshape(-1, len(pairs), k, k), cost))

    value = float(kappas(cells.sum(0, keepdims=True))[0])
    low, high = interval(kappas(cluster_sums(cells, *draw)))
    if low == high == 1.0:
        low = 1 - exact_bound(cluster_index(draw[0], len(codes))[1]) / _chance(cells.sum(0).reshape(-1, k, k).sum(0), cost)
    return Estimate(value, max(low, -1.0), high, n, left_out)


def _kappa(tables: NDArray, cost: NDArray) -> NDArray:
    """Weighted kappa of (..., k, k) contingency tables."""
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = tables / tables.sum((-2, -1), keepdims=True)
        chance = shares.sum(-1)[..., :, None] * shares.sum(-2)[..., None, :]
        expected = (chance * cost).sum((-2, -1))
        return np.where(expected > 0, 1 - (shares * cost).sum((-2, -1)) / expected, np.nan)


def _chance(table: NDArray, cost: NDArray) -> float:
    """Disagreement that chance alone gives with the margins of ``table``."""
    shares = table / table.sum()
    return float((np.outer(shares.sum(1), shares.sum(0)) * cost).sum())


def disagreement(k: int, weights: Weights) -> NDArray[np.float64]:
    """(k, k) cost of each pair of labels, 0 on the diagonal and at most 1."""
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k))) / max(1, k - 1)
    costs = {None: (distance > 0).astype(float), "linear": distance, "quadratic": distance**2}
    if weights not in costs:
        raise ConfigError(f"weights must be None, 'linear' or 'quadratic', not {weights!r}")
    return costs[weights]


def fleiss_kappa(
    ratings: ArrayLike, labels: Sequence[Any] | None = None,
    clusters: ArrayLike | None = None, resamples: int = 2000, seed: int = 0,
) -> Estimate:  # fmt: skip
    """Fleiss' kappa (1971): 1 agreement, 0 chance.

    Args:
        ratings: (items, raters). An item with fewer than two ratings is left out; items may have different numbers of
            ratings, each item then counts once in the agreement and each rating once in the margins.
    """
    codes, known = encode(_matrix(ratings), labels)
    counts = _counts(codes, len(known))
    each = counts.sum(1)
    rated = each >= 2
    agree = np.where(rated, (counts * (counts - 1)).sum(1) / np.maximum(1, each * (each - 1)), 0)
    columns = np.column_stack([agree, rated, counts * rated[:, None]])

    def statistic(sums: NDArray) -> NDArray:
        margins = sums[:, 2:] / sums[:, 2:].sum(1, keepdims=True)
        chance = (margins**2).sum(1)
        return np.where(chance < 1, (sums[:, 0] / sums[:, 1] - chance) / (1 - chance), np.nan)

    return _of_sums(statistic, columns, rated, (clusters, resamples, seed))


def krippendorff_alpha(
    ratings: ArrayLike, level: Level = "nominal", labels: Sequence[Any] | None = None,
    clusters: ArrayLike | None = None, resamples: int = 2000, seed: int = 0,
) -> Estimate:  # fmt: skip
    """Krippendorff's alpha (2011): 1 agreement, 0 chance; takes any number of raters and missing ratings.

    Args:
        ratings: (items, raters). An item with fewer than two ratings is left out.
        level: how labels differ: equal or not; by rank, in the order of ``labels``; by their numeric values.
    """
    if level not in ("nominal", "ordinal", "interval"):
        raise ConfigError(f"level must be 'nominal', 'ordinal' or 'interval', not {level!r}")
    codes, known = encode(_matrix(ratings), labels)
    k = len(known)
    counts = _counts(codes, k)
    each = counts.sum(1)
    rated = each >= 2
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(k)
    coincidences = np.where(rated[:, None, None], pairs / np.maximum(1, each - 1)[:, None, None], 0)

    def statistic(sums: NDArray) -> NDArray:
        table = sums.reshape(-1, k, k)
        margins = table.sum(2)
        total = margins.sum(1)
        cost = _distance(level, margins, known)
        observed = (table * cost).sum((1, 2)) / total
        expected = (margins[:, :, None] * margins[:, None, :] * cost).sum((1, 2)) / (total * (total - 1))
        return np.where(expected > 0, 1 - observed / expected, np.nan)

    return _of_sums(statistic, coincidences.reshape(len(codes), -1), rated, (clusters, resamples, seed))


def _distance(level: Level, margins: NDArray, known: list[Any]) -> NDArray:
    """(resamples, k, k) squared differences of labels; ordinal ones depend on how often each label occurs."""
    if level == "nominal":
        return 1 - np.eye(len(known))
    scale = np.cumsum(margins, 1) - margins / 2 if level == "ordinal" else np.asarray(known, float)[None]
    return (scale[:, :, None] - scale[:, None, :]) ** 2


def _counts(codes: NDArray, k: int) -> NDArray:
    """(items, k): how often each label was given to each item."""
    return (codes[:, :, None] == np.arange(k)).sum(1).astype(float)


def _of_sums(statistic: Callable[[NDArray], NDArray], columns: NDArray, valid: NDArray, draw: Draw) -> Estimate:
    n = int(valid.sum())
    if not n:
        return Estimate(NAN, NAN, NAN, 0, len(valid))
    with np.errstate(invalid="ignore", divide="ignore"):
        value = float(statistic(columns.sum(0, keepdims=True))[0])
        low, high = interval(statistic(cluster_sums(columns, *draw)))
    return Estimate(value, low, high, n, len(valid) - n)


def majority(ratings: ArrayLike, tie: Any = None, strict: bool = False) -> NDArray[np.object_]:
    """The label that most raters gave each item.

    Args:
        ratings: (items, raters).
        tie: what a split vote becomes: None (no majority, left out of what follows) or a label such as ``"tie"``.
        strict: ask for more than half of the item's ratings instead of more than any other label.

    Returns:
        (items,) labels; None for an item that nobody rated.
    """
    codes, known = encode(_matrix(ratings))
    counts = _counts(codes, len(known))
    out = np.full(len(codes), None, object)
    if not known:
        return out
    top = counts.max(1)
    clear = (counts == top[:, None]).sum(1) == 1
    if strict:
        clear &= top > counts.sum(1) / 2
    winners = np.array(known, object)[counts.argmax(1)]
    rated = top > 0
    out[rated] = tie
    out[rated & clear] = winners[rated & clear]
    return out


def _columns(first: ArrayLike, second: ArrayLike) -> NDArray:
    a, b = np.asarray(first, object), np.asarray(second, object)
    if a.shape != b.shape or a.ndim != 1:
        raise ConfigError(f"two lists of equal length are compared, not shapes {a.shape} and {b.shape}")
    return np.column_stack([a, b])


def _matrix(ratings: ArrayLike) -> NDArray:
    matrix = np.asarray(ratings, object)
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        raise ConfigError(f"ratings must be (items, raters) with two raters or more, not of shape {matrix.shape}")
    return matrix


def nanmean(values: NDArray) -> NDArray:
    """Mean over the last axis of what is defined; NaN where nothing is."""
    defined = np.isfinite(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(defined, values, 0).sum(-1) / defined.sum(-1)
