"""Classification scores by demographic group: group-macro-F1, macro-F1, worst group, gap, equalised odds.

FairJudge (Appendix A, Table 6) defines group-macro-F1 as macro-F1 over the classes within each group, averaged uniformly over
groups. Where it is silent the choice is a named parameter, with this default:

* ``classes="seen"``: a group's macro-F1 averages the classes that occur among its references or predictions (scikit-learn's
  default); ``"reference"`` only those of its references; ``"all"`` every label, 0 where a class does not occur.
* ``abstention="error"``: an abstention misses its class, and is not a class of its own unless the references hold it (the paper
  counts abstentions as errors, Appendix B); ``"left_out"`` drops the row; ``"class"`` makes it a label like any other.
* ``unscored="left_out"``: a row without a prediction (unreadable reply, refusal) is not a measurement; ``"error"`` counts it as
  wrong.
* ``min_size=1``: rows that a group needs to enter the average, the worst group and the gaps; smaller ones are still listed.

The resampled worst group and gap are extremes, so their intervals lean outward when groups are small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from protoscore.errors import ConfigError
from protoscore.stats.agreement import encode, nanmean
from protoscore.stats.resampling import Draw, Estimate, cluster_index, cluster_sums, rate_interval

Classes = Literal["seen", "reference", "all"]
Abstention = Literal["error", "left_out", "class"]
T = TypeVar("T")


class GroupScore(NamedTuple):
    macro_f1: Estimate
    accuracy: Estimate


class RuleScores(NamedTuple):
    """Macro-F1 over all rows, and averaged uniformly over groups, under one rule of which classes count."""

    macro_f1: Estimate
    gmf1: Estimate


class GroupScores(NamedTuple):
    """All values in [0, 1]; ``n`` of the means over groups is the number of groups."""

    accuracy: Estimate  # over all rows
    macro_f1: Estimate  # over all rows
    gmf1: Estimate  # macro-F1 averaged uniformly over groups
    worst: Estimate  # macro-F1 of the worst group
    worst_group: str | None
    gap: Estimate  # best minus worst macro-F1
    accuracy_gap: Estimate
    equalised_odds: Estimate  # largest difference between groups in any class's true or false positive rate
    groups: dict[str, GroupScore]
    small: tuple[str, ...]  # groups below ``min_size``
    rules: dict[Classes, RuleScores]  # each rule of ``classes`` side by side


def group_scores(
    predictions: ArrayLike, references: ArrayLike, groups: ArrayLike | None = None, labels: Sequence[Any] | None = None,
    classes: Classes = "seen", abstain_label: Any = None, abstention: Abstention = "error",
    unscored: Literal["left_out", "error"] = "left_out", min_size: int = 1,
    clusters: ArrayLike | None = None, resamples: int = 2000, seed: int = 0,
) -> GroupScores:  # fmt: skip
    """Scores of a classifier over all rows and by group.

    Args:
        predictions, references: (rows,) labels; None where there is none.
        groups: (rows,) group of each row; None leaves the row out of what is by group only. Default: one group.
        labels: every label; default those seen. An unknown one raises ConfigError.
        abstain_label: the prediction that means "I cannot tell". It is right where it is also the reference.
        clusters: (rows,) labels of what was sampled independently; default each row.
    """
    predicted, truth, known, scored = _rows(predictions, references, labels, abstain_label, abstention, unscored)
    member, names = encode(np.full(len(truth), "all") if groups is None else groups)
    if len(member) != len(truth):
        raise ConfigError(f"groups has {len(member)} rows, predictions {len(truth)}")
    place = np.where(scored, member + 1, -1)
    counts = _confusion(predicted, truth, place, len(names), len(known))
    tables = _Tables(counts, (len(names) + 1, 3, len(known)), (clusters, resamples, seed))
    n, left_out = int(scored.sum()), len(truth) - int(scored.sum())
    sizes = np.bincount(place[scored], minlength=len(names) + 1)
    large = np.flatnonzero(sizes[1:] >= max(1, min_size)) + 1

    def f1(t: NDArray, rule: Classes = classes) -> NDArray:
        return macro_f1_of(t, rule)

    def over_groups(of: Callable[[NDArray], NDArray]) -> Estimate:
        return tables.estimate(lambda t: of(t[:, large]), len(large), len(names) - len(large))

    def in_group(g: int) -> GroupScore:
        size = int(sizes[g])
        score = tables.estimate(lambda t: f1(t[:, g]), size, 0, size)
        return GroupScore(score, tables.estimate(lambda t: _accuracy(t[:, g]), size, 0, size))

    def under(rule: Classes) -> RuleScores:
        overall = tables.estimate(lambda t: f1(t[:, 0], rule), n, left_out)
        return RuleScores(overall, over_groups(lambda t: nanmean(f1(t, rule))))

    return GroupScores(
        accuracy=tables.estimate(lambda t: _accuracy(t[:, 0]), n, left_out),
        macro_f1=tables.estimate(lambda t: f1(t[:, 0]), n, left_out),
        gmf1=over_groups(lambda t: nanmean(f1(t))),
        worst=over_groups(lambda t: _lowest(f1(t))),
        worst_group=str(names[large[np.argmin(f1(tables.point[0, large]))] - 1]) if len(large) else None,
        gap=over_groups(lambda t: _range(f1(t))),
        accuracy_gap=over_groups(lambda t: _range(_accuracy(t))),
        equalised_odds=over_groups(_odds),
        groups={str(name): in_group(g) for g, name in enumerate(names, 1)},
        small=tuple(str(name) for g, name in enumerate(names, 1) if g not in large),
        rules={rule: under(rule) for rule in get_args(Classes)},
    )


class _Tables:
    """Counts of (group, true positive / prediction / reference, class), observed and resampled."""

    def __init__(self, counts: sparse.csr_array, shape: tuple[int, ...], draw: Draw):
        self.point = np.asarray(counts.sum(0)).reshape(-1, *shape)
        self.samples = cluster_sums(counts, *draw).reshape(-1, *shape)
        self.clusters = cluster_index(draw[0], counts.shape[0])[1]

    def estimate(self, of: Callable[[NDArray], NDArray], n: int, left_out: int, clusters: int | None = None) -> Estimate:
        value = float(of(self.point)[0])
        return Estimate(
            value, *rate_interval(value, of(self.samples), min(self.clusters, clusters or self.clusters)), n, left_out
        )


def by_group(groups: ArrayLike, function: Callable[[NDArray[np.bool_]], T]) -> dict[str, T]:
    """``function`` of each group's row mask, in sorted order; rows without a group are in none."""
    codes, names = encode(groups)
    return {str(name): function(codes == g) for g, name in enumerate(names)}


