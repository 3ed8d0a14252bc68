"""A judge's claims apart from its abstentions: what it claims without grounds, and what it withholds without need.

A row is a claim or an abstention, and its reference is a label, or the abstention itself where nothing can be told. A row
whose reference is a label that the judge was not offered (``offered``) says nothing about withholding: it is left out here,
and is an error in :func:`protoscore.stats.abstention.abstention_scores`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from protoscore.errors import ConfigError
from protoscore.stats.resampling import Estimate, cluster_bootstrap, interval, means


class Withholding(NamedTuple):
    """All in [0, 1]; NaN where there is nothing to withhold, or nothing was withheld."""

    precision: Estimate  # of abstention: nothing could be told among what was withheld
    recall: Estimate  # of abstention: withheld among what could not be told
    unsupported: Estimate  # claimed among what could not be told: 1 - recall
    excessive: Estimate  # withheld among what could be told


def withholding(
    predictions: ArrayLike, references: ArrayLike, abstain_label: Any = "unspecified", offered: ArrayLike | None = None,
    clusters: ArrayLike | None = None, resamples: int = 2000, seed: int = 0,
) -> Withholding:  # fmt: skip
    """How well abstentions fall where nothing can be told.

    Args:
        predictions, references: (rows,) labels; None where there is none: such a row is left out.
        offered: (rows,) whether the reference is among the labels that the judge could give; default everywhere.
        clusters: (rows,) labels of what was sampled independently; default each row.
    """
    said, truth = np.asarray(predictions, object), np.asarray(references, object)
    if said.shape != truth.shape or said.ndim != 1:
        raise ConfigError(f"predictions and references differ in shape: {said.shape} and {truth.shape}")
    could = np.ones(len(said), bool) if offered is None else np.asarray(offered, bool)
    counted = np.array([p is not None and t is not None for p, t in zip(said, truth, strict=True)], bool)
    withheld, untold = (np.array([value == abstain_label for value in some], bool) for some in (said, truth))
    counted &= could | untold
    columns = [
        np.where(counted & withheld, untold, np.nan),
        np.where(counted & untold, withheld, np.nan),
        np.where(counted & untold, ~withheld, np.nan),
        np.where(counted & ~untold, withheld, np.nan),
    ]
    return Withholding(*means(np.stack(columns, 1), clusters, resamples, seed))


class Calibration(NamedTuple):
    """Whether a judge's confidence in its own answers can be taken at its word."""

    error: (
        Estimate  # expected calibration error: mean |confidence - accuracy| over bins of equal size, weighted by rows; ideal 0
    )
    overconfidence: Estimate  # mean confidence minus accuracy, in [-1, 1]; ideal 0
    brier: Estimate  # mean squared distance of the confidence from right (1) or wrong (0)
    bins: tuple[tuple[float, float, int], ...]  # mean confidence, accuracy, rows of each bin


def calibration(
    confidences: ArrayLike, correct: ArrayLike, bins: int = 10,
    clusters: ArrayLike | None = None, resamples: int = 2000, seed: int = 0,
) -> Calibration:  # fmt: skip
    """Confidence against accuracy. The calibration error of resampled rows is biased upwards, and so is its interval.

    Args:
        confidences: (rows,) probability that the answer is right, in [0, 1]; NaN leaves the row out.
        correct: (rows,) 1 or 0; NaN leaves the row out.
        bins: of equal size; fewer where confidences repeat.
    """
    sure, right = np.asarray(confidences, float), np.asarray(correct, float)
    if sure.shape != right.shape or sure.ndim != 1:
        raise ConfigError(f"confidences and correct differ in shape: {sure.shape} and {right.shape}")
    used = np.isfinite(sure) & np.isfinite(right)
    if ((sure[used] < 0) | (sure[used] > 1)).any():
        raise ConfigError("a confidence is a probability, in [0, 1]")
    columns = np.stack([np.where(used, sure - right, np.nan), np.where(used, (sure - right) ** 2, np.nan)], 1)
    overconfidence, brier = means(columns, clusters, resamples, seed)
    n, left_out = int(used.sum()), len(used) - int(used.sum())
    if not n:
        return Calibration(overconfidence, overconfidence, brier, ())
    edges = np.unique(np.quantile(sure[used], np.linspace(0, 1, bins + 1)[1:-1]))
    place = np.searchsorted(edges, np.where(used, sure, 0.0), side="left")
    member = (place[:, None] == np.arange(len(edges) + 1)) & used[:, None]
    gaps, whole = np.where(member, columns[:, :1], 0.0), np.repeat(used[:, None], member.shape[1], 1)
    value = float(np.abs(gaps.sum(0)).sum() / n)
    error = Estimate(value, *interval(np.abs(cluster_bootstrap(gaps, whole, clusters, resamples, seed)).sum(1)), n, left_out)
    found = [(float(sure[rows].mean()), float(right[rows].mean()), int(rows.sum())) for rows in member.T if rows.any()]
    return Calibration(error, overconfidence, brier, tuple(found))


class SwapConsistency(NamedTuple):
    """Answers about pairs of pictures of which one attribute was swapped. All in [0, 1], ideal 1."""

    moves: Estimate  # where the references differ: the answers differ
    follows: Estimate  # where the references differ: both answers are right
    stays: Estimate  # where the references are the same: the answers are


def consistency(
    predictions: ArrayLike, references: ArrayLike, pairs: ArrayLike,
    clusters: ArrayLike | None = None, resamples: int = 2000, seed: int = 0,
) -> SwapConsistency:  # fmt: skip
    """Whether the answer moves with its attribute, and with nothing else.

    Args:
        predictions, references: (rows,) labels; None where there is none. A pair that lacks one is left out.
        pairs: (pairs, 2) row numbers of a base and its variant.
        clusters: (pairs,) the counterfactual set of each pair; default each pair.
    """
    said, truth = np.asarray(predictions, object), np.asarray(references, object)
    first, second = np.asarray(pairs, int).reshape(-1, 2).T
    there = np.array([None not in (said[a], said[b], truth[a], truth[b]) for a, b in zip(first, second, strict=True)], bool)
    swapped, moved = ((some[first] != some[second]).astype(bool) for some in (truth, said))
    right = (said[first] == truth[first]).astype(bool) & (said[second] == truth[second]).astype(bool)
    columns = [
        np.where(there & swapped, moved, np.nan),
        np.where(there & swapped, right, np.nan),
        np.where(there & ~swapped, ~moved, np.nan),
    ]
    return SwapConsistency(*means(np.stack(columns, 1), clusters, resamples, seed))
