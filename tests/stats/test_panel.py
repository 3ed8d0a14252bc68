"""Many scorers at once give what one at a time gives."""

from __future__ import annotations

import numpy as np
import pytest

from protoscore.errors import ConfigError
from protoscore.stats.agreement import cohen_kappa
from protoscore.stats.paired import difference
from protoscore.stats.pairwise import element_sensitivity, five_quantities
from protoscore.stats.panel import Draws, compare_choices, elements_by_group, five_quantities_by_group
from protoscore.stats.small_samples import expanded_level, sign_flip


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    scores = np.round(rng.normal(0, 1, (3, 400, 4)) + rng.normal(0, 1, (400, 1)) + [0.5, 0, 0.9, 0.2], 1)
    scores[1, :50, 2] = np.nan
    clusters = np.arange(400) // 3
    return scores, clusters, clusters % 2 == 0


def test_the_whole_equals_one_at_a_time_exactly(table):
    scores, clusters, _ = table
    found = five_quantities_by_group(scores, Draws(clusters, 700, 5), {"all": np.ones(400, bool)})
    for own, one in zip(found, scores, strict=True):
        assert own["all"] == five_quantities(*one.T, clusters=clusters, resamples=700, seed=5)


def test_elements_of_many_scorers_equal_one_at_a_time_exactly(table):
    scores, clusters, half = table
    correct, foils = scores[:, :, [0, 2]], np.random.default_rng(1).normal(0, 1, (3, 400, 3, 2)).round(1)
    foils[2, 7] = np.nan
    found = elements_by_group(correct, foils, Draws(clusters, 500, 5), {"all": np.ones(400, bool), "half": half})
    for own, right, other in zip(found, correct, foils, strict=True):
        assert own["all"] == element_sensitivity(right, other, clusters, resamples=500, seed=5)
        seen = np.isfinite(other) & np.isfinite(right)[:, None]
        for i, e in enumerate(own["all"][:3]):
            wins = [(right[:, s] > other[:, i, s])[seen[:, i, s]].mean() for s in (0, 1)]
            assert e.value == pytest.approx(np.mean(wins)) and e.n == seen[:, i].sum() and e.low < e.value < e.high
            assert e.ties == (right[:, :] == other[:, i]).sum() > 0
        assert own["all"].all.n == seen.sum() and own["all"].all.left_out == 2400 - seen.sum()
        assert own["half"].all.n == seen[half].sum()
    with pytest.raises(ConfigError, match="shape"):
        element_sensitivity(correct[0], foils[0, :, :2], clusters)


def test_a_group_has_the_groups_own_values_and_nearly_its_own_interval(table):
    scores, clusters, half = table
    groups = {"all": np.ones(400, bool), "half": half, "part": half & (clusters % 3 == 0)}
    found = five_quantities_by_group(scores, Draws(clusters, 6000), groups)
    for own, one in zip(found, scores, strict=True):
        for name, rows in groups.items():
            alone = five_quantities(*one[rows].T, clusters=clusters[rows], resamples=6000, seed=9)
            for a, b in zip(own[name], alone, strict=True):
                assert (a.value, a.n, a.left_out, a.ties) == (b.value, b.n, b.left_out, b.ties)
                assert a.low == pytest.approx(b.low, abs=0.02) and a.high == pytest.approx(b.high, abs=0.02)


def test_pairs_of_scorers_agree_with_kappa_and_difference_of_two(table):
    scores, clusters, half = table
    right = np.where(np.isfinite(scores[:, :, 2]), scores[:, :, 2] > scores[:, :, 1], np.nan).T
    found = compare_choices(right[:, None], Draws(clusters, 800, 2), {"all": np.ones(400, bool), "half": half})
    assert [(p.first, p.second) for p in found["all"]] == [(0, 1), (0, 2), (1, 2)]
    for pair in found["all"]:
        a, b = right[:, pair.first], right[:, pair.second]
        gap = difference(a, b, clusters, resamples=800, seed=2)
        assert pair.difference == pytest.approx(gap.estimate) and pair.p == gap.p
        kappa = cohen_kappa(a, b, clusters=clusters, resamples=800, seed=2)
        assert pair.kappa == pytest.approx(kappa)
    assert found["half"][0].difference.value == pytest.approx(np.nanmean((right[:, 0] - right[:, 1])[half]))


def test_two_choices_a_row_are_one_long_list_of_choices(table):
    scores, clusters, _ = table
    wins = np.stack([scores[:, :, 0] > scores[:, :, 3], scores[:, :, 2] > scores[:, :, 1]]).transpose(2, 0, 1) * 1.0
    stacked = np.concatenate([wins[:, 0], wins[:, 1]])[:, None]
    twice = np.concatenate([clusters, clusters])
    a = compare_choices(wins, Draws(clusters, 300), {"all": np.ones(400, bool)})
    assert a == compare_choices(stacked, Draws(twice, 300), {"all": np.ones(800, bool)})


def test_equal_scorers_do_not_differ_and_kappa_without_variety_is_undefined():
    ones = np.ones((30, 2))
    pair = compare_choices(ones[:, None], Draws(np.arange(30), 200), {"all": np.ones(30, bool)})["all"][0]
    assert pair.p == 1 and pair.difference.value == 0 and pair.difference.low < 0 < pair.difference.high
    assert np.isnan(pair.kappa.value)


def test_sign_flips_by_hand_and_large_against_small_units():
    assert sign_flip([1.0, 1.0, 1.0]) == 0.25  # 2 of 8 patterns reach the sum of 3
    assert sign_flip([3.0, -1.0]) == 1.0  # sums 2, 4, 4, 2: none smaller
    assert sign_flip([1.0, 2.0, 3.0, -0.5]) == 4 / 16  # |sum| >= 5.5: itself, without the flip of -0.5, and both mirrored
    assert np.isnan(sign_flip([np.nan])) and sign_flip([0.0, 0.0]) == 1.0
    gaps = np.random.default_rng(0).normal(0.6, 1, 12)
    many = np.mean([sign_flip(np.append(gaps, 0.0), seed=s) for s in range(5)])  # a zero changes no sum: drawn, not exact
    assert many == pytest.approx(sign_flip(gaps), abs=0.01)


def test_the_widened_interval_covers_what_it_says():
    """2,000 samples of 8: the plain percentile interval covers about 0.90 of the means, the widened one 0.95."""
    rng = np.random.default_rng(1)
    data = rng.normal(0, 1, (2000, 8))
    picks = rng.integers(0, 8, (600, 8))
    means = data[:, picks].mean(2)  # (samples, resamples)
    tails = [(1 - level) / 2 for level in (0.95, expanded_level(8))]
    plain, wide = (np.mean((np.quantile(means, t, 1) <= 0) & (np.quantile(means, 1 - t, 1) >= 0)) for t in tails)
    assert plain < 0.92 and wide == pytest.approx(0.95, abs=0.015)
