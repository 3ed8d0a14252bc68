"""FairJudge's tables: hand-worked counts, planted errors against scikit-learn, swapped pictures, people, bad input."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.metrics import cohen_kappa_score, f1_score

from protoscore import benchmarks
from protoscore.asking.protocol import load_protocol
from protoscore.errors import ConfigError, DatasetError, UnknownName
from protoscore.judging.stage import judge_items
from protoscore.sources.rows import Row
from protoscore.vlms.scripted import create
from tests.conftest import cli

OTHERS = {"race": "unspecified", "age": "unspecified", "religion": "unspecified", "disability": "unspecified"}


def picture(number: int) -> bytes:
    """A picture from which a script can read its number."""
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), (number % 256, number // 256, 0)).save(buffer, "PNG")
    return buffer.getvalue()


def judged(folder: Path, replies: list, columns: dict[str, list], name: str = "run") -> Path:
    """A run of ``fairjudge/attributes`` in which picture n gets the reply n (an object, or a text)."""
    folder.mkdir(exist_ok=True)
    texts = [reply if isinstance(reply, str) else json.dumps(OTHERS | reply) for reply in replies]
    (folder / f"{name}.json").write_text(json.dumps(texts))
    (folder / f"{name}.py").write_text(
        f"import json\nsaid = json.load(open({str(folder / f'{name}.json')!r}))\n"
        "def reply(request):\n    red, green, _ = request.images[0].getpixel((0, 0))\n    return said[red + 256 * green]\n"
    )
    items = [
        Row(f"{n:04}", (picture(n),), {column: values[n] for column, values in columns.items()}) for n in range(len(replies))
    ]
    judge_items(load_protocol("fairjudge/attributes"), items, create(str(folder / f"{name}.py")), folder / name)
    return folder / name


def results(run: Path, **options):
    found = benchmarks.of_run(run, **options)
    return found.evaluate(run)


def test_hand_worked_counts(tmp_path):
    """Truth: 4 male, 2 female, 2 where nothing can be told. Said: 2 right, 1 wrong, 1 withheld; 1 right, 1 outside the set; 1
    withheld (right), 1 claimed. One reply is no answer."""
    said = ["male", "male", "female", "unspecified", "female", "cyborg", "unspecified", "male"]
    replies = [{"gender": label} for label in said] + ["no idea what you mean"]
    truth = ["male"] * 4 + ["female"] * 2 + ["unspecified"] * 2 + ["male"]
    found = results(judged(tmp_path / "f", replies, {"depicted_gender": truth}))
    gender = found.estimates["scripted:run.py"]["gender"]
    assert (gender["accuracy"].value, gender["accuracy"].n, gender["accuracy"].left_out) == (pytest.approx(4 / 7), 7, 2)
    assert gender["accuracy_worst_case"].value == pytest.approx(4 / 9)
    assert gender["claim_coverage"].value == pytest.approx(5 / 7) and gender["claim_precision"].value == pytest.approx(3 / 5)
    assert gender["unsupported_claims"].value == pytest.approx(1 / 2) and gender["over_abstention"].value == pytest.approx(
        1 / 5
    )
    assert gender["abstention_precision"].value == pytest.approx(1 / 2)
    assert gender["abstention_recall"].value == pytest.approx(1 / 2)
    floors = found.details["floors"]["gender"]
    assert floors["always unspecified"]["accuracy"].value == pytest.approx(2 / 9)
    assert floors["best possible with these labels"]["accuracy"].value == 1
    assert found.details["unmapped"]["gender"] == {"scripted:run.py": {"cyborg": 1}}
    assert found.details["states_by_field"]["gender"]["scripted:run.py"]["invalid"] == 1
    assert {"race", "age"} <= set(found.details["truth_not_stated"])  # no column states them, and the page says so


def test_a_judge_of_planted_error_is_recovered_and_gmf1_is_that_of_scikit_learn(tmp_path):
    rng = np.random.default_rng(3)
    labels, n = ["male", "female", "unspecified"], 500
    truth = rng.choice(labels, n, p=[0.5, 0.35, 0.15])
    age = rng.choice(["child", "young adult", "elderly"], n)
    wrong = rng.random(n) < np.where(age == "elderly", 0.3, 0.1)
    said = np.where(wrong, rng.choice(labels, n), truth)
    run = judged(
        tmp_path / "f", [{"gender": s, "age": a} for s, a in zip(said.tolist(), age.tolist(), strict=True)],
        {"depicted_gender": truth.tolist(), "depicted_age": age.tolist()},
    )  # fmt: skip
    gender = results(run).estimates["scripted:run.py"]["gender"]
    planted = 1 - (0.3 * (age == "elderly").mean() + 0.1 * (age != "elderly").mean()) * 2 / 3
    assert gender["accuracy"].low <= planted <= gender["accuracy"].high
    by_hand = np.mean([
        f1_score(truth[age == group], said[age == group], average="macro", zero_division=0)
        for group in np.unique(age)
    ])  # fmt: skip
    assert gender["gmf1_by_age_seen"].value == pytest.approx(by_hand)
    right = said == truth
    gap = max(right[age == g].mean() for g in np.unique(age)) - min(right[age == g].mean() for g in np.unique(age))
    assert gender["accuracy_gap_by_age"].value == pytest.approx(gap) and gap > 0.05


def test_two_judges_people_and_swapped_pictures(tmp_path):
    """Ten sets of a base and two variants: in the first the gender is swapped, in the second the age."""
    columns: dict[str, list] = {"depicted_gender": [], "depicted_age": [], "set": [], "swapped": []}
    for number in range(10):
        for gender, age, swapped in [("male", "child", ""), ("female", "child", "gender"), ("male", "elderly", "age")]:
            for name, value in zip(columns, (gender, age, f"s{number}", swapped), strict=True):
                columns[name].append(value)
    good = [{"gender": g, "age": a} for g, a in zip(columns["depicted_gender"], columns["depicted_age"], strict=True)]
    blind = [{"gender": "male", "age": a} for a in columns["depicted_age"]]  # knows the age, and says "male" whatever is shown
    first, second = judged(tmp_path / "f", good, columns), judged(tmp_path / "f", blind, columns, "blind")
    human = tmp_path / "human.csv"
    votes = [g if n % 5 else "unspecified" for n, g in enumerate(columns["depicted_gender"])]
    with human.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["item", "gender"])
        rows.writerows([f"{n:04}", vote] for n, vote in enumerate(votes))
    found = results(first, beside=str(second), human=str(human))
    one, other = (found.estimates[name]["gender"] for name in ("scripted:run.py", "scripted:blind.py"))
    assert one["accuracy"].value == 1 and other["accuracy"].value == pytest.approx(2 / 3)
    assert one["swap_moves"].value == 1 and other["swap_moves"].value == 0
    assert one["swap_stays"].value == other["swap_stays"].value == 1
    kappa = cohen_kappa_score(votes, columns["depicted_gender"])
    assert one["kappa_with_people"].value == pytest.approx(kappa)


def test_from_the_command_line_with_one_line_for_what_cannot_be(tmp_path):
    replies = [{"gender": g} for g in ("male", "female", "male")]
    run = judged(tmp_path / "f", replies, {"depicted_gender": ["male", "female", "female"], "note": ["x", "y", "z"]})
    shown = cli("report", run)
    assert shown.returncode == 0 and "always unspecified" in shown.stdout, shown.stderr
    page = (run / "report.html").read_text()
    assert "must not be inferred" in page and "best possible with these labels" in page
    for options, message in (
        (["-o", "labels=nope"], "nope"), (["-o", "against=nope"], "depicted"), (["--truth", "gender=note"], "note"),
        (["-o", "human=nowhere.csv"], "nowhere.csv"), (["-o", "cluster=nope"], "nope"), (["-o", "min_group=0"], "min_group"),
    ):  # fmt: skip
        refused = cli("report", run, *options)
        assert refused.returncode == 2 and refused.stderr.count("\n") == 1 and message in refused.stderr, refused.stderr
    other = judged(tmp_path / "g", replies[:2], {"depicted_gender": ["male", "female"]})
    with pytest.raises(DatasetError, match="other items"):
        results(run, beside=str(other))
    with pytest.raises((UnknownName, ConfigError)):
        results(run, groups="height")
