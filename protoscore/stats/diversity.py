"""Diversity of picture sets: the Vendi score, and comparing models by people's side-by-side votes.

The attribute-conditional diversity paper takes the mode of the votes over raters, then over the side-by-side comparisons of a
concept, and tests each pair of models with a binomial test over concepts. Where it is silent the choice is a named parameter,
with this default:

* ``split="equal"`` (:func:`concept_outcomes`): a vote without a single mode is "equally diverse"; ``"left_out"`` drops it.
* ``tie_rule="drop"`` (:func:`compare`): concepts that are equal are left out of the test (the sign test); see
  :func:`protoscore.stats.paired.binomial` for the others.
* Holm correction (:func:`compare_all`) is reported beside the raw p, which is the paper's.
* ``order=1`` (:func:`vendi`): Shannon entropy, the published default.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, stats

from protoscore.errors import ConfigError
from protoscore.stats.paired import Binomial, TieRule, binomial, holm
from protoscore.stats.resampling import Estimate, cluster_index, cluster_weights, mean, rate_interval

FIRST, EQUAL, SECOND = 1, 0, -1  # outcomes: the first set is more diverse, both alike, the second is
NAN = float("nan")


def vendi(embeddings: ArrayLike, order: float = 1.0, normalise: bool = True) -> float:
    """Vendi score (Friedman and Dieng 2022): the effective number of distinct items, from 1 (all alike) to n.

    exp of the Renyi entropy of the eigenvalues of K / n, with K the cosine similarities. K / n and the (d, d) matrix X'X / n
    have the same positive eigenvalues, so the smaller of the two is decomposed.

    Args:
        embeddings: (n, d), one row an item.
        order: order q >= 0 of the entropy; 1 is Shannon's, ``inf`` looks at the largest eigenvalue only.
        normalise: scale rows to length 1. Without it the rows must have it already.

    Raises:
        ConfigError: a value is not finite, or a row is zero.
    """
    x = _rows(embeddings, normalise)
    gram = x @ x.T if len(x) <= x.shape[1] else x.T @ x
    values = linalg.eigvalsh(gram / len(x), overwrite_a=True, check_finite=False, driver="evd")
    return float(effective_number(values, order))


def vendi_sets(embeddings: ArrayLike, order: float = 1.0, normalise: bool = True) -> NDArray[np.float64]:
    """:func:`vendi` of many sets of equal size at once: (sets, n, d) to (sets,)."""
    x = _rows(embeddings, normalise, dimensions=3)
    gram = x @ x.swapaxes(1, 2) if x.shape[1] <= x.shape[2] else x.swapaxes(1, 2) @ x
    return effective_number(np.linalg.eigvalsh(gram / x.shape[1]), order)


def vendi_of_kernel(kernel: ArrayLike, order: float = 1.0) -> float:
    """:func:`vendi` from (n, n) similarities: symmetric, positive semi-definite, 1 on the diagonal."""
    k = np.asarray(kernel, float)
    if k.ndim != 2 or k.shape[0] != k.shape[1] or not len(k) or not np.allclose(k, k.T) or not np.allclose(np.diagonal(k), 1):
        raise ConfigError("a Vendi kernel is a symmetric (n, n) matrix of finite similarities with 1 on the diagonal")
    return float(effective_number(linalg.eigvalsh(k / len(k)), order))


def vendi_estimate(
    embeddings: ArrayLike, order: float = 1.0, normalise: bool = True, blocks: int = 20, seed: int = 0
) -> Estimate:
    """Vendi score of a sample of n items, with an interval for what other samples of n items would give.

    The interval is a block jackknife (value +- 1.96 standard errors, within [1, n]). A bootstrap is of no use here: its
    repeated items are less diverse than any real sample, and its interval misses the value itself.

    Args:
        blocks: random blocks that are left out in turn; at most n.
    """
    x = _rows(embeddings, normalise)
    n, value = len(x), vendi(x, order, normalise=False)
    if n < 3:
        return Estimate(value, NAN, NAN, n)
    parts = np.array_split(np.random.default_rng(seed).permutation(n), min(blocks, n))
    without = np.array([vendi(np.delete(x, part, 0), order, normalise=False) for part in parts])
    error = math.sqrt((len(parts) - 1) * without.var())
    return Estimate(value, max(1.0, value - 1.96 * error), min(float(n), value + 1.96 * error), n)


def effective_number(eigenvalues: NDArray, order: float = 1.0) -> NDArray[np.float64]:
    """exp of the Renyi entropy of order q along the last axis; what is below rounding error counts as 0."""
    if not order >= 0:
        raise ConfigError(f"the order of the entropy must be 0 or more, not {order}")
    size = eigenvalues.shape[-1]
    p = np.where(eigenvalues > size * np.finfo(float).eps, eigenvalues, 0.0)
    if order == 1:
        return np.exp(-(p * np.log(np.where(p > 0, p, 1.0))).sum(-1))
    if math.isinf(order):
        return 1 / p.max(-1)
    return np.where(p > 0, np.where(p > 0, p, 1.0) ** order, 0.0).sum(-1) ** (1 / (1 - order))


def _rows(embeddings: ArrayLike, normalise: bool, dimensions: int = 2) -> NDArray[np.float64]:
    x = np.asarray(embeddings, float)
    if x.ndim != dimensions or 0 in x.shape:
        raise ConfigError(f"embeddings must be {'(n, d)' if dimensions == 2 else '(sets, n, d)'} and not empty, not {x.shape}")
    lengths = np.sqrt(np.einsum("...i,...i->...", x, x))
    if not np.isfinite(lengths).all():
        raise ConfigError("embeddings hold a value that is not a finite number")
    if (lengths == 0).any():
        raise ConfigError("an embedding is all zeros and has no direction")
    if not normalise and not np.allclose(lengths, 1):
        raise ConfigError("embeddings must have length 1 when they are not normalised here")
    return x / lengths[..., None] if normalise else x


def coverage(values: Collection[Any], known: Collection[Any]) -> float:
    """Share of an attribute's known values that occur in a set: the paper's formal diversity."""
    if not known:
        raise ConfigError("coverage needs the attribute's known values")
    return len(set(values) & set(known)) / len(set(known))


def concept_outcomes(
    votes: ArrayLike, concepts: ArrayLike, comparisons: ArrayLike | None = None, split: Literal["equal", "left_out"] = "equal"
) -> dict[str, float]:
    """One outcome a concept: the mode over raters of each comparison, then over the comparisons of a concept.

    Args:
        votes: (votes,) 1 first more diverse, 0 equal, -1 second, NaN unable to answer (left out).
        concepts: (votes,) concept of each vote.
        comparisons: (votes,) which side-by-side of the concept; default one a concept.

    Returns:
        Concept to 1, 0, -1, or NaN where nothing is left.
    """
    vote, concept = np.asarray(votes, float), np.asarray(concepts).astype(str)
    if len(vote) != len(concept):
        raise ConfigError(f"there are {len(vote)} votes but {len(concept)} concepts")
    if not np.isin(vote[np.isfinite(vote)], (FIRST, EQUAL, SECOND)).all():
        raise ConfigError("a vote is 1 (first more diverse), 0 (equal), -1 (second) or NaN (unable)")
    if split not in ("equal", "left_out"):
        raise ConfigError(f"split must be 'equal' or 'left_out', not {split!r}")
    side = np.full(len(vote), "") if comparisons is None else np.asarray(comparisons).astype(str)
    names, place = np.unique(np.stack([concept, side], 1), axis=0, return_inverse=True)
    decided = _modes(vote, place.ravel(), len(names), split)
    found, place = np.unique(names[:, 0], return_inverse=True)
    return dict(zip(found.tolist(), _modes(decided, place, len(found), split).tolist()))


def _modes(votes: NDArray, place: NDArray, groups: int, split: str) -> NDArray:
    counts = np.stack([np.bincount(place[votes == value], minlength=groups) for value in (FIRST, EQUAL, SECOND)], 1)
    top = counts.max(1, initial=0)
    single = (counts == top[:, None]).sum(1) == 1
    winner = np.array([FIRST, EQUAL, SECOND], float)[counts.argmax(1)]
    return np.where(top == 0, np.nan, np.where(single, winner, EQUAL if split == "equal" else np.nan))


def compare(outcomes: ArrayLike, tie_rule: TieRule = "drop") -> Binomial:
    """Exact binomial test over concepts that the first model is more diverse as often as the second.

    Args:
        outcomes: (concepts,) 1, 0, -1 or NaN, as the values of :func:`concept_outcomes`.
    """
    found = np.asarray(outcomes, float)
    wins, losses, ties = (int((found == value).sum()) for value in (FIRST, SECOND, EQUAL))
    return binomial(wins, losses, ties, tie_rule)


class PairTest(NamedTuple):
    test: Binomial
    p_holm: float  # over all pairs of models


def compare_all(outcomes: Mapping[tuple[str, str], ArrayLike], tie_rule: TieRule = "drop") -> dict[tuple[str, str], PairTest]:
    """:func:`compare` for each pair of models, with Holm's correction beside the raw p."""
    tests = {pair: compare(found, tie_rule) for pair, found in outcomes.items()}
    adjusted = holm([test.p for test in tests.values()])
    return {pair: PairTest(test, float(p)) for (pair, test), p in zip(tests.items(), adjusted)}


