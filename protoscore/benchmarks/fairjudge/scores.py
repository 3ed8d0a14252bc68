"""What answers to one attribute are worth: beside the truth, apart from abstentions, by group, and against what no judge needs
to look at a picture for.

* Accuracy counts an abstention as an error where there was something to tell (the paper's Appendix B), and as right where
  there was not. A row whose label the asked set lacks is an error whatever is said: the ceiling says what that costs.
* Claim precision is the accuracy with abstentions left out.
* The worst case counts every unmapped, refused and unreadable answer as wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from protoscore.benchmarks.fairjudge.truth import Truth
from protoscore.stats.abstention import RiskCoverage, abstention_scores, outcomes, risk_coverage
from protoscore.stats.claims import Calibration, calibration, withholding
from protoscore.stats.group_gaps import GroupGaps, group_gaps
from protoscore.stats.groups import GroupScores, group_scores
from protoscore.stats.resampling import Draw, Estimate

CEILING = "best possible with these labels"


class Scores(NamedTuple):
    """One judge, or one floor, on one attribute."""

    quantities: dict[str, Estimate]
    curve: RiskCoverage | None  # where the judge gives probabilities
    calibration: Calibration | None


class ByGroup(NamedTuple):
    """One judge on one attribute, by the groups of another."""

    f1: GroupScores
    accuracy: GroupGaps


def floors(truth: Truth, labels: tuple[str, ...], withheld: str, seed: int = 0) -> dict[str, NDArray[np.object_]]:
    """What can be answered without looking, and the best that the set of labels allows; a row per item."""
    known = truth.labels[truth.offered & np.array([label is not None for label in truth.labels], bool)]
    claims = [label for label in known if label != withheld]
    n = len(truth.labels)
    found = {f"always {withheld}": np.full(n, withheld, object)} if withheld in labels else {}
    if claims:
        names, counts = np.unique(np.array(claims, str), return_counts=True)
        top = str(names[counts.argmax()])
        found[f"always {top}, the most frequent"] = np.full(n, top, object)
    rng = np.random.default_rng(seed)
    found["a label at random"] = np.array(labels, object)[rng.integers(0, len(labels), n)]
    found[CEILING] = np.where(truth.offered, truth.labels, withheld)
    return found


def field_scores(
    said: NDArray, truth: Truth, labels: tuple[str, ...], withheld: str, draw: Draw, confidence: NDArray | None = None
) -> Scores:
    """The numbers of one judge on one attribute.

    Args:
        said: (rows,) labels, the abstention among them; None where there is no usable answer.
        labels: of the asked set, the abstention included.
        draw: clusters, resamples, seed.
        confidence: (rows,) probability of each answer, NaN where there is none.
    """
    clusters, resamples, seed = draw
    known = np.array([label is not None for label in truth.labels], bool)
    correct, declined = outcomes(said, truth.labels, withheld)
    inner = (None if clusters is None else np.asarray(clusters)[known], resamples, seed)
    basic = abstention_scores(correct[known], declined[known], *inner)
    rules = group_scores(
        said[known], truth.labels[known], None, every_label(truth, labels, said), abstain_label=withheld,
        clusters=inner[0], resamples=resamples, seed=seed,
    ).rules  # fmt: skip
    kept = withholding(said[known], truth.labels[known], withheld, truth.offered[known], *inner)
    quantities = {
        "accuracy": basic.accuracy, "accuracy_worst_case": basic.worst_case,
        "claim_coverage": basic.coverage, "claim_precision": basic.selective_accuracy,
        **{f"macro_f1_{rule}": found.macro_f1 for rule, found in rules.items()},
        "abstention_precision": kept.precision, "abstention_recall": kept.recall,
        "unsupported_claims": kept.unsupported, "over_abstention": kept.excessive,
    }  # fmt: skip
    if confidence is None or not np.isfinite(confidence).any():
        return Scores(quantities, None, None)
    curve = risk_coverage(confidence[known], correct[known], declined[known], *inner)
    trust = calibration(confidence[known], correct[known], 10, *inner)
    quantities |= {"aurc": curve.aurc, "calibration_error": trust.error, "overconfidence": trust.overconfidence}
    return Scores(quantities | {"brier": trust.brier}, curve, trust)


def by_group(
    said: NDArray, truth: Truth, labels: tuple[str, ...], withheld: str, groups: NDArray, min_size: int, draw: Draw
) -> ByGroup:
    """GMF1 under each rule, and the accuracy of each group against the rest.

    Args:
        groups: (rows,) None leaves a row out.
    """
    known = np.array([label is not None and group is not None for label, group in zip(truth.labels, groups)], bool)
    clusters, resamples, seed = draw
    inner = None if clusters is None else np.asarray(clusters)[known]
    f1 = group_scores(
        said[known], truth.labels[known], groups[known], every_label(truth, labels, said), abstain_label=withheld,
        min_size=min_size, clusters=inner, resamples=resamples, seed=seed,
    )  # fmt: skip
    correct, _ = outcomes(said[known], truth.labels[known], withheld)
    return ByGroup(f1, group_gaps(correct, groups[known], min_size, inner, resamples, seed))


def every_label(truth: Truth, labels: tuple[str, ...], said: NDArray) -> list[str]:
    """The set's labels, then those that it lacks and the truth has."""
    return [*labels, *sorted({str(label) for label in [*truth.labels, *said] if label is not None} - set(labels))]


def overall(scores: Mapping[str, tuple[NDArray, NDArray]], draw: Draw) -> tuple[Estimate, Estimate]:
    """Accuracy and its worst case, averaged uniformly over attributes.

    Args:
        scores: attribute -> (rows,) right or wrong as 1, 0 or NaN without a measurement; (rows,) whether its truth is known.
    """
    from protoscore.stats.agreement import nanmean
    from protoscore.stats.resampling import cluster_bootstrap, cluster_index, rate_interval

    clusters, resamples, seed = draw
    right = np.stack([correct for correct, _ in scores.values()], 1)
    known = np.stack([known for _, known in scores.values()], 1)
    found = []
    for counted in (np.isfinite(right) & known, known):
        hits = np.where(np.isfinite(right) & counted, right, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            value = float(nanmean(hits.sum(0) / counted.sum(0)))
        samples = nanmean(cluster_bootstrap(hits, counted, clusters, resamples, seed))
        n, rows = int(counted.any(1).sum()), len(right)
        found.append(Estimate(value, *rate_interval(value, samples, cluster_index(clusters, rows)[1]), n, rows - n))
    return found[0], found[1]
