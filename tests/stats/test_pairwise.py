"""The statistics against hand-worked cases, an independent implementation, and properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from protoscore.stats import resampling
from protoscore.stats.pairwise import choices, five_quantities, pairwise_accuracy
from protoscore.stats.resampling import cluster_bootstrap, cluster_sums, exact_bound, interval

NAN = float("nan")


def quantities(rows: list[tuple[float, float, float, float]], clusters=None, **options):
    columns = np.array(rows, float).T
    return five_quantities(*columns, clusters=np.arange(len(rows)) if clusters is None else clusters, **options)


def test_hand_worked_case():
    # (non, correct) (proto, violated) (proto, correct) (non, violated)
    rows = [
        (3, 1, 4, 2),  # everything right
        (1, 3, 4, 2),  # incongruent wrong; the non-prototype's own pair wrong
        (2, 2, 5, 2),  # a tie in the incongruent pair and in the non-prototype's own
        (9, 1, NAN, 2),  # the prototype's correct picture has no score
    ]
    q = quantities(rows)
    assert q.incongruent[:1] == (2 / 4,) and q.incongruent.n == 4 and q.incongruent.ties == 1
    assert q.congruent.value == 3 / 3 and q.congruent.n == 3 and q.congruent.left_out == 1
    # own pairs: non-prototype 2 of 4, prototype 3 of 3
    assert q.sensitivity.value == pytest.approx((2 / 4 + 3 / 3) / 2) and q.sensitivity.left_out == 1
    # prototype wins when both correct: 4>3, 4>1, 5>2 of 3; when both violated: 1<2, 3>2, 2=2 (half), 1<2 of 4
    assert q.preference.value == pytest.approx((3 / 3 + 1.5 / 4) / 2)
    assert q.gap.value == pytest.approx(1.0 - 0.5)


def test_the_two_shortcuts_and_understanding_look_as_defined():
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.01, (400, 4))
    subject, truth = np.array([1, 0, 0, 1]), np.array([1, 0, 1, 0])
    anti = quantities(noise + subject)  # likes the non-prototype whatever the text says
    assert anti.incongruent.value == 1 and anti.congruent.value == 0 and anti.gap.value == -1 and anti.preference.value == 0
    assert anti.sensitivity.low < 0.5 < anti.sensitivity.high
    proto = quantities(noise - subject)
    assert proto.gap.value == 1 and proto.preference.value == 1
    right = quantities(noise + truth)
    assert right.incongruent.value == right.congruent.value == right.sensitivity.value == 1 and right.gap.value == 0
    assert right.preference.low < 0.5 < right.preference.high


scores = st.lists(st.tuples(*[st.one_of(st.integers(-3, 3).map(float), st.just(NAN))] * 4), min_size=1, max_size=30)


@settings(max_examples=60, deadline=None)
@given(scores)
def test_agrees_with_a_plain_loop_and_does_not_depend_on_the_scale(rows):
    q = quantities(rows, resamples=100)

    def rate(first: int, second: int, tie: float = 0.0) -> float:
        pairs = [(r[first], r[second]) for r in rows if r[first] == r[first] and r[second] == r[second]]
        return sum(1.0 if a > b else tie if a == b else 0.0 for a, b in pairs) / len(pairs) if pairs else NAN

    expected = (
        rate(0, 1),
        rate(2, 3),
        (rate(0, 3) + rate(2, 1)) / 2,
        (rate(2, 0, 0.5) + rate(1, 3, 0.5)) / 2,
        rate(2, 3) - rate(0, 1),
    )
    np.testing.assert_allclose([e.value for e in q], expected, atol=1e-12)
    stretched = quantities([tuple(np.exp(v) * 5 - 2 for v in row) for row in rows], resamples=100)
    np.testing.assert_allclose([e.value for e in stretched], expected, atol=1e-12)
    for estimate in q[:4]:
        if np.isfinite(estimate.low):
            assert -1e-9 <= estimate.low <= estimate.high <= 1 + 1e-9


def test_bootstrap_is_over_clusters_and_agrees_with_a_plain_one():
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(40), 5)
    numerator = np.repeat(rng.random(40) < 0.7, 5)[:, None].astype(float)  # all rows of a cluster agree
    samples = cluster_bootstrap(numerator, np.ones_like(numerator), clusters, 4000, seed=2)[:, 0]
    by_cluster = numerator.reshape(40, 5).mean(1)
    plain = np.array([by_cluster[rng.integers(0, 40, 40)].mean() for _ in range(4000)])
    assert samples.std() == pytest.approx(plain.std(), rel=0.08)
    assert np.allclose(interval(samples), interval(plain), atol=0.03)
    by_row = cluster_bootstrap(numerator, np.ones_like(numerator), np.arange(200), 4000, seed=2)[:, 0]
    assert samples.std() > 1.8 * by_row.std(), "rows of one cluster were treated as independent"


def test_paired_columns_share_their_draws():
    rng = np.random.default_rng(3)
    first = (rng.random((300, 1)) < 0.6).astype(float)
    samples = cluster_bootstrap(np.hstack([first, first]), np.ones((300, 2)), np.arange(300), 500)
    assert np.array_equal(samples[:, 0], samples[:, 1])


def test_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(5)
    covered = 0
    for seed in range(200):
        wins = (rng.random((120, 1)) < 0.8).astype(float)
        low, high = interval(cluster_bootstrap(wins, np.ones_like(wins), np.arange(120), 400, seed)[:, 0])
        covered += low <= 0.8 <= high
    assert 0.88 <= covered / 200 <= 0.99


@pytest.mark.parametrize("n", [1, 10, 500])
def test_exact_bound_is_clopper_pearson(n):
    assert 1 - exact_bound(n) == pytest.approx(binomtest(n, n).proportion_ci(0.95, "exact").low)


def test_nothing_to_compare_is_not_a_number():
    q = quantities([(NAN, NAN, NAN, NAN)] * 3, resamples=100)
    assert q.incongruent.n == 0 and np.isnan(q.incongruent.value) and q.incongruent.left_out == 3


def test_draws_do_not_depend_on_how_many_are_made_at_once(monkeypatch):
    rows = np.random.default_rng(0).normal(size=(301, 2))
    whole = cluster_sums(rows, resamples=700)
    monkeypatch.setattr(resampling, "CELLS", 5 * 301 + 7)
    np.testing.assert_allclose(cluster_sums(rows, resamples=700), whole, atol=1e-12)


def test_accuracy_and_choices():
    correct, adversarial = [1, 2, 3, NAN, 5], [0, 2, 4, 1, 1]
    found = pairwise_accuracy(correct, adversarial)
    assert found.value == 2 / 4 and found.n == 4 and found.left_out == 1 and found.ties == 1
    assert choices(correct, adversarial).tolist() == ["correct", "adversarial", "adversarial", None, "correct"]
    assert choices(correct, adversarial, tie="tie")[1] == "tie"
    assert pairwise_accuracy([2] * 30, [1] * 30).low == pytest.approx(1 - exact_bound(30))