def autorater_accuracy(
    first: ArrayLike,
    second: ArrayLike,
    human: ArrayLike,
    clusters: ArrayLike | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> Estimate:
    """How often the set with the higher score is the one that people call more diverse.

    Args:
        first, second: (rows,) scores of both sets, NaN where there is none. Equal scores are a failure, and counted as ties.
        human: (rows,) 1, 0, -1, NaN; rows that people call equal are left out.
        clusters: (rows,) what was sampled independently: the concept; default each row.
    """
    a, b, people = _scored(first, second, human)
    valid = np.isfinite(a) & np.isfinite(b) & np.isfinite(people) & (people != EQUAL)
    right = np.where(valid, np.sign(a - b) == people, np.nan)
    return mean(right, clusters, resamples, seed)._replace(ties=int((valid & (a == b)).sum()))


def equal_auc(
    first: ArrayLike,
    second: ArrayLike,
    human: ArrayLike,
    clusters: ArrayLike | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> Estimate:
    """AUC of a small score difference as the sign that people call both sets equal; 0.5 is chance.

    Arguments as for :func:`autorater_accuracy`; here the rows that people call equal are the positives.
    """
    a, b, people = _scored(first, second, human)
    valid = np.isfinite(a) & np.isfinite(b) & np.isfinite(people)
    index, count = cluster_index(None if clusters is None else np.asarray(clusters)[valid], int(valid.sum()))
    equal, closeness = people[valid] == EQUAL, -np.abs(a - b)[valid]
    n, left_out = int(valid.sum()), int((~valid).sum())
    if not equal.any() or equal.all():
        return Estimate(NAN, NAN, NAN, n, left_out)
    wins = stats.rankdata(closeness)[equal].sum() - equal.sum() * (equal.sum() + 1) / 2
    value = float(wins / (equal.sum() * (~equal).sum()))
    samples = np.concatenate([_auc(closeness, equal, w[:, index]) for w in cluster_weights(count, resamples, seed)])
    return Estimate(value, *rate_interval(value, samples, count), n, left_out)


def _auc(scores: NDArray, positive: NDArray, weights: NDArray) -> NDArray:
    """Weighted area under the curve, ties half, of each resample."""
    _, level = np.unique(scores, return_inverse=True)
    order = np.argsort(level, kind="stable")
    starts = np.searchsorted(level[order], np.arange(level.max() + 1))
    above, below = (np.add.reduceat((weights * side)[:, order], starts, axis=1) for side in (positive, ~positive))
    with np.errstate(invalid="ignore", divide="ignore"):
        return (above * (np.cumsum(below, 1) - below / 2)).sum(1) / (above.sum(1) * below.sum(1))


def _scored(first: ArrayLike, second: ArrayLike, human: ArrayLike) -> tuple[NDArray, NDArray, NDArray]:
    a, b, people = (np.asarray(x, float) for x in (first, second, human))
    if not a.shape == b.shape == people.shape:
        raise ConfigError(f"scores and votes differ in shape: {a.shape}, {b.shape}, {people.shape}")
    return a, b, people
