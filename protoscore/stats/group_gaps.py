"""Which groups a judge serves worse than the others: each group against all other rows, corrected for how many are compared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from protoscore.errors import ConfigError
from protoscore.stats.agreement import encode
from protoscore.stats.paired import holm
from protoscore.stats.resampling import Estimate, cluster_bootstrap, interval, means


class GroupGap(NamedTuple):
    """One group's mean, and how far it is from that of all other rows."""

    group: str
    mean: Estimate
    difference: Estimate  # group minus the rest
    p: float  # two-sided, of no difference, Holm-adjusted over the groups; NaN where the group is too small


class GroupGaps(NamedTuple):
    """Every group, and the extremes of those that are large enough. Resampled extremes lean outward when groups are small."""

    groups: tuple[GroupGap, ...]
    worst: Estimate  # mean of the worst group
    worst_group: str | None
    gap: Estimate  # best minus worst; ``n`` is the number of groups


def group_gaps(
    values: ArrayLike, groups: ArrayLike, min_size: int = 10,
    clusters: ArrayLike | None = None, resamples: int = 2000, seed: int = 0,
) -> GroupGaps:  # fmt: skip
    """Means by group, each against the rest.

    p inverts the percentile interval of the difference: it is below 0.05 where the 95 % interval leaves out 0, and never below
    2 / (resamples + 1).

    Args:
        values: (rows,) right or wrong as 1 or 0, or a score; NaN leaves the row out.
        groups: (rows,) group of each row; None leaves it out.
        min_size: rows that a group needs to be tested, and to be an extreme.
        clusters: (rows,) labels of what was sampled independently; default each row.
    """
    x = np.asarray(values, float)
    member, names = encode(groups)
    if member.shape != x.shape:
        raise ConfigError(f"groups has shape {member.shape}, values {x.shape}")
    inside = (member[:, None] == np.arange(len(names))) & np.isfinite(x)[:, None]
    outside = ~inside & ((member >= 0) & np.isfinite(x))[:, None]
    held, k = np.where(np.isfinite(x), x, 0.0)[:, None], len(names)
    sizes = inside.sum(0)
    if not sizes.any():
        nothing = Estimate(np.nan, np.nan, np.nan, 0, len(x))
        return GroupGaps((), nothing, None, nothing)
    both = np.hstack([inside, outside])
    drawn = cluster_bootstrap(held * both, both, clusters, resamples, seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = (held * both).sum(0) / both.sum(0)
    means_ = means(np.where(inside, held, np.nan), clusters, resamples, seed)
    large = np.flatnonzero(sizes >= max(1, min_size))
    gaps, p = drawn[:, :k] - drawn[:, k:], np.full(k, np.nan)
    for g in large.tolist() if len(large) > 1 else ():
        some = gaps[np.isfinite(gaps[:, g]), g]
        p[g] = min(1.0, 2 * (min((some <= 0).sum(), (some >= 0).sum()) + 1) / (len(some) + 1))
    p, found = holm(p), []
    for g, name in enumerate(names):
        rest = int(outside[:, g].sum())
        difference = Estimate(float(observed[g] - observed[k + g]), *interval(gaps[:, g]), int(sizes[g]) + rest)
        size = int(sizes[g])
        found.append(GroupGap(str(name), means_[g]._replace(left_out=int((member == g).sum()) - size), difference, float(p[g])))
    nothing = Estimate(np.nan, np.nan, np.nan, len(large), k - len(large))
    if not len(large):
        return GroupGaps(tuple(found), nothing, None, nothing)
    low, spread = np.fmin.reduce(drawn[:, large], 1), np.ptp(drawn[:, large], axis=1)
    lowest = int(large[np.argmin(observed[large])])
    ends = (float(observed[lowest]), *interval(low)), (float(np.ptp(observed[large])), *interval(spread))
    worst, gap = (Estimate(*end, len(large), k - len(large)) for end in ends)
    return GroupGaps(tuple(found), worst, str(names[lowest]), gap)
