"""What a sign test over concepts can see: its least significant result, its power, and what fewer concepts would have found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from protoscore.errors import ConfigError


def least_significant(concepts: int, level: float = 0.05) -> int | None:
    """Fewest wins of so many decided concepts that an exact two-sided test calls significant; None: not even all."""
    wins = np.arange(concepts // 2 + 1, concepts + 1)
    called = wins[_p_values(wins, np.full(len(wins), concepts)) <= level]
    return int(called[0]) if len(called) else None


def sign_power(concepts: int, rate: float, level: float = 0.05) -> float:
    """Probability that the test is significant in favour of the model that wins with this rate (ties apart), in [0, 1].

    Raises:
        ConfigError: the rate is no probability.
    """
    if not 0 <= rate <= 1:
        raise ConfigError(f"a win rate is from 0 to 1, not {rate}")
    least = least_significant(concepts, level)
    return 0.0 if least is None else float(stats.binom.sf(least - 1, concepts, max(rate, 1 - rate)))


class Subset(NamedTuple):
    """What so many of the concepts, drawn again and again, find about the pairs of models.

    Attributes:
        significant: mean number of pairs that are significant.
        kept: share of the pairs that are significant on all concepts, and are so in the same direction here; NaN for none.
        reversals: pairs and draws that are significant in the direction that all concepts are not in.
    """

    concepts: int
    draws: int
    significant: float
    kept: float
    reversals: int


def subset_study(
    outcomes: Mapping[tuple[str, str], ArrayLike], sizes: Sequence[int], draws: int = 500, seed: int = 0, level: float = 0.05
) -> list[Subset]:
    """Repeat the tests on fewer concepts, drawn without replacement.

    Args:
        outcomes: pair of models -> (concepts,) 1, 0, -1 or NaN, the same concepts in the same order.
        sizes: numbers of concepts; the larger ones than there are, are passed over.
    """
    table = np.stack([np.asarray(found, float) for found in outcomes.values()])  # (pairs, concepts)
    whole = _directions(table[:, None, :], level)[:, 0]
    rng = np.random.default_rng(seed)
    found = []
    for size in (size for size in sizes if 0 < size <= table.shape[1]):
        chosen = rng.permuted(np.tile(np.arange(table.shape[1]), (draws, 1)), axis=1)[:, :size]
        here = _directions(table[:, chosen], level)
        same = here[whole != 0] == whole[whole != 0, None]
        reversals = int((here * np.sign(np.nansum(table, 1))[:, None] < 0).sum())
        kept = float(same.mean()) if same.size else math.nan
        found.append(Subset(size, draws, float((here != 0).sum(0).mean()), kept, reversals))
    return found


def _directions(outcomes: NDArray, level: float) -> NDArray[np.int64]:
    """(pairs, draws, concepts) outcomes to (pairs, draws): 1, -1 where the test is significant, else 0."""
    wins, losses = (outcomes > 0).sum(-1), (outcomes < 0).sum(-1)
    return np.where(_p_values(np.maximum(wins, losses), wins + losses) <= level, np.sign(wins - losses), 0)


def _p_values(more: NDArray, decided: NDArray) -> NDArray[np.float64]:
    """Exact two-sided sign tests; ``more`` is the larger of wins and losses."""
    return np.minimum(1.0, 2 * stats.binom.sf(more - 1, decided, 0.5))
