"""The quantities that tell understanding from a shortcut, from the scores of a triplet's four cells and of its foils.

With s(subject, state) the score of a cell under the same neutral text:

* incongruent accuracy (the paper's pairwise accuracy, Eq. 1): P[s(non, correct) > s(proto, violated)], ideal 1
* congruent accuracy: P[s(proto, correct) > s(non, violated)], ideal 1
* semantic sensitivity: mean over the two subjects of P[s(subject, correct) > s(subject, violated)], ideal 1
* prototype preference: mean over the two states of P[s(proto, state) > s(non, state)], ties half, ideal 0.5
* bias gap: congruent minus incongruent accuracy, ideal 0; above 0 prototypicality bias, below 0 the opposite shortcut

The four cells share every noun of the text, so these five say nothing of whether a metric reads those. Foils do, right
pictures with one element of the text replaced by another:

* element sensitivity: mean over the two subjects of P[s(subject, correct) > s(foil)], ideal 1; of each element (the extra
  thing, the environment, the subject), and over all three

``>`` is strict: a tie is a failure, and is counted apart. A cell without a score leaves its comparison out, and is counted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from protoscore.errors import ConfigError
from protoscore.stats.resampling import Estimate, cluster_bootstrap, exact_bound, interval, mean, rate_interval


class FiveQuantities(NamedTuple):
    incongruent: Estimate
    congruent: Estimate
    sensitivity: Estimate
    preference: Estimate
    gap: Estimate


class ElementSensitivity(NamedTuple):
    extra: Estimate
    environment: Estimate
    subject: Estimate
    all: Estimate


def five_quantities(
    non_correct: ArrayLike, proto_violated: ArrayLike, proto_correct: ArrayLike, non_violated: ArrayLike,
    clusters: ArrayLike, resamples: int = 2000, seed: int = 0,
) -> FiveQuantities:  # fmt: skip
    """The five quantities with 95 % cluster-bootstrap intervals.

    Args:
        non_correct, proto_violated, proto_correct, non_violated: (n,) scores, higher is better, NaN where there is none.
        clusters: (n,) triplet of each row.
    """
    wins, valid, ties = comparisons(non_correct, proto_violated, proto_correct, non_violated)
    samples = cluster_bootstrap(wins, valid, clusters, resamples, seed)
    return quantities_of(wins, valid, ties, samples, len(np.unique(np.asarray(clusters))))


def comparisons(
    non_correct: ArrayLike, proto_violated: ArrayLike, proto_correct: ArrayLike, non_violated: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Wins, validity and ties, each (rows, 6), of the six comparisons that the five quantities are made of.

    In order: incongruent, congruent, the unusual subject right against wrong, the typical one, and typical against unusual
    when both are right, and when both are wrong; ties are worth a half in these last two.
    """
    nc, pv, pc, nv = (np.asarray(a, float) for a in (non_correct, proto_violated, proto_correct, non_violated))
    # which score should be higher (or, for preference, which is the prototype's), which lower, worth of a tie
    pairs = ((nc, pv, 0.0), (pc, nv, 0.0), (nc, nv, 0.0), (pc, pv, 0.0), (pc, nc, 0.5), (pv, nv, 0.5))
    wins, valid, ties = (np.stack(a, axis=1) for a in zip(*(_compare(*pair) for pair in pairs), strict=True))
    return wins, valid, ties


def element_sensitivity(
    correct: ArrayLike, foils: ArrayLike, clusters: ArrayLike, resamples: int = 2000, seed: int = 0
) -> ElementSensitivity:
    """Element sensitivity with 95 % cluster-bootstrap intervals.

    Args:
        correct: (n, 2) scores of the right pictures of both subjects, higher is better, NaN where there is none.
        foils: (n, 3, 2) scores of their foils, by element: another extra thing, another environment, another subject.
        clusters: (n,) triplet of each row.
    """
    wins, valid, ties = element_comparisons(correct, foils)
    samples = cluster_bootstrap(wins, valid, clusters, resamples, seed)
    return elements_of(wins, valid, ties, samples, len(np.unique(np.asarray(clusters))))


