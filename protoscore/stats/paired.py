"""Comparing two systems on the same items, correcting for many comparisons, and putting scores on a common scale.

Where the papers are silent the choice is a named parameter, with this default:

* ``tie_rule="drop"`` (:func:`binomial`, :func:`sign_test`): ties say nothing about which is better and are left out.
* :func:`holm` is applied by whoever makes several comparisons; the papers report raw p-values.
* ``average="items"`` (:func:`tie_calibrated_accuracy`): every item counts once, whatever its number of pairs.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse, stats

from protoscore.errors import ConfigError
from protoscore.stats.resampling import Estimate, cluster_bootstrap, cluster_index, cluster_weights, interval

TieRule = Literal["drop", "half", "loss"]
NAN = float("nan")


class PairedDifference(NamedTuple):
    """Mean of the first minus mean of the second, and the two-sided p of no difference."""

    estimate: Estimate
    p: float


def difference(
    first: ArrayLike, second: ArrayLike, clusters: ArrayLike | None = None, resamples: int = 2000, seed: int = 0
) -> PairedDifference:
    """Paired difference of two means or rates on the same rows, with cluster-bootstrap interval and p.

    p inverts the percentile interval: it is below 0.05 where the 95 % interval leaves out 0. The smallest it can be is
    2 / (resamples + 1).

    Args:
        first, second: (rows,) values, NaN where there is none; a row that either lacks is left out of both.
        clusters: (rows,) labels of what was sampled independently; default each row.
    """
    gaps, valid = _gaps(first, second)
    n = int(valid.sum())
    if not n:
        return PairedDifference(Estimate(NAN, NAN, NAN, 0, len(gaps)), NAN)
    samples = cluster_bootstrap(gaps[:, None], valid[:, None], clusters, resamples, seed)[:, 0]
    samples = samples[np.isfinite(samples)]
    tail = min((samples <= 0).sum(), (samples >= 0).sum()) + 1
    ties = int((valid & (gaps == 0)).sum())
    estimate = Estimate(float(gaps.sum() / n), *interval(samples), n, len(gaps) - n, ties)
    return PairedDifference(estimate, float(min(1.0, 2 * tail / (len(samples) + 1))))


class Binomial(NamedTuple):
    """Exact two-sided test that wins and losses are equally likely."""

    p: float
    wins: int
    losses: int
    ties: int
    rate: Estimate  # share of wins among what was tested, with its Clopper-Pearson interval


def binomial(wins: int, losses: int, ties: int = 0, tie_rule: TieRule = "drop") -> Binomial:
    """Exact two-sided binomial test of wins against losses (p = 0.5).

    Args:
        tie_rule: ``drop`` leaves ties out (the sign test); ``half`` gives each side half of them, an odd one is dropped;
            ``loss`` counts them against the first, which is not symmetric.
    """
    if min(wins, losses, ties) < 0:
        raise ConfigError("wins, losses and ties are counts and cannot be negative")
    if tie_rule not in ("drop", "half", "loss"):
        raise ConfigError(f"tie_rule must be 'drop', 'half' or 'loss', not {tie_rule!r}")
    above = wins + (ties // 2 if tie_rule == "half" else 0)
    tested = wins + losses + {"drop": 0, "half": ties // 2 * 2, "loss": ties}[tie_rule]
    left_out = wins + losses + ties - tested
    if not tested:
        return Binomial(1.0, wins, losses, ties, Estimate(NAN, NAN, NAN, 0, left_out, ties))
    test = stats.binomtest(int(above), int(tested))
    bounds = test.proportion_ci(0.95, "exact")
    rate = Estimate(above / tested, float(bounds.low), float(bounds.high), tested, left_out, ties)
    return Binomial(float(test.pvalue), wins, losses, ties, rate)


def sign_test(first: ArrayLike, second: ArrayLike, tie_rule: TieRule = "drop") -> Binomial:
    """Exact sign test of paired values; on right/wrong (1/0) values this is McNemar's exact test.

    It takes rows as independent: aggregate rows that share a question or a prompt first, or use :func:`difference`.

    Args:
        first, second: (rows,) values; a row with NaN in either is left out.
    """
    gaps, valid = _gaps(first, second)
    return binomial(int((gaps > 0).sum()), int((gaps < 0).sum()), int((valid & (gaps == 0)).sum()), tie_rule)


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Holm's step-down adjusted p-values (1979), in the given order; NaN is not a test and stays NaN."""
    p = np.asarray(p_values, float)
    out = np.full(p.shape, np.nan)
    tested = np.flatnonzero(np.isfinite(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    out[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return out


class UnitsNeeded(NamedTuple):
    """Clusters needed for a difference of this size to be significant with the given power."""

    needed: float  # infinite for a difference of 0
    have: int
    more: float  # needed - have, at least 0


def units_needed(
    first: ArrayLike, second: ArrayLike, clusters: ArrayLike | None = None, detect: float | None = None,
    power: float = 0.8, level: float = 0.05,
) -> UnitsNeeded:  # fmt: skip
    """How many more units (clusters: triplets, questions, prompts) would detect a paired difference.

    Normal approximation: n = ((z(1 - level/2) + z(power)) sd / detect)^2, with the sd of the difference between clusters.

    Args:
        first, second, clusters: as for :func:`difference`.
        detect: the true difference to detect; default the observed one.
    """
    gaps, valid = _gaps(first, second)
    index, _ = cluster_index(None if clusters is None else np.asarray(clusters)[valid], int(valid.sum()))
    gaps = gaps[valid]
    sizes = np.bincount(index)
    have = len(sizes)
    if have < 2:
        return UnitsNeeded(NAN, have, NAN)
    observed = gaps.mean()
    # a mean over rows is a ratio of cluster sums; this is what each cluster moves it by
    influence = (np.bincount(index, gaps) - observed * sizes) / sizes.mean()
    target = abs(observed if detect is None else detect)
    if target == 0:
        return UnitsNeeded(math.inf, have, math.inf)
    z = stats.norm.ppf(1 - level / 2) + stats.norm.ppf(power)
    needed = float(math.ceil((z * influence.std(ddof=1) / target) ** 2))
    return UnitsNeeded(needed, have, max(0.0, needed - have))


def minmax(scores: ArrayLike) -> NDArray[np.float64]:
    """Scores mapped linearly to [0, 1]; NaN stays, and a constant column has no scale and becomes NaN."""
    x = np.asarray(scores, float)
    found = x[np.isfinite(x)]
    if not len(found) or found.min() == found.max():
        return np.full(x.shape, np.nan)
    return (x - found.min()) / (found.max() - found.min())


def rank_normalise(scores: ArrayLike) -> NDArray[np.float64]:
    """Scores mapped to (rank - 1/2) / n in (0, 1), tied scores to their mean rank; NaN stays NaN and is not ranked."""
    x = np.asarray(scores, float)
    ranks = stats.rankdata(x, nan_policy="omit")
    return (ranks - 0.5) / max(1, int((~np.isnan(x)).sum()))


class TieCalibrated(NamedTuple):
    """Share of pairs that a metric orders, or ties, as people do, at the best threshold for its ties."""

    accuracy: Estimate
    threshold: float  # scores this close are a tie


def tie_calibrated_accuracy(
    metric: ArrayLike, human: ArrayLike, items: ArrayLike, average: Literal["items", "pairs"] = "items",
    threshold: float | None = None, resamples: int = 2000, seed: int = 0,
) -> TieCalibrated:  # fmt: skip
    """Pairwise accuracy with tie calibration (Deutsch et al. 2023), which TIFA160 in ProtoBias, Table 11, is reported in.

    Of all pairs of systems under one item: right where both order the pair alike or both tie. Two metric scores are tied
    when they differ by no more than the threshold, and the threshold is the smallest that gives the highest accuracy.

    Args:
        metric, human: (rows,) scores, higher is better; a row with NaN in either is left out.
        items: (rows,) the prompt of each row. An item with a single row makes no pair.
        average: mean over items of each item's accuracy, or over all pairs.
        threshold: use this one instead of searching; the interval otherwise includes the search.
    """
    m, h, labels = np.asarray(metric, float), np.asarray(human, float), np.asarray(items)
    valid = np.isfinite(m) & np.isfinite(h)
    left_out = int((~valid).sum())
    first, second, item = _pairs(labels[valid])
    if not len(first):
        return TieCalibrated(Estimate(NAN, NAN, NAN, 0, left_out), NAN)
    gap = m[valid][first] - m[valid][second]
    order = np.argsort(np.abs(gap), kind="stable")
    gap, item = gap[order], item[order]
    people = np.sign(h[valid][first] - h[valid][second])[order]
    worth = 1 / np.bincount(item)[item] if average == "items" else np.ones(len(item))
    as_order, as_tie = worth * ((np.sign(gap) == people) & (people != 0)), worth * (people == 0)
    steps = np.unique(np.abs(gap)) if threshold is None else np.array([threshold])
    if threshold is None:
        steps = np.union1d(0.0, steps)
    ends = np.searchsorted(np.abs(gap), steps, side="right")  # pairs up to here are ties at that threshold
    # change of each item's (numerator, denominator) from one threshold to the next
    bins = np.searchsorted(ends, np.arange(len(gap)), side="right")
    count = int(item.max()) + 1
    shape = (count, len(steps) + 1)
    gain = sparse.csr_array((as_tie - as_order, (item, bins)), shape=shape)
    start = np.bincount(item, as_order, count)
    total = np.bincount(item, worth, count)

    def curve(weights: NDArray) -> NDArray:
        return ((weights @ start)[:, None] + np.cumsum(weights @ gain, 1)[:, :-1]) / (weights @ total)[:, None]

    accuracies = curve(np.ones((1, count)))[0]
    best = int(accuracies.argmax())
    samples = np.concatenate([curve(weights).max(1) for weights in cluster_weights(count, resamples, seed)])
    estimate = Estimate(float(accuracies[best]), *interval(samples), len(gap), left_out, int(ends[best]))
    return TieCalibrated(estimate, float(steps[best]))


def _pairs(items: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Row numbers of both members of every pair of rows of one item, and the item's number (of those with pairs)."""
    parts: list[tuple[NDArray, NDArray, NDArray]] = []
    _, index = np.unique(items, return_inverse=True)
    for number in range(int(index.max(initial=-1)) + 1):
        rows = np.flatnonzero(index == number)
        if len(rows) > 1:
            i, j = np.triu_indices(len(rows), 1)
            parts.append((rows[i], rows[j], np.full(len(i), len(parts))))
    if not parts:
        return (np.zeros(0, int),) * 3
    first, second, item = (np.concatenate(part) for part in zip(*parts))
    return first, second, item


def _gaps(first: ArrayLike, second: ArrayLike) -> tuple[NDArray, NDArray]:
    """First minus second, 0 where either is missing, and where both are there."""
    a, b = np.asarray(first, float), np.asarray(second, float)
    if a.shape != b.shape or a.ndim != 1:
        raise ConfigError(f"two lists of equal length are compared, not shapes {a.shape} and {b.shape}")
    valid = np.isfinite(a) & np.isfinite(b)
    return np.where(valid, np.where(valid, a, 0) - np.where(valid, b, 0), 0.0), valid
