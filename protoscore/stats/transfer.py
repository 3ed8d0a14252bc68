"""Winoground's three scores, and tie-calibrated accuracy over all pairs of rows; intervals by resampling whole items."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from protoscore.errors import ConfigError
from protoscore.stats.paired import TieCalibrated
from protoscore.stats.resampling import Estimate, cluster_bootstrap, cluster_index, cluster_weights, interval, rate_interval

NAN = float("nan")
BLOCK = 2048  # rows compared with all others at once; bounds memory at BLOCK x rows


class WinogroundScores(NamedTuple):
    text: Estimate
    image: Estimate
    group: Estimate


def winoground_scores(scores: ArrayLike, resamples: int = 2000, seed: int = 0) -> WinogroundScores:
    """Text, image and group score (Thrush et al. 2022), strict: a tie is a failure, and is counted apart.

    Args:
        scores: (items, 4) scores s(caption, image) in the order (0, 0), (0, 1), (1, 0), (1, 1); an item with NaN is left out.
    """
    s = np.asarray(scores, float).reshape(-1, 4)
    valid = np.isfinite(s).all(1)
    c0i0, c0i1, c1i0, c1i1 = s.T
    text, image = (c0i0 > c1i0) & (c1i1 > c0i1), (c0i0 > c0i1) & (c1i1 > c1i0)
    text_tie, image_tie = (c0i0 == c1i0) | (c1i1 == c0i1), (c0i0 == c0i1) | (c1i1 == c1i0)
    wins = np.stack([text, image, text & image], 1) & valid[:, None]
    ties = np.stack([text_tie, image_tie, text_tie | image_tie], 1) & valid[:, None]
    n = int(valid.sum())
    if not n:
        return WinogroundScores(*[Estimate(NAN, NAN, NAN, 0, len(s))] * 3)
    samples = cluster_bootstrap(wins, np.repeat(valid[:, None], 3, 1), None, resamples, seed)
    found = []
    for column in range(3):
        value = float(wins[:, column].sum() / n)
        found.append(Estimate(value, *rate_interval(value, samples[:, column], n), n, len(s) - n, int(ties[:, column].sum())))
    return WinogroundScores(*found)


def tie_calibrated_over_all(
    metric: ArrayLike, human: ArrayLike, clusters: ArrayLike, resamples: int = 2000, seed: int = 0
) -> TieCalibrated:
    """Pairwise accuracy with tie calibration (Deutsch et al. 2023) over all pairs of rows, whatever their prompt.

    Right where both order a pair alike or both tie; two metric scores are tied when they differ by no more than the threshold,
    the smallest that gives the highest accuracy. The interval resamples clusters at that threshold (it does not repeat the
    search); two copies of one cluster are not compared with each other.

    Args:
        metric, human: (rows,) scores, higher is better; a row with NaN in either is left out.
        clusters: (rows,) the prompt of each row.
    """
    m, h, labels = np.asarray(metric, float), np.asarray(human, float), np.asarray(clusters)
    if not len(m) == len(h) == len(labels):
        raise ConfigError(f"{len(m)} scores, {len(h)} ratings and {len(labels)} clusters; there must be one of each a row")
    valid = np.isfinite(m) & np.isfinite(h)
    left_out = int((~valid).sum())
    m, h = m[valid], h[valid]
    pairs = len(m) * (len(m) - 1) // 2
    if not pairs:
        return TieCalibrated(Estimate(NAN, NAN, NAN, 0, left_out), NAN)
    threshold = _best_threshold(m, h)
    index, count = cluster_index(labels[valid], len(m))
    right, all_pairs, ties = _by_clusters(m, h, threshold, index, count)
    value = float(np.triu(right).sum() / pairs)
    with np.errstate(invalid="ignore", divide="ignore"):  # a resample of one cluster with one row holds no pair
        samples = [_resampled(w, right) / _resampled(w, all_pairs) for w in cluster_weights(count, resamples, seed)]
    return TieCalibrated(Estimate(value, *interval(np.concatenate(samples)), pairs, left_out, ties), threshold)


def _best_threshold(m: NDArray, h: NDArray) -> float:
    """Smallest |gap| at and below which calling pairs tied gives the most right pairs."""
    first, second = np.triu_indices(len(m), 1)
    gap = m[first] - m[second]
    people = np.sign(h[first] - h[second])
    del first, second
    # from an ordered pair to a tied one: a human tie is won, a right order is lost
    gain = (people == 0).astype(np.int8) - ((np.sign(gap) == people) & (people != 0)).astype(np.int8)
    gap = np.abs(gap)
    order = np.argsort(gap, kind="stable")
    gap, gained = gap[order], np.cumsum(gain[order], dtype=np.int64)
    last = np.append(gap[1:] != gap[:-1], True)  # pairs of one gap become ties together
    gap, gained = gap[last], gained[last]
    if gap[0] > 0:  # threshold 0 without any tie
        gap, gained = np.insert(gap, 0, 0.0), np.insert(gained, 0, 0)
    return float(gap[gained.argmax()])


def _by_clusters(
    m: NDArray, h: NDArray, threshold: float, index: NDArray, clusters: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """(clusters, clusters) symmetric counts of right pairs and of pairs, each pair once; and how many the metric ties."""
    right, member = np.zeros((clusters, clusters)), np.zeros((len(m), clusters))
    member[np.arange(len(m)), index] = 1
    ties = 0
    for start in range(0, len(m), BLOCK):
        part = slice(start, start + BLOCK)
        gap = m[part, None] - m
        tied = np.abs(gap) <= threshold
        agree = np.where(tied, 0, np.sign(gap)) == np.sign(h[part, None] - h)
        own = np.arange(start, min(start + BLOCK, len(m)))
        agree[own - start, own] = False
        tied[own - start, own] = False
        ties += int(tied.sum())
        right += member[part].T @ (agree @ member)
    size = member.sum(0)
    pairs = np.outer(size, size)
    np.fill_diagonal(pairs, size * (size - 1))
    for table in (right, pairs):
        table[np.diag_indices(clusters)] /= 2  # a pair within a cluster was seen from both sides
    return right, pairs, ties // 2


def _resampled(weights: NDArray, table: NDArray) -> NDArray:
    """Sum over pairs of clusters of weight x weight x count, and over clusters of weight x their own count."""
    own = np.diag(table)
    return ((weights @ table) * weights).sum(1) / 2 - (weights**2 @ own) / 2 + weights @ own