def element_comparisons(
    correct: ArrayLike, foils: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Wins, validity and ties, each (rows, 6), of the right pictures against their foils, element by element.

    Raises:
        ConfigError: the scores have other shapes than (rows, 2) and (rows, 3, 2).
    """
    right, other = np.asarray(correct, float), np.asarray(foils, float)
    if right.ndim != 2 or right.shape[1] != 2 or other.shape != (len(right), 3, 2):
        raise ConfigError(
            f"scores of foils have the shape (rows, 3, 2) and of right pictures (rows, 2), not {other.shape} and {right.shape}"
        )
    return _compare(np.repeat(right[:, None], 3, axis=1).reshape(-1, 6), other.reshape(-1, 6), 0.0)


def elements_of(wins: NDArray, valid: NDArray, ties: NDArray, samples: NDArray, clusters: int) -> ElementSensitivity:
    """Element sensitivity from :func:`element_comparisons` and their resampled rates, (resamples, 6)."""
    columns = ([0, 1], [2, 3], [4, 5], list(range(6)))
    return ElementSensitivity(*(_mean_rate(part, wins, valid, ties, samples, clusters) for part in columns))


def quantities_of(wins: NDArray, valid: NDArray, ties: NDArray, samples: NDArray, clusters: int) -> FiveQuantities:
    """The five quantities from :func:`comparisons` and their resampled rates.

    Args:
        samples: (resamples, 6).
        clusters: number of clusters behind the rows.
    """

    def estimate(columns: list[int]) -> Estimate:
        return _mean_rate(columns, wins, valid, ties, samples, clusters)

    incongruent, congruent = estimate([0]), estimate([1])
    gap = congruent.value - incongruent.value
    low, high = interval(samples[:, 1] - samples[:, 0])
    if low == high:
        slack = exact_bound(clusters)
        low, high = max(-1.0, gap - slack), min(1.0, gap + slack)
    n, left_out = incongruent.n + congruent.n, incongruent.left_out + congruent.left_out
    gap_estimate = Estimate(gap, low, high, n, left_out, incongruent.ties + congruent.ties)
    return FiveQuantities(incongruent, congruent, estimate([2, 3]), estimate([4, 5]), gap_estimate)


def _mean_rate(columns: list[int], wins: NDArray, valid: NDArray, ties: NDArray, samples: NDArray, clusters: int) -> Estimate:
    """The mean of the rates of some comparisons."""
    with np.errstate(invalid="ignore", divide="ignore"):
        value = float(np.mean(wins[:, columns].sum(0) / valid[:, columns].sum(0)))
    low, high = rate_interval(value, samples[:, columns].mean(1), clusters)
    n = int(valid[:, columns].sum())
    return Estimate(value, low, high, n, len(wins) * len(columns) - n, int(ties[:, columns].sum()))


def _compare(high: NDArray, low: NDArray, tie: float) -> tuple[NDArray, NDArray, NDArray]:
    """Wins, validity and ties of one strict comparison, row by row."""
    valid = np.isfinite(high) & np.isfinite(low)
    tied = valid & (high == low)
    return np.where(valid, (high > low) + tie * tied, 0.0), valid.astype(float), tied


def pairwise_accuracy(
    correct: ArrayLike, adversarial: ArrayLike, clusters: ArrayLike | None = None, resamples: int = 2000, seed: int = 0
) -> Estimate:
    """ProtoBias' pairwise accuracy (Eq. 1): how often the correct image scores strictly higher.

    A tie is a failure, and counted.

    Args:
        correct, adversarial: (rows,) scores of both images, NaN where there is none.
        clusters: (rows,) triplet of each row; default each row its own.
    """
    high, low = _pair(correct, adversarial)
    wins, valid, tied = _compare(high, low, 0.0)
    return mean(np.where(valid > 0, wins, np.nan), clusters, resamples, seed)._replace(ties=int(tied.sum()))


def choices(correct: ArrayLike, adversarial: ArrayLike, tie: str | None = "adversarial") -> NDArray[np.object_]:
    """Which image a metric prefers, as a label to compare with people's: ``correct``, ``adversarial`` or, for a tie, ``tie``.

    By the paper's Eq. 1 a tie is a failure and goes with the adversarial image. None where a score is missing.
    """
    high, low = _pair(correct, adversarial)
    out = np.where(high > low, "correct", np.where(high < low, "adversarial", "")).astype(object)
    out[high == low] = tie
    out[~(np.isfinite(high) & np.isfinite(low))] = None
    return out


def _pair(correct: ArrayLike, adversarial: ArrayLike) -> tuple[NDArray, NDArray]:
    high, low = np.asarray(correct, float), np.asarray(adversarial, float)
    if high.shape != low.shape or high.ndim != 1:
        raise ConfigError(f"two lists of equal length are compared, not shapes {high.shape} and {low.shape}")
    return high, low
