"""What was answered beside what is true: shares, claims apart from abstentions, confusion, agreement on the field's own scale."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from protoscore.asking.protocol import load_protocol
from protoscore.errors import DatasetError, UnknownName
from protoscore.judging.stage import judge_items
from protoscore.judging.truth import Decisions
from protoscore.reporting.answers import answer_results
from protoscore.sources.rows import Row
from tests.asking.test_parser import P
from tests.conftest import cli
from tests.judging.test_stage import judge

# What a judge says of one attribute, and what is true of it; "?" is a refusal, "-" no truth.
SAID = ["male", "male", "female", "unspecified", "unspecified", "alien", "?", "female", "?"]
TRUE = ["male", "Man ", "male", "female", "unspecified", "male", "female", "-", "-"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("truth")
    items = [Row(f"p{n}", (), {"said": s, "true": None if t == "-" else t}) for n, (s, t) in enumerate(zip(SAID, TRUE))]
    good = {"race": "unspecified", "score": 4, "visible": True, "shown": ["hat"]}
    body = f"""said = request.prompt.split("|")[1]
    return "I cannot help with that." if said == "?" else json.dumps({good!r} | {{"gender": said}})"""
    judge_items(replace(P, prompt="|{{ item.said }}|"), items, judge(folder, body), folder / "run")
    return folder / "run"


def test_claims_abstentions_and_what_has_no_answer_are_kept_apart_by_hand(run):
    """Known truths: 7. Answered: 6 (one unmapped, one refused are not). Claims: 3, right 2. Abstentions: 2, right 1."""
    (found,) = answer_results(run, truth={"gender": "true"}).estimates["scripted:rule.py"].values()
    values = {name.partition(": ")[2]: e for name, e in found.items() if name.startswith("gender vs true")}
    counted = {name: (round(e.value * e.n), e.n, e.left_out) for name, e in values.items()}
    assert counted == {
        "claimed": (3, 5, 4), "right": (3, 5, 4), "right of claims": (2, 3, 6), "right at worst": (3, 7, 2),
        "right at best": (5, 7, 2),
    }  # fmt: skip
    assert all(e.low <= e.value <= e.high for e in values.values())
    shares = {name: (e.value * 7, e.n) for name, e in found.items() if name.startswith("gender: ")}
    assert shares == {
        "gender: male": (pytest.approx(2), 7), "gender: female": (pytest.approx(2), 7),
        "gender: unspecified": (pytest.approx(2), 7), "gender: (unmapped)": (pytest.approx(1), 7),
    }  # fmt: skip
    assert found["shown: hat"].value == 1 and found["score (mean)"].value == 4 and found["usable replies"].n == 9


def test_the_confusion_holds_every_item_whose_truth_is_known(run):
    table = Decisions(run).against("gender", "true").confusion()
    cells = {(t, g): n for t, row in zip(table.truth, table.counts) for g, n in zip(table.given, row) if n}
    assert cells == {
        ("male", "male"): 2, ("male", "female"): 1, ("male", "(unmapped)"): 1, ("female", "unspecified"): 1,
        ("female", "(refused)"): 1, ("unspecified", "unspecified"): 1,
    }  # fmt: skip


def test_a_field_or_column_that_is_not_there_is_one_line(run):
    for truth, said in (({"gendr": "true"}, "gender"), ({"gender": "tru"}, "true")):
        with pytest.raises(UnknownName, match=said):
            answer_results(run, truth=truth)
    with pytest.raises(DatasetError, match="no label of 'visible'"):
        answer_results(run, truth={"visible": "true"})


def test_grades_agree_on_their_own_scale_and_intervals_follow_clusters(tmp_path):
    draw = random.Random(5)
    rows = [(draw.choice([1, 2, 5]), draw.choice([1, 2, 5])) for _ in range(60)]
    items = [Row(f"{n}", (), {"text": f"No. {n} says {a}.", "grade": float(b), "of": n // 6}) for n, (a, b) in enumerate(rows)]
    body = r"""return json.dumps({"score": int(re.search(r"says (\d)", request.prompt)[1])})"""
    judge_items(load_protocol("fairjudge/alignment"), items, judge(tmp_path, body), tmp_path / "run")
    one, other = (answer_results(tmp_path / "run", truth={"score": "grade"}, cluster=c) for c in ("item", "of"))
    found = one.estimates["scripted:rule.py"]["all"]
    kappa = found["score vs grade: kappa, quadratic weights"]
    assert kappa.value == pytest.approx(cohen_kappa_score(*zip(*rows), labels=range(1, 6), weights="quadratic"))
    right = np.mean([a == b for a, b in rows])
    assert found["score vs grade: right"].value == found["score vs grade: right of claims"].value == pytest.approx(right)
    assert found["score (mean)"].value == pytest.approx(np.mean([a for a, _ in rows]))
    clustered = other.estimates["scripted:rule.py"]["all"]["score vs grade: right"]
    assert clustered.value == pytest.approx(right) and clustered[1:3] != found["score vs grade: right"][1:3]


def test_audit_and_report_say_how_much_is_right(run):
    shown = cli("audit", str(run), "--truth", "gender=true", "--examples", "0")
    assert shown.returncode == 0 and "gender vs true: right of claims" in shown.stdout and "(unmapped)" in shown.stdout
    told = cli("report", str(run), "--truth", "gender=true")
    assert told.returncode == 0, told.stderr
    page, results = (run / "report.html").read_text(), json.loads((run / "results.json").read_text())
    assert "<h2>gender vs true</h2>" in page and "right of claims" in page
    assert results["estimates"]["scripted:rule.py"]["all"]["gender vs true: right"]["n"] == 5
    wrong = cli("report", str(run), "--truth", "gender")
    assert wrong.returncode == 2 and len(wrong.stderr.strip().splitlines()) == 1
