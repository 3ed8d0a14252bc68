"""Vendi against the published algorithm, written here a second time; votes, comparisons and autoraters by hand and by loops."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from protoscore.errors import ConfigError
from protoscore.stats.diversity import (
    autorater_accuracy,
    compare,
    compare_all,
    concept_outcomes,
    coverage,
    equal_auc,
    vendi,
    vendi_estimate,
    vendi_of_kernel,
    vendi_sets,
)

NAN = float("nan")


def published(x: np.ndarray, q: float = 1) -> float:
    """exp of the entropy of the eigenvalues of the (n, n) cosine similarities over n."""
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    p = np.linalg.eigvalsh(x @ x.T / len(x))
    p = p[p > 1e-14]
    if q == 1:
        return float(np.exp(-np.sum(p * np.log(p))))
    return float(1 / p.max() if q == np.inf else np.exp(np.log(np.sum(p**q)) / (1 - q)))


@pytest.mark.parametrize("shape", [(8, 512), (60, 16), (1, 3), (200, 200)])
@pytest.mark.parametrize("order", [0.5, 1, 2, np.inf])
def test_vendi_equals_the_published_algorithm(shape, order):
    x = np.random.default_rng(0).normal(size=shape) + 0.7
    expected = published(x, order)
    assert vendi(x, order) == pytest.approx(expected, rel=1e-10)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    assert vendi_of_kernel(unit @ unit.T, order) == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(vendi_sets(np.stack([x, x * 3]), order), expected, rtol=1e-10)


def test_vendi_counts_distinct_things():
    two = np.repeat(np.eye(16)[:2], 4, axis=0)
    for order in (0, 0.5, 1, 2, np.inf):
        assert vendi(two, order) == pytest.approx(2)
    assert vendi(np.ones((8, 4))) == pytest.approx(1) and vendi(np.eye(8)) == pytest.approx(8)
    for bad, said in ((np.zeros((2, 2)), "all zeros"), ([[1, NAN]], "finite"), (np.zeros((0, 3)), "not empty")):
        with pytest.raises(ConfigError, match=said):
            vendi(bad)
    with pytest.raises(ConfigError, match="length 1"):
        vendi([[2.0, 0]], normalise=False)


def test_the_interval_of_vendi_covers_other_samples():
    rng = np.random.default_rng(1)
    centre = rng.normal(size=32) * 2
    draw = lambda: vendi_estimate(centre + rng.normal(size=(40, 32)))  # noqa: E731
    truth = np.mean([vendi(centre + rng.normal(size=(40, 32))) for _ in range(300)])
    covered = np.mean([(e := draw()).low <= truth <= e.high for _ in range(150)])
    assert 0.87 <= covered <= 0.99


def test_votes_become_outcomes_by_mode_twice():
    votes = [1, 1, -1, 1, -1, 1, 0, 0, NAN, NAN, -1, -1, 1, 1]
    concepts = ["apple"] * 8 + ["tree"] * 2 + ["chair"] * 4
    sides = [1, 1, 1, 2, 2, 3, 3, 3, 1, 1, 1, 1, 2, 2]
    # apple: side 1 first, side 2 split, side 3 equal; tree: nobody could; chair: sides 1 and 2 split
    found = concept_outcomes(votes, concepts, sides)
    assert found["apple"] == 0 and np.isnan(found["tree"]) and found["chair"] == 0
    dropped = concept_outcomes(votes, concepts, sides, split="left_out")
    assert np.isnan(dropped["apple"]) and np.isnan(dropped["chair"])
    assert concept_outcomes(votes, concepts)["apple"] == 1, "without sides all votes of a concept are one comparison"
    with pytest.raises(ConfigError, match="a vote is"):
        concept_outcomes([2], ["x"])


def test_comparisons_and_their_correction():
    first = compare([1] * 15 + [-1] * 4 + [0] * 5 + [NAN])
    assert (first.wins, first.losses, first.ties) == (15, 4, 5) and first.p == pytest.approx(0.0192, abs=1e-4)
    found = compare_all({("a", "b"): [1] * 15 + [-1] * 4, ("a", "c"): [1, -1]})
    assert found["a", "b"].p_holm == pytest.approx(2 * found["a", "b"].test.p) and found["a", "c"].p_holm == 1
    assert coverage(["red", "red", "blue", "mauve"], ["red", "green", "blue", "yellow"]) == 0.5


def test_autorater_against_scikit_learn_and_a_plain_bootstrap():
    rng = np.random.default_rng(2)
    human = rng.choice([-1, 0, 1], 300).astype(float)
    a = rng.normal(size=300)
    b = (a - human + rng.normal(size=300)).round(1)
    a = a.round(1)
    a[0] = NAN
    rows = human[1:] != 0
    found = autorater_accuracy(a, b, human)
    assert found.value == np.mean(np.sign(a - b)[1:][rows] == human[1:][rows]) and found.ties == (a == b)[1:][rows].sum()
    auc = equal_auc(a, b, human)
    equal, closeness = human[1:] == 0, -np.abs(a - b)[1:]
    assert auc.value == pytest.approx(roc_auc_score(equal, closeness), abs=1e-12) and auc.left_out == 1
    plain = [roc_auc_score(equal[r], closeness[r]) for r in rng.integers(0, 299, (500, 299))]
    np.testing.assert_allclose([auc.low, auc.high], np.quantile(plain, [0.025, 0.975]), atol=0.015)
    assert np.isnan(equal_auc([1], [2], [1]).value)
