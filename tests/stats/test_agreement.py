"""Agreement against scikit-learn, SciPy, hand-worked tables and plain bootstraps."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr
from sklearn.metrics import cohen_kappa_score

from protoscore.errors import ConfigError
from protoscore.stats.agreement import (
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    majority,
    mean_pairwise_kappa,
)
from protoscore.stats.correlation import correlation

NAN = float("nan")


def raters(seed: int, rows: int = 200, k: int = 4, noise: float = 0.4, people: int = 2) -> np.ndarray:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, rows)
    return np.column_stack([np.where(rng.random(rows) < noise, rng.integers(0, k, rows), truth) for _ in range(people)])


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
def test_kappa_and_its_interval_equal_scikit_learn_and_a_plain_bootstrap(weights):
    for seed in range(60):
        k = 2 + seed % 5
        a, b = raters(seed, rows=5 + seed, k=k).T
        expected = cohen_kappa_score(a, b, labels=np.arange(k), weights=weights)
        found = cohen_kappa(a, b, labels=range(k), weights=weights, resamples=10)
        assert found.value == pytest.approx(expected, abs=1e-12) and found.n == len(a)
    clusters = np.repeat(np.arange(40), 5)
    a, b = raters(99, k=3).T
    found = cohen_kappa(a, b, weights=weights, clusters=clusters, resamples=2000)
    rng = np.random.default_rng(7)
    plain = []
    for _ in range(600):
        rows = np.concatenate([np.flatnonzero(clusters == c) for c in rng.integers(0, 40, 40)])
        plain.append(cohen_kappa_score(a[rows], b[rows], weights=weights))
    np.testing.assert_allclose([found.low, found.high], np.quantile(plain, [0.025, 0.975]), atol=0.02)


def test_words_missing_ratings_and_one_label_only():
    k = cohen_kappa(["b", "a", None, "a", "b"], ["b", "a", "a", "b", NAN])
    assert k.n == 3 and k.left_out == 2 and k.value == pytest.approx(cohen_kappa_score(["b", "a", "a"], ["b", "a", "b"]))
    assert np.isnan(cohen_kappa(["a"] * 4, ["a"] * 4).value)
    grades = [1, 1, 2, 2, 5, 5, 1], [1, 2, 2, 1, 5, 2, 5]  # nobody gave a 3 or 4, which lie between all the same
    for weights in ("linear", "quadratic"):
        expected = cohen_kappa_score(*grades, labels=range(1, 6), weights=weights)
        assert cohen_kappa(*grades, weights=weights).value == pytest.approx(expected)
        assert mean_pairwise_kappa(np.transpose(grades), weights=weights).value == pytest.approx(expected)
    assert np.isnan(cohen_kappa([None], ["a"]).value)
    assert cohen_kappa([1, 2, 3], [1, 2, 3]).low < 0.1, "three rows that agree prove little"
    with pytest.raises(ConfigError, match="'c' is none of the labels"):
        cohen_kappa(["a", "c"], ["a", "a"], labels=["a", "b"])
    with pytest.raises(ConfigError, match="equal length"):
        cohen_kappa([1, 2], [1])


def test_mean_pairwise_kappa_is_the_mean_of_scikit_learns():
    ratings = raters(3, people=5, k=3).astype(object)
    ratings[::7, 1] = None
    expected = []
    for i, j in combinations(range(5), 2):
        both = [(a, b) for a, b in ratings[:, [i, j]] if a is not None and b is not None]
        expected.append(cohen_kappa_score(*map(list, zip(*both)), weights="quadratic"))
    found = mean_pairwise_kappa(ratings, resamples=500)
    assert found.value == pytest.approx(np.mean(expected), abs=1e-12) and found.low < found.value < found.high


def test_fleiss_kappa_of_the_worked_table():
    # ten subjects, fourteen raters, five categories: kappa 0.210 (the worked table of Fleiss' kappa in textbooks)
    counts = [
        (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
        (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
    ]  # fmt: skip
    found = fleiss_kappa([np.repeat(range(5), row) for row in counts])
    assert found.value == pytest.approx(0.210, abs=5e-4) and found.n == 10
    assert fleiss_kappa([[1, 1, 1], [2, 2, 2]]).value == 1
    assert np.isnan(fleiss_kappa([[1, 1], [1, 1]]).value)


def plain_alpha(ratings, metric) -> float:
    """Krippendorff's alpha as pairable values, by loops."""
    units = [[v for v in row if v is not None] for row in ratings]
    units = [u for u in units if len(u) > 1]
    values = [v for u in units for v in u]
    n = len(values)
    observed = sum(metric(a, b, values) / (len(u) - 1) for u in units for a, b in permutations(u, 2)) / n
    expected = sum(metric(a, b, values) for a, b in permutations(values, 2)) / (n * (n - 1))
    return 1 - observed / expected


