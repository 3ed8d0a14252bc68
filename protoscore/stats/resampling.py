"""Cluster bootstrap for statistics of sums, the shape that every mean, rate, accuracy, kappa and F1 here has."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse, stats

from protoscore.errors import ConfigError
from protoscore.figures import number

Draw = tuple[ArrayLike | None, int, int]  # clusters, resamples, seed

CHUNK = 500  # resamples drawn at once, fewer where there are many clusters
CELLS = 8_000_000  # bounds a chunk's resamples x clusters, and so its memory, at 64 MB; the draws do not depend on it


class Estimate(NamedTuple):
    """A number with its 95 % interval, the rows behind it, the rows left out, and the ties among them."""

    value: float
    low: float
    high: float
    n: int
    left_out: int = 0
    ties: int = 0

    @property
    def interval(self) -> str:
        """``[0.923, 0.973]``."""
        return f"[{number(self.low)}, {number(self.high)}]"

    def __format__(self, spec: str) -> str:
        """``f"{e}"`` is ``0.950 [0.923, 0.973]``, ``f"{e:+}"`` has signs, ``f"{e:.2}"`` two digits; a dash where undefined."""
        if not math.isfinite(self.value):
            return "-"
        signed, digits = spec.startswith("+"), int(spec.partition(".")[2] or 3)
        value, low, high = (number(part, signed, digits) for part in (self.value, self.low, self.high))
        return f"{value} [{low}, {high}]"


def flat(**estimates: Estimate) -> dict[str, Any]:
    """What ``evaluate`` modules return of each estimate: ``name``, ``name_interval``, ``name_n``, ``name_left_out``."""
    out: dict[str, Any] = {}
    for name, e in estimates.items():
        out |= {name: e.value, f"{name}_interval": [e.low, e.high], f"{name}_n": e.n, f"{name}_left_out": e.left_out}
    return out


def cluster_bootstrap(
    numerators: ArrayLike, denominators: ArrayLike, clusters: ArrayLike | None = None, resamples: int = 2000, seed: int = 0
) -> NDArray[np.float64]:
    """Resampled values of ``sum(numerator) / sum(denominator)`` per column, drawing whole clusters with replacement.

    Columns share the draws, so differences of columns are paired.

    Args:
        numerators: (rows, columns).
        denominators: (rows, columns); 0 leaves the row out of that column.
        clusters: (rows,) labels of what was sampled independently: the triplet, the question, the prompt; default each row.

    Returns:
        (resamples, columns); NaN where a resample holds no row of the column.
    """
    both = np.hstack([np.asarray(numerators, float), np.asarray(denominators, float)])
    above, below = np.hsplit(cluster_sums(both, clusters, resamples, seed), 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        return above / below


def cluster_sums(columns: Any, clusters: ArrayLike | None = None, resamples: int = 2000, seed: int = 0) -> NDArray[np.float64]:
    """Column sums over resampled clusters: any function of them (a kappa of its confusion counts) is then one array operation.

    Args:
        columns: (rows, columns), dense or sparse.
        clusters: (rows,) labels of what was sampled independently; default each row.

    Returns:
        (resamples, columns).
    """
    rows: Any = columns if sparse.issparse(columns) else np.asarray(columns, float)
    index, count = cluster_index(clusters, rows.shape[0])
    sums = sparse.csr_array((np.ones(len(index)), (index, np.arange(len(index)))), shape=(count, len(index))) @ rows
    return np.concatenate([weights @ sums for weights in cluster_weights(count, resamples, seed)])


def cluster_index(clusters: ArrayLike | None, rows: int) -> tuple[NDArray[np.int64], int]:
    """The number of each row's cluster, and how many clusters there are.

    Raises:
        ConfigError: there is not one cluster label a row.
    """
    if clusters is None:
        return np.arange(rows), rows
    labels = np.asarray(clusters)
    if labels.shape != (rows,):
        raise ConfigError(f"clusters has shape {labels.shape}, not one label for each of {rows} rows")
    found, index = np.unique(labels, return_inverse=True)
    return index, len(found)


def cluster_weights(clusters: int, resamples: int = 2000, seed: int = 0) -> Iterator[NDArray[np.float64]]:
    """How often each cluster is drawn, a (up to CHUNK, clusters) array at a time."""
    rng = np.random.default_rng(seed)
    chunk = min(CHUNK, max(1, CELLS // max(1, clusters)))
    for start in range(0, resamples, chunk):
        size = min(chunk, resamples - start)
        picks = (
            rng.integers(0, clusters, (size, clusters)) + np.arange(size)[:, None] * clusters
            if clusters
            else np.zeros((0,), int)
        )
        yield np.bincount(picks.ravel(), minlength=size * clusters).reshape(size, clusters).astype(np.float64)


def mean(values: ArrayLike, clusters: ArrayLike | None = None, resamples: int = 2000, seed: int = 0) -> Estimate:
    """Mean of ``values`` with its cluster-bootstrap interval; a rate when they are 0 and 1.

    Args:
        values: (rows,); NaN leaves a row out, and is counted.
        clusters: (rows,) labels of what was sampled independently; default each row.
    """
    return means(np.asarray(values, float)[:, None], clusters, resamples, seed)[0]


def means(columns: ArrayLike, clusters: ArrayLike | None = None, resamples: int = 2000, seed: int = 0) -> list[Estimate]:
    """:func:`mean` of every column of (rows, columns): the same numbers, for the price of one resampling."""
    values = np.asarray(columns, float)
    valid = np.isfinite(values)
    if not valid.any():
        return [Estimate(float("nan"), float("nan"), float("nan"), 0, len(values))] * values.shape[1]
    samples = cluster_bootstrap(np.where(valid, values, 0.0), valid, clusters, resamples, seed)
    count, found = cluster_index(clusters, len(values))[1], []
    for column, used, drawn in zip(values.T, valid.T, samples.T, strict=True):
        n = int(used.sum())
        value = float(column[used].mean()) if n else float("nan")
        found.append(Estimate(value, *rate_interval(value, drawn, count), n, len(values) - n))
    return found


def interval(samples: NDArray, level: float = 0.95) -> tuple[float, float]:
    """Percentile interval of resampled values; NaN bounds when nothing could be resampled."""
    samples = samples[np.isfinite(samples)]
    if not len(samples):
        return float("nan"), float("nan")
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def rate_interval(value: float, samples: NDArray, clusters: int) -> tuple[float, float]:
    """:func:`interval` of a rate; at 0 or 1 without any variation the exact bound of :func:`exact_bound`."""
    low, high = interval(samples)
    if low == high and value in (0.0, 1.0):
        return (value - exact_bound(clusters), value) if value else (value, exact_bound(clusters))
    return low, high


def exact_bound(clusters: int, level: float = 0.95) -> float:
    """How far from 0 or 1 a rate may truly be when all of ``clusters`` agree (Clopper-Pearson).

    The bootstrap has nothing to vary there and would claim an interval of width zero.
    """
    return float(1 - stats.beta.ppf((1 - level) / 2, clusters, 1)) if clusters else float("nan")
