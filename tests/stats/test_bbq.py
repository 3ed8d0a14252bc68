"""BBQ's scores against the released data, both routes to the target, and hand-worked cases."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hmean

from protoscore.errors import ConfigError
from protoscore.stats.bbq import answer_roles, bias_scores, criteria_scores, harmonic_mean, percent

NAN = float("nan")
BBQ = Path(__file__).parents[3] / "shared" / "data" / "bbq" / "data"
ALL_CORRECT = {
    "Age": 0, "Nationality": 0, "Religion": 0, "Sexual_orientation": 0,
    "Disability_status": 2 * 394 / 778 - 1, "Physical_appearance": 2 * 426 / 788 - 1,
}  # fmt: skip


def read(category: str) -> dict[str, np.ndarray]:
    rows = [json.loads(line) for line in (BBQ / f"{category}.jsonl").read_text().splitlines()]
    roles = []
    for row in rows:
        answers = [row["answer_info"][f"ans{i}"] for i in range(3)]
        roles.append(answer_roles(answers, row["additional_metadata"]["stereotyped_groups"]))
    columns = {key: np.array([row[name] for row in rows]) for key, name in
               (("labels", "label"), ("polarity", "question_polarity"), ("condition", "context_condition"))}  # fmt: skip
    return columns | {"unknown": np.array([u for u, _ in roles]), "targets": np.array([t for _, t in roles], float)}


@pytest.mark.skipif(not BBQ.is_dir(), reason="BBQ's own files are not beside the repository")
@pytest.mark.parametrize("category, expected", ALL_CORRECT.items())
def test_an_all_correct_model_on_the_released_files(category, expected):
    rows = read(category)
    found = bias_scores(rows["labels"], **rows, resamples=200)
    assert np.isfinite(rows["targets"]).all(), "an item without a single target"
    assert found.s_dis.value == pytest.approx(expected, abs=1e-12) and found.s_dis.n == len(rows["labels"]) // 2
    assert np.isnan(found.s_amb.value) and found.s_amb.n == 0
    assert found.accuracy_dis.value == found.accuracy_amb.value == 1


@pytest.mark.skipif(not BBQ.is_dir(), reason="BBQ's own files are not beside the repository")
def test_both_routes_to_the_target_give_the_same_score_and_mixing_them_does_not():
    rows = read("Age")
    rng = np.random.default_rng(0)
    predictions = rng.integers(0, 3, len(rows["labels"])).astype(float)
    other = 3 - rows["unknown"] - rows["targets"]
    leaning = np.where(rows["polarity"] == "neg", rows["targets"], other)  # follows the stereotype
    predictions = np.where(rng.random(len(predictions)) < 0.5, leaning, predictions)
    group = bias_scores(predictions, **rows, resamples=50)
    swapped = rows | {"targets": np.where(rows["polarity"] == "neg", rows["targets"], other)}
    official = bias_scores(predictions, **swapped, target="target_loc", resamples=50)
    assert group == official and group.s_dis.value > 0.5 and group.s_amb.value > 0.3
    assert abs(bias_scores(predictions, **rows, target="target_loc", resamples=50).s_dis.value) < 0.1


def test_hand_worked_bias():
    # target 0, other 1, unknown 2; every second row is a non-negative question
    rows = dict(unknown=[2] * 6, targets=[0] * 6, polarity=["neg", "nonneg"] * 3, condition=["ambig"] * 4 + ["disambig"] * 2)
    found = bias_scores([0, 1, 2, 0, 0, NAN], labels=[2, 2, 2, 2, 0, 1], **rows)
    # ambiguous: persons named 3 (0 in neg: biased, 1 in nonneg: biased, 0 in nonneg: not), right 1 of 4
    assert found.s_amb.value == pytest.approx((1 - 1 / 4) * (2 * 2 / 3 - 1)) and found.s_amb.n == 3
    assert found.s_dis.value == 1 and found.s_dis.n == 1 and found.accuracy_dis.left_out == 1
    undefined = bias_scores([2, 2, 2, 2, 2, 2], labels=[2, 2, 2, 2, 0, 1], **rows)
    assert np.isnan(undefined.s_amb.value) and np.isnan(undefined.s_dis.value) and undefined.accuracy_dis.value == 0
    with pytest.raises(ConfigError, match="polarity must be 'neg' or 'nonneg', not 'pos'"):
        bias_scores([0], [0], [2], [0], ["pos"], ["ambig"])
    assert answer_roles([["x", "old"], ["y", "nonOld"], ["z", "unknown"]], ["Old"]) == (2, 0)
    assert answer_roles([["x", "unknown"], ["y", "F"], ["F", "z"]], ["F"]) == (0, None)


@given(st.lists(st.floats(0.01, 1e3), min_size=1, max_size=6))
def test_harmonic_mean_is_scipys(values):
    assert harmonic_mean(values) == pytest.approx(hmean(values))


def test_maps_and_zero_rules_are_named():
    np.testing.assert_allclose(percent([1, 3, 5, NAN]), [0, 50, 100, NAN])
    np.testing.assert_allclose(percent([1, 3, 5], "fifths"), [20, 60, 100])
    with pytest.raises(ConfigError, match="there is 6"):
        percent([6])
    table = np.array([[0.0, 50.0], [100.0, NAN]])
    np.testing.assert_allclose(harmonic_mean(table), [0, 100])
    np.testing.assert_allclose(harmonic_mean(table, zero="undefined"), [NAN, 100])
    np.testing.assert_allclose(harmonic_mean(table, zero="left_out"), [50, 100])
    np.testing.assert_allclose(harmonic_mean(table, axis=0), [0, 50])


def test_criteria_scores_by_hand():
    scores = [[5, 5, 5, 1, 5], [5, 5, 5, 3, 5], [3, 3, 3, 3, NAN]]
    found = criteria_scores(scores, ["Age", "Age", "SES"])
    # Age: criteria 100 100 100 25 100 -> 5 / (4/100 + 1/25) = 62.5; SES: 50 of four; overall 2 / (1/62.5 + 1/50)
    assert found.categories["Age"].value == pytest.approx(62.5) and found.categories["SES"].value == pytest.approx(50)
    assert found.overall.value == pytest.approx(2 / (1 / 62.5 + 1 / 50)) and found.overall[3:5] == (14, 1)
    assert found.criteria["ambiguity"].value == pytest.approx((0 + 50 + 50) / 3) and found.criteria["faithfulness"].n == 2
    plain = criteria_scores(scores, ["Age", "Age", "SES"], within="mean", across="mean")
    assert plain.overall.value == pytest.approx(((100 * 4 + 25) / 5 + 50) / 2)
    worst = criteria_scores(scores, ["Age", "Age", "SES"], unscored="worst")
    assert worst.categories["SES"].value == 0 and worst.overall.left_out == 0 and worst.overall.value == 0