def _rows(
    predictions: ArrayLike, references: ArrayLike, labels: Sequence[Any] | None,
    abstain_label: Any, abstention: str, unscored: str,
) -> tuple[NDArray, NDArray, list, NDArray]:  # fmt: skip
    """Codes of predictions and references, the labels, and which rows count. A prediction of -1 hits no class."""
    if abstention not in ("error", "left_out", "class") or unscored not in ("error", "left_out"):
        raise ConfigError(
            f"abstention is error, left_out or class, unscored is error or left_out; not {abstention}, {unscored}"
        )
    a, b = np.asarray(predictions, object), np.asarray(references, object)
    if a.shape != b.shape or a.ndim != 1:
        raise ConfigError(f"predictions and references differ in shape: {a.shape} and {b.shape}")
    if labels is not None and abstain_label is not None:
        labels = [*labels, *([] if abstain_label in labels else [abstain_label])]
    codes, known_labels = encode(np.stack([a, b]), labels)
    predicted, truth = codes
    scored = (truth >= 0) & ((predicted >= 0) | (unscored == "error"))
    if abstain_label in known_labels and abstention != "class":
        code = known_labels.index(abstain_label)
        if abstention == "left_out":
            scored &= (predicted != code) | (truth == code)
        if not (truth == code).any():  # no class of its own: move it out, the labels after it step up
            predicted, truth = (np.where(c == code, -1, c - (c > code)) for c in (predicted, truth))
            known_labels = known_labels[:code] + known_labels[code + 1 :]
    return predicted, truth, known_labels, scored


def _confusion(predicted: NDArray, truth: NDArray, member: NDArray, groups: int, k: int) -> sparse.csr_array:
    """(rows, (groups + 1) x 3 x k): true positives, predictions and references of each class, over all rows and by group.

    Args:
        member: 0 for a row of no group, else 1 + its group; -1 for a row that does not count.
    """
    rows, columns = [], []
    for place, counted in ((np.zeros_like(member), member >= 0), (member, member > 0)):
        for part, code in enumerate((np.where(predicted == truth, truth, -1), predicted, truth)):
            here = np.flatnonzero(counted & (code >= 0))
            rows.append(here)
            columns.append(place[here] * 3 * k + part * k + code[here])
    row, column = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_array((np.ones(len(row)), (row, column)), shape=(len(truth), (groups + 1) * 3 * k))


def macro_f1_of(tables: NDArray, classes: Classes = "seen") -> NDArray:
    """Macro-F1 of (..., 3, k) true positives, predictions and references; NaN without any reference."""
    hits, predicted, truth = np.moveaxis(tables, -2, 0)
    size = predicted + truth
    counted = {"seen": size > 0, "reference": truth > 0, "all": np.ones(size.shape, bool)}
    if classes not in counted:
        raise ConfigError(f"classes must be 'seen', 'reference' or 'all', not {classes!r}")
    f1 = 2 * hits / np.where(size > 0, size, 1)
    included = counted[classes]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(truth.sum(-1) > 0, (f1 * included).sum(-1) / included.sum(-1), np.nan)


def _accuracy(tables: NDArray) -> NDArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return tables[..., 0, :].sum(-1) / tables[..., 2, :].sum(-1)


def _odds(tables: NDArray) -> NDArray:
    hits, predicted, truth = np.moveaxis(tables, -2, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = np.concatenate([hits / truth, (predicted - hits) / (truth.sum(-1, keepdims=True) - truth)], axis=-1)
    return _highest(_range(np.swapaxes(rates, -1, -2)))


def _lowest(values: NDArray) -> NDArray:
    return np.fmin.reduce(values, axis=-1, initial=np.nan)  # fmin and fmax pass over NaN


def _highest(values: NDArray) -> NDArray:
    return np.fmax.reduce(values, axis=-1, initial=np.nan)


def _range(values: NDArray) -> NDArray:
    return _highest(values) - _lowest(values)
