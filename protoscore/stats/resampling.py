"""Cluster bootstrap for ratios of sums, the shape that every mean, rate and accuracy here has."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

CHUNK = 500  # resamples drawn at once; bounds memory at CHUNK x clusters


class Estimate(NamedTuple):
    """A number with its 95 % interval, the rows behind it, the rows left out, and the ties among them."""

    value: float
    low: float
    high: float
    n: int
    left_out: int = 0
    ties: int = 0


def cluster_bootstrap(
    numerators: ArrayLike, denominators: ArrayLike, clusters: ArrayLike, resamples: int = 2000, seed: int = 0
) -> NDArray[np.float64]:
    """Resampled values of ``sum(numerator) / sum(denominator)`` per column, drawing whole clusters with replacement.

    Columns share the draws, so differences of columns are paired.

    Args:
        numerators: (rows, columns).
        denominators: (rows, columns); 0 leaves the row out of that column.
        clusters: (rows,) labels of what was sampled independently: the triplet, the question, the prompt.

    Returns:
        (resamples, columns); NaN where a resample holds no row of the column.
    """
    _, index = np.unique(np.asarray(clusters), return_inverse=True)
    groups = int(index.max(initial=-1)) + 1
    sums = [_sum_by(np.asarray(a, float), index, groups) for a in (numerators, denominators)]
    rng = np.random.default_rng(seed)
    parts = []
    for start in range(0, resamples, CHUNK):
        size = min(CHUNK, resamples - start)
        picks = rng.integers(0, groups, (size, groups)) + np.arange(size)[:, None] * groups
        weights = np.bincount(picks.ravel(), minlength=size * groups).reshape(size, groups).astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            parts.append((weights @ sums[0]) / (weights @ sums[1]))
    return np.concatenate(parts)


def _sum_by(rows: NDArray, index: NDArray, groups: int) -> NDArray:
    out = np.zeros((groups, rows.shape[1]))
    np.add.at(out, index, rows)
    return out


def interval(samples: NDArray, level: float = 0.95) -> tuple[float, float]:
    """Percentile interval of resampled values; NaN bounds when nothing could be resampled."""
    samples = samples[np.isfinite(samples)]
    if not len(samples):
        return float("nan"), float("nan")
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def exact_bound(clusters: int, level: float = 0.95) -> float:
    """How far from 0 or 1 a rate may truly be when all of ``clusters`` agree (Clopper-Pearson).

    The bootstrap has nothing to vary there and would claim an interval of width zero.
    """
    return float(1 - stats.beta.ppf((1 - level) / 2, clusters, 1)) if clusters else float("nan")
