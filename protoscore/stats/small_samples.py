"""What few units can tell: an exact test and an interval that stay honest where a bootstrap of ten prompts would not."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from protoscore.stats.resampling import Estimate, cluster_bootstrap, interval

EXACT = 12  # units up to which all sign patterns are tried: 4,096
CHUNK = 500


def sign_flip(gaps: ArrayLike, flips: int = 10_000, seed: int = 0) -> float:
    """Two-sided p of a mean of 0 by flipping the signs of paired differences (Fisher's randomisation test).

    Exact up to 12 units: with five it cannot be below 0.0625, however large the differences are. Above that it is drawn.

    Args:
        gaps: (units,) differences of independent units, one a prompt; NaN is left out.

    Returns:
        p in (0, 1]; NaN without units.
    """
    found = np.asarray(gaps, float)
    found = found[np.isfinite(found)]
    if not len(found):
        return float("nan")
    seen = abs(found.sum()) * (1 - 1e-12)  # sums in another order differ in the last digit and are the same
    if len(found) <= EXACT:
        return float(np.mean(np.abs(np.array(list(product((-1, 1), repeat=len(found)))) @ found) >= seen))
    rng = np.random.default_rng(seed)
    sizes = [min(CHUNK, flips - start) for start in range(0, flips, CHUNK)]
    extreme = sum(int((np.abs(_signs(rng, size, len(found)) @ found) >= seen).sum()) for size in sizes)
    return (extreme + 1) / (flips + 1)


def _signs(rng: np.random.Generator, rows: int, columns: int) -> NDArray[np.float64]:
    return rng.integers(0, 2, (rows, columns)).astype(np.float64) * 2 - 1


def expanded_level(units: int, level: float = 0.95) -> float:
    """The level at which a percentile bootstrap interval of a mean covers ``level``: wider the fewer units there are.

    Hesterberg (2015, section 5.3): the percentile interval lacks the factor sqrt(n / (n - 1)) and Student's t.
    """
    if units < 2:
        return 1.0
    reach = np.sqrt(units / (units - 1)) * stats.t.ppf((1 + level) / 2, units - 1)
    return float(2 * stats.norm.cdf(reach) - 1)


def mean_of_units(values: ArrayLike, resamples: int = 2000, seed: int = 0) -> Estimate:
    """Mean over independent units (prompts), with an interval that is honest for few of them; unbounded for a single one.

    Args:
        values: (units,); NaN is left out, and is counted. Zeros are counted as ties, which is what they are among differences.
    """
    everything = np.asarray(values, float)
    units = everything[np.isfinite(everything)]
    n, ties = len(units), int((units == 0).sum())
    if not n:
        return Estimate(np.nan, np.nan, np.nan, 0, len(everything))
    low, high = -np.inf, np.inf
    if n > 1:
        samples = cluster_bootstrap(units[:, None], np.ones((n, 1)), None, resamples, seed)[:, 0]
        low, high = interval(samples, expanded_level(n))
    return Estimate(float(units.mean()), low, high, n, len(everything) - n, ties)
