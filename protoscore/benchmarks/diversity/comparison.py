"""Which model is more diverse: by every measure an outcome for each concept, an exact test for each pair of models, a partial
order, the groups and concepts where a model is weakest, and where a measure contradicts what a judge saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from protoscore.benchmarks.diversity.set_scores import SetScores
from protoscore.stats.diversity import PairTest, compare_all, concept_outcomes
from protoscore.stats.paired import TieRule
from protoscore.stats.resampling import Estimate, mean
from protoscore.stats.sign_power import Subset, least_significant, sign_power, subset_study

LEVEL = 0.05
SAME = 1e-9  # relative difference of two scores below which they are equal
RATE = 0.65  # win rate for which the power is told
Outcomes = Mapping[tuple[str, str], NDArray[np.float64]]  # two models -> (concepts,) 1, 0, -1, NaN


class ModelComparison(NamedTuple):
    """One measure over all models, or people."""

    measure: str
    models: list[str]  # from the most diverse: by wins minus losses over all others, then by mean score
    balance: dict[str, int]  # model -> wins minus losses
    outcomes: Outcomes
    tests: dict[tuple[str, str], PairTest]
    power: float  # to see RATE on this many decided concepts
    least: int | None  # fewest wins that are significant
    subsets: list[Subset]
    groups: dict[tuple[str, str], Estimate]  # model, group -> win rate against all others, ties half

    def direction(self, first: str, second: str) -> int:
        """1 where the first is significantly more diverse, -1 where the second is, else 0."""
        pair, sign = ((first, second), 1) if (first, second) in self.tests else ((second, first), -1)
        test = self.tests[pair].test
        return sign * int(np.sign(test.wins - test.losses)) if test.p <= LEVEL else 0

    def never_worse(self) -> list[str]:
        """Models that are significantly better, or not worse, than each other one."""
        others = {model: [other for other in self.models if other != model] for model in self.models}
        return [model for model in self.models if all(self.direction(model, other) >= 0 for other in others[model])]


def outcomes_of(scores: NDArray, models: Sequence[str]) -> dict[tuple[str, str], NDArray[np.float64]]:
    """Outcomes by concept: the mode over its side-by-side comparisons.

    Args:
        scores: (models, concepts, comparisons), NaN where there is none.
    """
    concepts, sides = scores.shape[1:]
    names, numbers = np.repeat(np.arange(concepts), sides), np.tile(np.arange(sides), concepts)
    found = {}
    for a, b in combinations(range(len(models)), 2):
        first, second = scores[a].ravel(), scores[b].ravel()
        gap = np.where(np.abs(first - second) <= SAME * np.maximum(np.abs(first), 1), 0.0, np.sign(first - second))
        by_concept = concept_outcomes(gap, names, numbers)
        found[models[a], models[b]] = np.array([by_concept[str(concept)] for concept in range(concepts)])
    return found


def compare_models(
    measure: str, outcomes: Outcomes, models: Sequence[str], groups: Sequence[str], means: Mapping[str, float] | None = None,
    tie_rule: TieRule = "drop", seed: int = 0,
) -> ModelComparison:  # fmt: skip
    """Test every pair of models.

    Args:
        groups: (concepts,) group of each concept.
        means: of the measure, to order models of equal balance.
    """
    tests = compare_all(outcomes, tie_rule)
    balance = dict.fromkeys(models, 0)
    for (a, b), found in outcomes.items():
        gap = int(np.nansum(found))
        balance[a] += gap
        balance[b] -= gap
    order = sorted(models, key=lambda model: (-balance[model], -(means or {}).get(model, 0.0)))
    concepts = len(groups)
    decided = max((test.test.wins + test.test.losses for test in tests.values()), default=0)
    sizes = [
        size
        for size in sorted({round(concepts * share) for share in (1, 0.86, 0.7, 0.5, 0.35, 0.25)}, reverse=True)
        if size > 5
    ]
    return ModelComparison(
        measure, order, balance, outcomes, tests, sign_power(decided, RATE, LEVEL), least_significant(decided, LEVEL),
        subset_study(outcomes, sizes, seed=seed, level=LEVEL), _by_group(outcomes, models, groups),
    )  # fmt: skip


def _by_group(outcomes: Outcomes, models: Sequence[str], groups: Sequence[str]) -> dict[tuple[str, str], Estimate]:
    """Win rate against all others in each group of concepts; intervals resample concepts."""
    kind, found = np.array(groups), {}
    for model in models:
        signed = [gap if a == model else -gap for (a, b), gap in outcomes.items() if model in (a, b)]
        rates, concepts = (np.stack(signed) + 1) / 2, np.tile(np.arange(len(kind)), len(signed))
        for group in dict.fromkeys(groups):
            inside = np.tile(kind == group, len(signed))
            found[model, group] = mean(rates.ravel()[inside], concepts[inside])
    return found


class Contradiction(NamedTuple):
    """A measure that is significantly for the model that the judged values are significantly against."""

    measure: str
    preferred: str
    over: str
    p: float
    p_judged: float


def contradictions(comparisons: Sequence[ModelComparison], trusted: str = "judged_entropy") -> list[Contradiction]:
    """Where a measure is misled: what changes is not what was asked for."""
    base = next((one for one in comparisons if one.measure == trusted), None)
    if base is None:
        return []
    found = []
    for one in comparisons:
        for (a, b), test in one.tests.items():
            here = one.direction(a, b)
            if here and here == -base.direction(a, b):
                first, second = (a, b) if here > 0 else (b, a)
                found.append(Contradiction(one.measure, first, second, test.test.p, base.tests[a, b].test.p))
    return found


def kendall(first: ModelComparison, second: ModelComparison) -> float:
    """Kendall's tau-b between two rankings of the models by their balance of wins; NaN for fewer than two models."""
    names = list(first.balance)
    return float(stats.kendalltau([first.balance[n] for n in names], [second.balance[n] for n in names]).statistic)


def weakest(found: SetScores, measure: str, model: str, count: int = 5) -> list[tuple[str, float]]:
    """The concepts in which a model is least diverse, with the mean score of its sets there."""
    here = found.scores[measure][found.models.index(model)]
    means = np.array([row[np.isfinite(row)].mean() if np.isfinite(row).any() else np.nan for row in here])
    order = np.argsort(means, kind="stable")[: min(count, int(np.isfinite(means).sum()))]
    return [(found.pairs[p].id, float(means[p])) for p in order]


def mean_scores(found: SetScores, measure: str) -> dict[str, Estimate]:
    """Mean over sets by model; intervals resample concepts."""
    _, concepts, sides = found.scores[measure].shape
    clusters = np.repeat(np.arange(concepts), sides)
    return {model: mean(found.scores[measure][m].ravel(), clusters) for m, model in enumerate(found.models)}