def ordinal(a, b, values) -> float:
    low, high = min(a, b), max(a, b)
    between = sum(low <= v <= high for v in values) - (values.count(low) + values.count(high)) / 2
    return between**2 if a != b else 0.0


@pytest.mark.parametrize("level, metric", [
    ("nominal", lambda a, b, _: float(a != b)), ("interval", lambda a, b, _: (a - b) ** 2), ("ordinal", ordinal),
])  # fmt: skip
def test_krippendorff_alpha_equals_the_definition(level, metric):
    for seed in range(8):
        ratings = (1 + raters(seed, rows=20, people=4)).astype(object)
        ratings[np.random.default_rng(seed).random(ratings.shape) < 0.3] = None
        found = krippendorff_alpha(ratings, level, labels=range(1, 5), resamples=50)
        assert found.value == pytest.approx(plain_alpha(ratings.tolist(), metric), abs=1e-12)
        assert found.low <= found.value <= found.high


def test_krippendorffs_own_example():
    # twelve units, four observers; the alphas are printed in Krippendorff's "Computing Krippendorff's alpha-reliability"
    observers = ["123321412***", "1233224125*3", "*3332342251*", "12332441251*"]
    data = np.array([[None if c == "*" else int(c) for c in row] for row in observers], object).T
    for level, printed in {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849}.items():
        assert krippendorff_alpha(data, level).value == pytest.approx(printed, abs=5e-4)


def test_majority_and_its_tie_rules():
    votes = [["a", "a", "b"], ["a", "b", None], ["a", "b", "c"], [None, None, None], ["b", "b", "b"], ["a", "a", None]]
    assert majority(votes).tolist() == ["a", None, None, None, "b", "a"]
    assert majority(votes, tie="tie").tolist() == ["a", "tie", "tie", None, "b", "a"]
    four = [["a", "a", "b", "c"]]
    assert majority(four).tolist() == ["a"] and majority(four, strict=True).tolist() == [None]


@pytest.mark.parametrize("kind, reference", [("pearson", pearsonr), ("spearman", spearmanr), ("kendall", kendalltau)])
def test_correlations_and_their_intervals_equal_scipy_and_a_plain_bootstrap(kind, reference):
    rng = np.random.default_rng(4)
    x = rng.integers(0, 8, 120).astype(float)  # many ties
    y = x + rng.normal(0, 3, 120).round()
    clusters = np.repeat(np.arange(40), 3)
    found = correlation([*x, NAN], [*y, 1], kind, clusters=[*clusters, 0])
    assert found.value == pytest.approx(reference(x, y).statistic, abs=1e-12) and found.n == 120 and found.left_out == 1
    plain = []
    for _ in range(800):
        rows = (rng.integers(0, 40, 40)[:, None] * 3 + np.arange(3)).ravel()
        plain.append(reference(x[rows], y[rows]).statistic)
    np.testing.assert_allclose([found.low, found.high], np.quantile(plain, [0.025, 0.975]), atol=0.025)
    assert np.isnan(correlation([1, 1, 1], [1, 2, 3], kind).value)
