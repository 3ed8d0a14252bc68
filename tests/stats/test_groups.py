"""Group scores and abstention against plain loops and scikit-learn, on random confusion tables."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score

from protoscore.errors import ConfigError
from protoscore.stats.abstention import abstention_scores, accuracy, outcomes, risk_coverage
from protoscore.stats.groups import by_group, group_scores
from protoscore.stats.sensitivity import prompt_sensitivity

NAN = float("nan")
ABSTAIN = "unspecified"


def random_rows(seed: int) -> tuple[list, list, list]:
    """Predictions, references and groups with missing classes, lone members, abstentions (sometimes nothing else), gaps."""
    rng = np.random.default_rng(seed)
    n, k, groups = rng.integers(1, 40), rng.integers(1, 6), rng.integers(1, 6)
    classes = list("abcde"[:k]) + ([ABSTAIN] if rng.random() < 0.3 else [])
    truth = rng.choice(classes, n).tolist()
    said = [t if rng.random() < 0.5 else str(rng.choice(list("abcde"))) for t in truth]
    declines = rng.choice([0, 0.3, 1], p=[0.4, 0.5, 0.1])
    said = [ABSTAIN if rng.random() < declines else s for s in said]
    if rng.random() < 0.3:
        said = [None if rng.random() < 0.2 else s for s in said]
    member = [None if rng.random() < 0.05 else f"g{g}" for g in rng.integers(0, groups, n)]
    member[0] = "alone"
    return said, truth, member


def plain_f1(rows: list[tuple], classes: str, everything: set[str]) -> float:
    """Macro-F1 of scored (prediction, reference) rows by the textbook; ``"no class"`` is a miss of whatever was right."""
    if not rows:
        return NAN
    truth = {t for _, t in rows}
    chosen = {"seen": truth | {p for p, _ in rows}, "reference": truth, "all": everything}[classes] - {"no class"}
    scores = []
    for c in chosen:
        hits = sum(p == t == c for p, t in rows)
        precision = hits / max(1, sum(p == c for p, _ in rows))
        recall = hits / max(1, sum(t == c for _, t in rows))
        scores.append(2 * precision * recall / (precision + recall) if hits else 0.0)
    return float(np.mean(scores))


def plain_rows(said: list, truth: list, member: list, abstention: str) -> list[tuple]:
    """(prediction, reference, group) of the rows that count, by the rules in words."""
    rows = []
    for p, t, m in zip(said, truth, member):
        abstained = p == ABSTAIN and t != ABSTAIN
        if p is None or (abstained and abstention == "left_out"):
            continue
        rows.append(("no class" if abstained and abstention == "error" and ABSTAIN not in truth else p, t, m))
    return rows


@pytest.mark.parametrize("part", range(4))
def test_a_thousand_random_confusion_tables(part):
    for seed in range(part * 250, part * 250 + 250):
        said, truth, member = random_rows(seed)
        abstention = ("error", "left_out", "class")[seed % 3]
        classes = ("seen", "reference", "all")[seed // 3 % 3]
        least = 1 + seed % 2 * 3
        found = group_scores(
            said, truth, member, classes=classes, abstain_label=ABSTAIN, abstention=abstention, min_size=least, resamples=2
        )
        rows = plain_rows(said, truth, member, abstention)
        everything = {v for v in said + truth if v is not None}
        if abstention != "class" and ABSTAIN not in truth:
            everything.discard(ABSTAIN)
        f1 = plain_f1([r[:2] for r in rows], classes, everything)
        np.testing.assert_allclose(found.macro_f1.value, f1, atol=1e-12)
        np.testing.assert_allclose(found.accuracy.value, np.mean([p == t for p, t, _ in rows]) if rows else NAN, atol=1e-12)
        of = {g: [r[:2] for r in rows if r[2] == g] for g in {m for m in member if m}}
        by_hand = {g: plain_f1(some, classes, everything) for g, some in of.items()}
        assert set(found.groups) == set(of) and set(found.small) == {g for g, some in of.items() if len(some) < least}
        for g, score in found.groups.items():
            np.testing.assert_allclose(score.macro_f1.value, by_hand[g], atol=1e-12)
            assert score.accuracy.n == len(of[g])
        large = [by_hand[g] for g, some in of.items() if len(some) >= least]
        expected = (np.mean(large), min(large), max(large) - min(large)) if large else (NAN,) * 3
        np.testing.assert_allclose([found.gmf1.value, found.worst.value, found.gap.value], expected, atol=1e-12)
        assert found.worst_group is None if not large else by_hand[found.worst_group] == pytest.approx(min(large))

        correct, declined = outcomes(said, truth, ABSTAIN)
        claims = [p == t for p, t in zip(said, truth) if p is not None and p != ABSTAIN]
        right = sum(p == t for p, t in zip(said, truth))
        scored, n = sum(p is not None for p in said), len(said)
        found = abstention_scores(correct, declined, resamples=2)
        share = lambda a, b: a / b if b else NAN  # noqa: E731
        np.testing.assert_allclose(
            [e.value for e in found],
            [
                share(len(claims), scored), share(right, scored), share(sum(claims), len(claims)),
                right / n, (right + n - scored) / n,
            ],
        )  # fmt: skip
        assert found.coverage.left_out == n - scored and found.selective_accuracy.n == len(claims)


def test_default_is_scikit_learns_macro_f1_within_each_group():
    rng = np.random.default_rng(3)
    truth, member = rng.integers(0, 6, 400), rng.integers(0, 3, 400)
    said = np.where(rng.random(400) < 0.6, truth, rng.integers(0, 6, 400))
    found = group_scores(said, truth, member)
    per_group = [f1_score(truth[member == g], said[member == g], average="macro") for g in range(3)]
    assert found.macro_f1.value == pytest.approx(f1_score(truth, said, average="macro"))
    assert found.gmf1.value == pytest.approx(np.mean(per_group)) and found.worst_group == str(np.argmin(per_group))
    # an independent bootstrap of the whole statistic
    plain = []
    for _ in range(300):
        rows = rng.integers(0, 400, 400)
        t, s, m = truth[rows], said[rows], member[rows]
        plain.append(np.mean([f1_score(t[m == g], s[m == g], average="macro") for g in range(3)]))
    np.testing.assert_allclose([found.gmf1.low, found.gmf1.high], np.quantile(plain, [0.025, 0.975]), atol=0.015)


def test_equalised_odds_by_hand():
    # group x: a 2/2 right, b 1/2 right;  group y: a 1/2 right, b 2/2 right
    said = ["a", "a", "b", "a", "a", "b", "b", "b"]
    truth = ["a", "a", "b", "b", "a", "a", "b", "b"]
    found = group_scores(said, truth, ["x"] * 4 + ["y"] * 4)
    assert found.equalised_odds.value == 0.5 and found.accuracy_gap.value == 0 and found.gap.value == 0
    assert np.isnan(group_scores(["a"], ["a"], [None]).gmf1.value)
    with pytest.raises(ConfigError, match="none of the labels"):
        group_scores(["a"], ["z"], labels=["a"])
    with pytest.raises(ConfigError, match="abstention is"):
        group_scores(["a"], ["a"], abstention="maybe")  # type: ignore[arg-type]
    assert by_group(["x", "y", None, "x"], lambda rows: int(rows.sum())) == {"x": 2, "y": 1}


def test_abstention_is_an_error_or_left_out_by_name():
    correct, declined = outcomes(["a", ABSTAIN, "b", ABSTAIN, None], ["a", "a", "a", ABSTAIN, "a"])
    assert accuracy(correct, declined).value == 2 / 4 and accuracy(correct, declined, "left_out").value == 1 / 2
    right = abstention_scores(*outcomes([ABSTAIN] * 5, [ABSTAIN] * 4 + ["a"]))
    assert right.accuracy.value == 4 / 5 and np.isnan(right.selective_accuracy.value), "nothing was claimed"
    none = abstention_scores(*outcomes([ABSTAIN] * 5, ["a"] * 5))
    assert none.coverage.value == 0 and none.accuracy.value == 0 and np.isnan(none.selective_accuracy.value)
    assert none.coverage.high == pytest.approx(0.5218, abs=1e-3), "five abstentions do not prove that it never answers"


def plain_aurc(confidence, wrong, orders: int = 1, rng=None) -> float:
    total = 0.0
    for _ in range(orders):
        shuffle = rng.permutation(len(wrong)) if rng else np.arange(len(wrong))
        order = shuffle[np.argsort(-np.asarray(confidence)[shuffle], kind="stable")]
        total += np.mean(np.cumsum(np.asarray(wrong)[order]) / np.arange(1, len(wrong) + 1))
    return total / orders


def test_risk_coverage_curve_by_hand_and_by_loop():
    found = risk_coverage([0.9, 0.8, 0.7, 0.6, 0.1, NAN], [1, 1, 0, 1, 0, 1], [0, 0, 0, 0, 1, 0])
    np.testing.assert_allclose(found.coverage, [0.2, 0.4, 0.6, 0.8])
    np.testing.assert_allclose(found.risk, [0, 0, 1 / 3, 1 / 4])
    assert found.aurc.value == pytest.approx((0 + 0 + 1 / 3 + 1 / 4) / 4) and found.aurc.left_out == 1
    assert found.excess_aurc == pytest.approx((1 / 3 + 1 / 4 - 1 / 4) / 4)
    rng = np.random.default_rng(0)
    confidence = rng.random(300)
    wrong = rng.random(300) > confidence
    found = risk_coverage(confidence, ~wrong)
    assert found.aurc.value == pytest.approx(plain_aurc(confidence, wrong), abs=1e-12)
    plain = [plain_aurc(confidence[r], wrong[r], 1, rng) for r in rng.integers(0, 300, (600, 300))]
    np.testing.assert_allclose([found.aurc.low, found.aurc.high], np.quantile(plain, [0.025, 0.975]), atol=0.02)
    tied = confidence.round(1)  # equal confidences: the mean over their orders
    assert risk_coverage(tied, ~wrong).aurc.value == pytest.approx(plain_aurc(tied, wrong, 400, rng), abs=2e-3)
    assert np.isnan(risk_coverage([0.5], [1], [True]).aurc.value)


def test_prompt_sensitivity():
    rng = np.random.default_rng(1)
    base = (rng.random(400) < 0.7).astype(float)
    worse = np.where(rng.random(400) < 0.3, 0, base)
    same = base.copy()
    same[0] = NAN
    found = prompt_sensitivity(np.column_stack([base, worse, same]))
    assert found.accuracy[1].value == worse.mean() and found.accuracy[2].left_out == 1
    assert found.change[1].value == pytest.approx((worse - base).mean()) and found.p[1] < 0.01 and found.p[2] == 1
    assert found.flips.value == pytest.approx((worse != base)[1:].mean()) and found.flips.n == 399
    assert found.spread.value == pytest.approx(max(base.mean(), np.nanmean(same)) - worse.mean(), abs=1e-12)
