"""Correlation of two scores, with cluster-bootstrap intervals. No correlation of a constant: NaN."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from protoscore.errors import ConfigError
from protoscore.stats.resampling import Estimate, cluster_index, cluster_weights, interval

NAN = float("nan")


def correlation(
    first: ArrayLike, second: ArrayLike, kind: Literal["pearson", "spearman", "kendall"] = "spearman",
    clusters: ArrayLike | None = None, resamples: int = 2000, seed: int = 0,
) -> Estimate:  # fmt: skip
    """Pearson's r, Spearman's rho or Kendall's tau-b, range [-1, 1], with its cluster-bootstrap interval.

    Args:
        first, second: (rows,) numbers; a row with NaN in either is left out.

    Kendall's interval costs rows^2 x resamples: seconds at 2,000 rows.
    """
    points = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
    resampled = {"pearson": _pearson, "spearman": _spearman, "kendall": _tau}
    if kind not in points:
        raise ConfigError(f"kind must be 'pearson', 'spearman' or 'kendall', not {kind!r}")
    x, y = np.asarray(first, float), np.asarray(second, float)
    if x.shape != y.shape or x.ndim != 1:
        raise ConfigError(f"two lists of equal length are compared, not shapes {x.shape} and {y.shape}")
    valid = np.isfinite(x) & np.isfinite(y)
    left_out = int((~valid).sum())
    index, count = cluster_index(None if clusters is None else np.asarray(clusters)[valid], int(valid.sum()))
    x, y = x[valid], y[valid]
    if len(x) < 2 or len(np.unique(x)) < 2 or len(np.unique(y)) < 2:
        return Estimate(NAN, NAN, NAN, len(x), left_out)
    with np.errstate(invalid="ignore", divide="ignore"):
        samples = [resampled[kind](x, y, weights[:, index]) for weights in cluster_weights(count, resamples, seed)]
    return Estimate(float(points[kind](x, y).statistic), *interval(np.concatenate(samples)), len(x), left_out)


def _pearson(x: NDArray, y: NDArray, weights: NDArray) -> NDArray:
    """Weighted Pearson correlation; ``x`` and ``y`` are (n,) or, as ranks are, one row a resample."""
    total = weights.sum(1, keepdims=True)
    dx, dy = (v - (weights * v).sum(1, keepdims=True) / total for v in (np.atleast_2d(x), np.atleast_2d(y)))
    covariance = (weights * dx * dy).sum(1)
    scale = np.sqrt((weights * dx**2).sum(1) * (weights * dy**2).sum(1))
    return np.where(scale > 0, covariance / scale, np.nan)


def _spearman(x: NDArray, y: NDArray, weights: NDArray) -> NDArray:
    return _pearson(_ranks(x, weights), _ranks(y, weights), weights)


def _ranks(x: NDArray, weights: NDArray) -> NDArray:
    """(resamples, n) mid-ranks of ``x`` where row i occurs ``weights[:, i]`` times."""
    per_level, level = _levels(x, weights)
    return (np.cumsum(per_level, 1) - per_level / 2)[:, level]


def _levels(x: NDArray, weights: NDArray) -> tuple[NDArray, NDArray]:
    """How often each distinct value of ``x`` occurs in each resample, and the level of each row."""
    _, level = np.unique(x, return_inverse=True)
    order = np.argsort(level, kind="stable")
    starts = np.searchsorted(level[order], np.arange(level.max() + 1))
    return np.add.reduceat(weights[:, order], starts, axis=1), level


def _tau(x: NDArray, y: NDArray, weights: NDArray, block: int = 1024) -> NDArray:
    """Weighted Kendall's tau-b: copies of one row are ties in both variables."""
    score = np.zeros(len(weights))
    for start in range(0, len(x), block):  # bounds memory at block x n
        part = slice(start, start + block)
        signs = np.sign(x[part, None] - x) * np.sign(y[part, None] - y)
        score += ((weights @ signs.T) * weights[:, part]).sum(1) / 2
    total = weights.sum(1)
    pairs = total * (total - 1) / 2
    tied = [(t * (t - 1) / 2).sum(1) for t in (_levels(x, weights)[0], _levels(y, weights)[0])]
    scale = np.sqrt((pairs - tied[0]) * (pairs - tied[1]))
    return np.where(scale > 0, score / scale, np.nan)
