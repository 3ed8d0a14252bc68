"""What sets are worth and what the tests between models find, against SciPy, hand-worked cases and simulated raters."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import pdist

from protoscore.benchmarks.diversity.comparison import compare_models, contradictions, kendall, outcomes_of
from protoscore.benchmarks.diversity.measured import MeasuredModel
from protoscore.benchmarks.diversity.pairs import ConceptPair, read_pairs
from protoscore.benchmarks.diversity.set_scores import Drawing, mean_distance, score_sets
from protoscore.errors import DatasetError
from protoscore.generators.simulated import distribution
from protoscore.stats.diversity import compare, vendi
from protoscore.stats.sign_power import least_significant, sign_power, subset_study

VALUES = ("red", "green", "blue", "black")
PAIRS = [ConceptPair(f"p{n}", f"thing {n}", "color", "nature" if n % 2 else "objects", VALUES, "An image.") for n in range(12)]


def measured(name, per_pair, values=None, vectors=None, usable=None):
    """A model with so many pictures of each pair."""
    n = per_pair * len(PAIRS)
    rng = np.random.default_rng(len(name))
    held = {"e": rng.normal(size=(n, 5)).astype(np.float32)} if vectors is None else {"e": vectors}
    pairs = np.repeat([pair.id for pair in PAIRS], per_pair)
    fine = np.ones(n, bool) if usable is None else usable
    return MeasuredModel(name, np.arange(n).astype(str), pairs, held, values, fine, {})


def drawn(values, *shape):
    return np.array([*values], object)[np.random.default_rng(1).integers(0, len(values), shape)].ravel()


def test_power_and_the_least_significant_win_are_those_of_the_paper_s_design():
    assert least_significant(86) == 53 and least_significant(5) is None and least_significant(6) == 6
    assert [round(sign_power(n, 0.65), 2) for n in (86, 74)] == [0.78, 0.74]
    assert [round(sign_power(n, 0.75), 2) for n in (40, 24)] == [0.90, 0.61]
    for n in (1, 5, 6, 17, 40, 59):
        least = least_significant(n)
        called = [k for k in range(n + 1) if stats.binomtest(k, n).pvalue <= 0.05 and 2 * k > n]
        assert least == (min(called) if called else None)
        assert sign_power(n, 0.6) == pytest.approx(sum(stats.binom.pmf(k, n, 0.6) for k in called))


def test_of_2000_comparisons_of_equal_models_no_more_are_called_than_the_level_says():
    votes = np.random.default_rng(5).choice([1.0, 0.0, -1.0], p=[0.4, 0.2, 0.4], size=(2000, 86))
    kinds, which = np.unique(np.sort(votes, 1), axis=0, return_inverse=True)  # only how many there are of each matters
    called = np.array([compare(row).p <= 0.05 for row in kinds])
    assert called[which.ravel()].mean() <= 0.06


def test_the_rate_of_raters_of_known_error_lies_within_its_interval():
    wins = np.random.default_rng(6).binomial(86, 0.8, 1000)
    rates = {int(k): compare(np.repeat([1.0, -1.0], [k, 86 - k])).rate for k in set(wins)}
    assert np.mean([rates[int(k)].low <= 0.8 <= rates[int(k)].high for k in wins]) >= 0.95


def test_ties_all_ties_and_nothing_at_all():
    assert compare([0, 0, 0]).p == 1 and compare([]).p == 1 and math.isnan(compare([np.nan, np.nan]).rate.value)
    found = compare([1, 1, 1, 1, 1, 1, 0, np.nan])
    assert (found.wins, found.losses, found.ties, found.p) == (6, 0, 1, 2 / 64)


def test_scores_of_sets_are_those_of_their_pictures():
    values = drawn([*VALUES, None], 12 * 20)
    model = measured("a", 20, values)
    found = score_sets([model, measured("bb", 20, values)], PAIRS, Drawing(8, 2, seed=3))
    for p in range(len(PAIRS)):
        for s in range(2):
            chosen = found.members[0, p, s]
            assert set(model.pairs[chosen]) == {PAIRS[p].id} and len(set(chosen)) == 8
            assert found.scores["vendi_e"][0, p, s] == pytest.approx(vendi(model.vectors["e"][chosen]))
            assert found.scores["distance_e"][0, p, s] == pytest.approx(
                pdist(model.vectors["e"][chosen], "cosine").mean(), rel=1e-5
            )
            told = [value for value in values[chosen] if value is not None]
            counts = [told.count(value) for value in dict.fromkeys(told)]
            assert found.scores["judged_entropy"][0, p, s] == pytest.approx(math.exp(stats.entropy(counts)))
            assert found.scores["judged_coverage"][0, p, s] == len(counts) / 4
            assert found.scores["judged_count"][0, p, s] == len(counts)
        assert not set(found.members[0, p, 0]) & set(found.members[0, p, 1])


def test_a_set_of_which_the_judge_told_too_little_has_no_judged_score():
    found = score_sets([measured("a", 8, np.full(96, None)), measured("b", 8, np.full(96, "red"))], PAIRS, Drawing(8, 1))
    assert np.isnan(found.scores["judged_count"][0]).all() and (found.scores["judged_count"][1] == 1).all()


def test_pictures_that_do_not_count_are_in_no_set_and_a_concept_without_a_set_decides_nothing():
    usable = np.ones(96, bool)
    usable[:1] = False  # 7 of the first concept remain
    found = score_sets([measured("a", 8, usable=usable), measured("b", 8)], PAIRS, Drawing(8, 1))
    assert found.without == {"a": 1, "b": 0} and np.isnan(found.scores["vendi_e"][0, 0]).all()
    outcome = outcomes_of(found.scores["vendi_e"], found.models)["a", "b"]
    assert np.isnan(outcome[0]) and np.isfinite(outcome[1:]).all()
    with pytest.raises(DatasetError, match=r"no concept has 8 usable pictures of two models.*at most 7"):
        score_sets([measured("a", 7), measured("b", 7)], PAIRS, Drawing(8, 1))
    other = measured("b", 8, vectors=np.ones((96, 3), np.float32))
    with pytest.raises(DatasetError, match="3 and 5 numbers"):
        score_sets([measured("a", 8), other], PAIRS, Drawing(8, 1))


def test_pictures_that_are_all_the_same_are_no_error_and_a_tie():
    same = np.ones((96, 5), np.float32)
    found = score_sets([measured("a", 8, vectors=same), measured("b", 8, vectors=same)], PAIRS, Drawing(8, 1))
    assert found.scores["vendi_e"] == pytest.approx(np.ones((2, 12, 1)))
    assert (outcomes_of(found.scores["vendi_e"], found.models)["a", "b"] == 0).all()
    assert mean_distance(same[None, :8]) == pytest.approx([0.0])


def test_outcomes_by_hand():
    scores = np.array(
        [[[2.0, 2.0], [1.0, 3.0], [1.0, np.nan], [np.nan] * 2], [[1.0, 2.0], [2.0, 2.0], [1.0 + 1e-13, 5], [1.0, 1.0]]]
    )
    # won and tied: no single mode, so equal; lost and won: equal; tied by rounding; nothing
    assert outcomes_of(scores, ["a", "b"])["a", "b"][:3].tolist() == [0, 0, 0] and np.isnan(
        outcomes_of(scores, ["a", "b"])["a", "b"][3]
    )


def test_models_are_put_in_order_and_two_equal_ones_are_not_told_apart():
    rng = np.random.default_rng(0)
    truth = {"a": 3, "b": 2, "c": 2, "d": 1}
    outcomes = {}
    for x in truth:
        for y in list(truth)[list(truth).index(x) + 1 :]:
            better = np.sign(truth[x] - truth[y])
            right = np.where(rng.random(400) < 0.8, better, -better)
            outcomes[x, y] = right if better else rng.choice([1.0, -1.0], 400)
    found = compare_models("people", outcomes, list(truth), ["g"] * 400)
    assert found.models[0] == "a" and found.models[-1] == "d" and found.never_worse() == ["a"]
    for (x, y), test in found.tests.items():
        assert (found.direction(x, y) == 1) == (truth[x] > truth[y])
        exact = stats.binomtest(test.test.wins, 400)
        assert test.test.p == pytest.approx(exact.pvalue)
        assert test.test.rate.low == pytest.approx(exact.proportion_ci(method="exact").low)
    assert found.direction("b", "c") == 0 and found.direction("d", "a") == -1
    assert kendall(found, found) == pytest.approx(1)
    rate = found.groups["a", "g"].value
    assert rate == pytest.approx(np.mean([(outcomes[p] + 1) / 2 for p in outcomes if p[0] == "a"]))


def test_fewer_concepts_find_less_and_do_not_turn_it_round():
    rng = np.random.default_rng(2)
    outcomes = {
        ("a", "b"): rng.choice([1.0, -1.0], p=[0.7, 0.3], size=86),
        ("a", "c"): np.ones(86),
        ("b", "c"): rng.choice([1.0, -1.0], 86),
    }
    whole, half, few = subset_study(outcomes, [86, 43, 10, 200], draws=300)
    assert whole.kept == 1 and whole.reversals == 0 and (whole.concepts, few.concepts) == (86, 10)
    assert whole.significant >= half.significant >= few.significant >= 1  # a beats c always
    by_hand = sum(compare(found).p <= 0.05 for found in outcomes.values())
    assert whole.significant == by_hand


def test_a_measure_that_is_misled_is_named():
    rng = np.random.default_rng(4)
    judged = compare_models("judged_entropy", {("place", "attribute"): -np.ones(30)}, ["place", "attribute"], ["g"] * 30)
    wrong = compare_models("vendi_e", {("place", "attribute"): np.ones(30)}, ["place", "attribute"], ["g"] * 30)
    unsure = compare_models(
        "distance_e", {("place", "attribute"): rng.choice([1.0, -1.0], 30)}, ["place", "attribute"], ["g"] * 30
    )
    (found,) = contradictions([judged, wrong, unsure])
    assert (found.measure, found.preferred, found.over) == ("vendi_e", "place", "attribute")


@pytest.mark.parametrize("effective", [1, 1.2, 2, 3, 5, 8])
def test_simulated_models_draw_from_what_they_state(effective):
    for values in (5, 8):
        p = distribution(values, effective)
        assert math.exp(stats.entropy(p)) == pytest.approx(min(values, effective)) and p.sum() == pytest.approx(1)
        assert (np.diff(p) <= 1e-12).all()


def test_the_lists_are_what_they_say():
    photos, scenes = read_pairs("photos"), read_pairs("scenes")
    assert len(photos) == 86 and len(scenes) == 40 and len({p.id for p in photos}) == 86 and len({p.id for p in scenes}) == 40
    assert {p.group for p in photos} == {"food and drink", "nature", "human-made objects"}
    named = {(p.concept, p.attribute) for p in photos}
    published = (
        ("apple", "color"),
        ("tree", "species"),
        ("coffee cup", "material"),
        ("chair", "style"),
        ("book", "thickness"),
        ("bridge", "shape"),
    )
    assert named >= set(published)
    kinds = [p.attribute for p in scenes]
    assert {kind: kinds.count(kind) for kind in kinds} == {"color": 13, "place": 12, "kind": 8, "number": 7}
    assert all(p.spec for p in scenes) and not any(p.spec for p in photos)
    assert not any(word in f" {p.concept} " for p in photos for word in (" man ", " woman ", " person ", " child "))
