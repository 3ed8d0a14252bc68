"""Scores of a judge that may abstain: coverage, selective accuracy, risk-coverage, and bounds for rows without a score.

A row is a claim (right or wrong), an abstention (right where nothing can be told), or unscored (a refusal, an unreadable
reply: no measurement). Where the papers are silent the choice is a named parameter, with this default:

* ``abstention="error"`` (:func:`accuracy`): an abstention counts as wrong, as in FairJudge, Appendix B, but where it is the
  right answer; ``"left_out"`` gives the selective accuracy. :func:`abstention_scores` gives both.
* An abstention is never a claim, right or not: a judge that only abstains has no selective accuracy.
* Unscored rows are left out of every mean and counted; ``worst_case`` and ``best_case`` say what they could change.
* Rows of equal confidence enter the risk-coverage curve together, in expectation over their order.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma

from protoscore.errors import ConfigError
from protoscore.stats.agreement import encode
from protoscore.stats.resampling import Estimate, cluster_index, cluster_weights, mean, means, rate_interval

NAN = float("nan")


class AbstentionScores(NamedTuple):
    """All in [0, 1]. ``left_out`` of the first three counts unscored rows; of selective accuracy also abstentions."""

    coverage: Estimate  # claims among scored
    accuracy: Estimate  # right among scored: an abstention is an error where there was something to claim
    selective_accuracy: Estimate  # right among claims; NaN when nothing was claimed
    worst_case: Estimate  # accuracy if every unscored row were wrong
    best_case: Estimate  # accuracy if every unscored row were right


def outcomes(
    predictions: ArrayLike, references: ArrayLike, abstain_label: Any = "unspecified"
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Which rows are right (1, 0, NaN unscored) and which abstained.

    Args:
        predictions, references: (rows,) labels; None where there is none.
        abstain_label: the prediction that abstains; where it is also the reference it is right, and still no claim.
    """
    a, b = np.asarray(predictions, object), np.asarray(references, object)
    if a.shape != b.shape or a.ndim != 1:
        raise ConfigError(f"predictions and references differ in shape: {a.shape} and {b.shape}")
    (predicted, truth), known = encode(np.stack([a, b]))
    correct = np.where((predicted >= 0) & (truth >= 0), predicted == truth, np.nan)
    code = known.index(abstain_label) if abstain_label in known else -2
    return correct, (predicted == code) & (truth >= 0)


def abstention_scores(
    correct: ArrayLike, abstained: ArrayLike, clusters: ArrayLike | None = None, resamples: int = 2000, seed: int = 0
) -> AbstentionScores:
    """Coverage, accuracy both ways, and its bounds.

    Args:
        correct: (rows,) 1 or 0, NaN for an unscored row. An abstention is right where it is 1, else an error.
        abstained: (rows,) true where the judge declined to answer.
        clusters: (rows,) labels of what was sampled independently; default each row.
    """
    return AbstentionScores(*means(abstention_columns(correct, abstained), clusters, resamples, seed))


def abstention_columns(correct: ArrayLike, abstained: ArrayLike) -> NDArray[np.float64]:
    """(rows, 5) whose means are the :func:`abstention_scores`; NaN where a row does not count."""
    right, declined = _states(correct, abstained)
    scored, as_error = np.isfinite(right), np.where(np.isfinite(right), right, 0.0)
    return np.stack(
        [np.where(scored, ~declined, np.nan), right, np.where(declined, np.nan, right), as_error, np.where(scored, right, 1.0)],
        1,
    )


def accuracy(
    correct: ArrayLike, abstained: ArrayLike, abstention: Literal["error", "left_out"] = "error",
    clusters: ArrayLike | None = None, resamples: int = 2000, seed: int = 0,
) -> Estimate:  # fmt: skip
    """Accuracy with abstentions counted as errors or left out; arguments as for :func:`abstention_scores`."""
    if abstention not in ("error", "left_out"):
        raise ConfigError(f"abstention must be 'error' or 'left_out', not {abstention!r}")
    right, declined = _states(correct, abstained)
    return mean(right if abstention == "error" else np.where(declined, np.nan, right), clusters, resamples, seed)


