"""How much a result depends on the wording of the instruction."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from protoscore.errors import ConfigError
from protoscore.stats.paired import difference, holm
from protoscore.stats.resampling import Estimate, cluster_bootstrap, interval, mean

NAN = float("nan")


class Sensitivity(NamedTuple):
    """How much an accuracy depends on the wording of the instruction (FairJudge, Table 7)."""

    accuracy: tuple[Estimate, ...]  # of each variant
    change: tuple[Estimate, ...]  # of each variant against the first, paired; empty interval for the first itself
    p: tuple[float, ...]  # of each change, Holm-adjusted; NaN for the first
    spread: Estimate  # best minus worst accuracy
    flips: Estimate  # share of rows whose outcome is not the same under every variant


def prompt_sensitivity(
    correct: ArrayLike, clusters: ArrayLike | None = None, resamples: int = 2000, seed: int = 0
) -> Sensitivity:
    """Compare instruction variants on the same rows.

    Args:
        correct: (rows, variants) 1 or 0, NaN for no measurement; the first variant is the original. What an abstention is
            worth is decided before, see :func:`accuracy`.
    """
    table = np.asarray(correct, float)
    if table.ndim != 2 or table.shape[1] < 2:
        raise ConfigError(f"correct must be (rows, variants) with two variants or more, not of shape {table.shape}")
    draw = (clusters, resamples, seed)
    whole = np.isfinite(table).all(1)
    found = [difference(column, table[:, 0], *draw) for column in table.T]
    valid = np.isfinite(table)
    p = [NAN, *holm([d.p for d in found[1:]]).tolist()]
    flips = np.where(whole, table.max(1) != table.min(1), np.nan)
    return Sensitivity(
        tuple(mean(column, *draw) for column in table.T), tuple(d.estimate for d in found), tuple(p),
        _spread(np.where(valid, table, 0), valid, *draw), mean(flips, *draw),
    )  # fmt: skip


def _spread(values: NDArray, valid: NDArray, clusters: ArrayLike | None, resamples: int, seed: int) -> Estimate:
    with np.errstate(invalid="ignore", divide="ignore"):
        value = float(np.ptp(values.sum(0) / valid.sum(0)))
    samples = np.ptp(cluster_bootstrap(values, valid, clusters, resamples, seed), axis=1)
    return Estimate(value, *interval(samples), int(valid.any(1).sum()), int((~valid.any(1)).sum()))
