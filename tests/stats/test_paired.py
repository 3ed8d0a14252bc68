"""Paired comparisons against SciPy, loops and simulation."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, ttest_rel

from protoscore.errors import ConfigError
from protoscore.stats.paired import (
    binomial,
    difference,
    holm,
    minmax,
    rank_normalise,
    sign_test,
    tie_calibrated_accuracy,
    units_needed,
)

NAN = float("nan")


def test_difference_is_paired_and_its_p_agrees_with_a_t_test():
    rng = np.random.default_rng(0)
    shared = rng.normal(0, 5, 200)
    first, second = shared + rng.normal(0.1, 0.5, 200), shared + rng.normal(0, 0.5, 200)
    found = difference([*first, NAN], [*second, 1], resamples=4000)
    assert found.estimate.value == pytest.approx((first - second).mean()) and found.estimate.left_out == 1
    assert found.p == pytest.approx(ttest_rel(first, second).pvalue, abs=0.03)
    assert found.estimate.high - found.estimate.low < 0.25, "the shared part of the variance did not cancel"
    same = difference(first, first)
    assert same.p == 1 and same.estimate[:3] == (0, 0, 0) and same.estimate.ties == 200
    assert np.isnan(difference([NAN], [1]).p)


def test_false_positives_of_the_difference_with_clusters():
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(60), 4)
    hits = clustered = 0
    for seed in range(300):
        effect = np.repeat(rng.normal(0, 1, 60), 4)
        first, second = effect + rng.normal(0, 1, 240), rng.normal(0, 1, 240)
        hits += difference(first, second, resamples=300, seed=seed).p < 0.05
        clustered += difference(first, second, clusters, resamples=300, seed=seed).p < 0.05
    assert clustered / 300 <= 0.1 < hits / 300, "rows that share a cluster were taken as independent"


def test_sign_test_is_mcnemars_exact():
    first, second = [1, 1, 1, 0, 0, 1, 1, NAN], [0, 0, 0, 1, 0, 1, 0, 1]
    found = sign_test(first, second)
    assert (found.wins, found.losses, found.ties) == (4, 1, 2)
    assert found.p == binomtest(4, 5).pvalue
    assert binomial(4, 1, 3, "half").p == binomtest(5, 7).pvalue
    assert binomial(4, 1, 3, "loss").p == binomtest(4, 8).pvalue and binomial(4, 1, 3, "loss").rate.value == 0.5
    assert binomial(0, 0, 5).p == 1 and np.isnan(binomial(0, 0, 5).rate.value)
    with pytest.raises(ConfigError, match="tie_rule"):
        binomial(1, 1, 1, "toss")  # type: ignore[arg-type]


@pytest.mark.parametrize("tie_rule", ["drop", "half"])
def test_false_positive_rate_of_the_binomial_comparison(tie_rule):
    rng = np.random.default_rng(2)
    outcomes = rng.choice([-1, 0, 1], p=[0.35, 0.3, 0.35], size=(2000, 86))  # 86 concepts, as in the paper
    test = cache(lambda *counts: binomial(*counts, tie_rule).p)
    p = [test(int((o > 0).sum()), int((o < 0).sum()), int((o == 0).sum())) for o in outcomes]
    assert 0.01 < np.mean(np.array(p) < 0.05) <= 0.06
    ahead = rng.choice([-1, 0, 1], p=[0.15, 0.3, 0.55], size=(200, 86))
    assert np.mean([sign_test(o, np.zeros(86), tie_rule).p < 0.05 for o in ahead]) > 0.9


def test_holm_by_hand_and_in_any_order():
    # sorted .01 .02 .03 .04 times 4 3 2 1 = .04 .06 .06 .04, made monotone
    np.testing.assert_allclose(holm([0.04, NAN, 0.01, 0.03, 0.02]), [0.06, NAN, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.8]).tolist() == [1, 1] and holm([]).size == 0


def test_units_needed_gives_the_promised_power():
    rng = np.random.default_rng(3)
    pilot = rng.normal(0.3, 1, 400)
    needed = units_needed(pilot, np.zeros(400), detect=0.3)
    assert needed.needed == pytest.approx((1.96 + 0.8416) ** 2 / 0.3**2, rel=0.15) and needed.more == 0
    hits = [ttest_rel(rng.normal(0.3, 1, int(needed.needed)), np.zeros(int(needed.needed))).pvalue < 0.05 for _ in range(400)]
    assert np.mean(hits) == pytest.approx(0.8, abs=0.07)
    few = units_needed(np.repeat(pilot[:30], 4), np.zeros(120), np.repeat(np.arange(30), 4), detect=0.3)
    assert few.have == 30 and few.more == few.needed - 30 > 0
    assert units_needed([1, 0], [0, 1]).more == float("inf")


def test_common_scales():
    np.testing.assert_allclose(minmax([2, NAN, 4, 3]), [0, NAN, 1, 0.5])
    assert np.isnan(minmax([2, 2])).all()
    np.testing.assert_allclose(rank_normalise([10, NAN, 30, 10, 99]), [1 / 4, NAN, 2.5 / 4, 1 / 4, 3.5 / 4])


def plain_accuracy(metric, human, items, threshold, average) -> float:
    per_item: dict = {}
    for i, j in combinations(range(len(items)), 2):
        if items[i] == items[j]:
            gap = metric[i] - metric[j]
            said = 0 if abs(gap) <= threshold else np.sign(gap)
            per_item.setdefault(items[i], []).append(said == np.sign(human[i] - human[j]))
    found = list(per_item.values())
    return float(np.mean([np.mean(v) for v in found] if average == "items" else [right for v in found for right in v]))


rows = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=14)


@settings(max_examples=60, deadline=None)
@given(rows, st.sampled_from(["items", "pairs"]))
def test_tie_calibration_is_the_best_over_all_thresholds(rows, average):
    metric, human, items = (list(column) for column in zip(*rows))
    if len(set(items)) == len(items):
        assert np.isnan(tie_calibrated_accuracy(metric, human, items).accuracy.value)
        return
    gaps = sorted({0} | {abs(metric[i] - metric[j]) for i, j in combinations(range(len(items)), 2) if items[i] == items[j]})
    by_hand = [plain_accuracy(metric, human, items, gap, average) for gap in gaps]
    found = tie_calibrated_accuracy(metric, human, items, average, resamples=20)
    assert found.accuracy.value == pytest.approx(max(by_hand)) and found.threshold == gaps[int(np.argmax(by_hand))]
    fixed = tie_calibrated_accuracy(metric, human, items, average, threshold=1.0, resamples=20)
    assert fixed.accuracy.value == pytest.approx(plain_accuracy(metric, human, items, 1.0, average))