class RiskCoverage(NamedTuple):
    """The risk-coverage curve, from the most confident rows to all that were answered."""

    coverage: NDArray[np.float64]  # (levels,) share of scored rows answered at this confidence or above
    risk: NDArray[np.float64]  # (levels,) share of wrong answers among those
    confidence: NDArray[np.float64]  # (levels,) falling
    aurc: Estimate  # mean risk over the answered rows in order of confidence (El-Yaniv and Wiener 2010; Geifman et al. 2019)
    excess_aurc: float  # AURC above that of a perfect ordering of the same answers


def risk_coverage(
    confidences: ArrayLike, correct: ArrayLike, abstained: ArrayLike | None = None,
    clusters: ArrayLike | None = None, resamples: int = 2000, seed: int = 0,
) -> RiskCoverage:  # fmt: skip
    """How the error rate grows as less confident answers are accepted.

    Args:
        confidences: (rows,) any scale, higher is surer. A row that was answered without one is left out.
        correct, abstained, clusters: as for :func:`abstention_scores`. Abstentions are never accepted: the curve ends at
            the coverage without them.
    """
    right, declined = _states(correct, np.zeros(len(np.asarray(correct)), bool) if abstained is None else abstained)
    sure = np.asarray(confidences, float)
    if sure.shape != right.shape:
        raise ConfigError(f"confidences has shape {sure.shape}, correct {right.shape}")
    used = ~declined & np.isfinite(right) & np.isfinite(sure)
    left_out = len(right) - int(used.sum()) - int(declined.sum())
    if not used.any():
        return RiskCoverage(*(np.zeros(0),) * 3, Estimate(NAN, NAN, NAN, 0, left_out), NAN)
    wrong, (levels, level) = 1 - right[used], np.unique(-sure[used], return_inverse=True)
    order = np.argsort(level, kind="stable")
    starts = np.searchsorted(level[order], np.arange(len(levels)))
    index, count = cluster_index(None if clusters is None else np.asarray(clusters)[used], int(used.sum()))

    def blocks(weights: NDArray) -> tuple[NDArray, NDArray]:
        weights = weights[:, order]
        return np.add.reduceat(weights, starts, axis=1), np.add.reduceat(weights * wrong[order], starts, axis=1)

    sizes, errors = blocks(np.ones((1, len(wrong))))
    value = float(_aurc(sizes, errors)[0])
    samples = np.concatenate([_aurc(*blocks(w[:, index])) for w in cluster_weights(count, resamples, seed)])
    total = errors.sum()
    best = _aurc(np.array([[len(wrong) - total, total]]), np.array([[0, total]]))[0]
    accepted = np.cumsum(sizes[0])
    aurc = Estimate(value, *rate_interval(value, samples, count), len(wrong), left_out)
    scored = len(wrong) + int(declined.sum())
    return RiskCoverage(accepted / scored, np.cumsum(errors[0]) / accepted, -levels, aurc, value - float(best))


def _aurc(sizes: NDArray, errors: NDArray) -> NDArray:
    """Mean over k of the expected error rate of the first k rows, from (resamples, levels) block sizes and errors.

    Inside a block of m rows with e errors after N rows with E errors, the j-th row brings the expected rate to
    (E + e j / m) / (N + j) = e / m + (E - N e / m) / (N + j), which sums to e + (E - N e / m) (H(N + m) - H(N)).
    """
    before, wrong_before = np.cumsum(sizes, 1) - sizes, np.cumsum(errors, 1) - errors
    rate = errors / np.maximum(sizes, 1)
    harmonic = digamma(before + sizes + 1) - digamma(before + 1)
    return (errors + (wrong_before - before * rate) * harmonic).sum(1) / sizes.sum(1)


def _states(correct: ArrayLike, abstained: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Whether each row is right, that of an abstention being 0 where nobody says, and which rows abstain."""
    right, declined = np.asarray(correct, float), np.asarray(abstained, bool)
    if right.shape != declined.shape or right.ndim != 1:
        raise ConfigError(f"correct and abstained differ in shape: {right.shape} and {declined.shape}")
    return np.where(declined & ~np.isfinite(right), 0.0, right), declined
