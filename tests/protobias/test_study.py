"""The study of many scorers: Table 3 with people, real differences, leaderboard rows and a page that holds every number."""

from __future__ import annotations

import csv
import json
import re
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from sklearn.metrics import cohen_kappa_score

from protoscore.benchmarks import report
from protoscore.benchmarks.protobias import ProtoBias
from protoscore.benchmarks.protobias.annotations import read_human
from protoscore.benchmarks.protobias.schema import DOMAINS
from protoscore.benchmarks.protobias.tables import CELLS, read_scores
from protoscore.benchmarks.protobias.wording import reading
from protoscore.catalog import names
from protoscore.errors import DatasetError, UnknownName
from protoscore.folder import write_manifest
from protoscore.reporting.scorer_cards import all_facts, print_card, print_list
from protoscore.stats.pairwise import element_sensitivity, five_quantities

ROWS, KINDS = (
    240,
    {"reads": (3.0, 0.0), "typical": (0.3, 1.5), "half": (0.9, 0.4), "other half": (0.9, 0.4), "constant": (0, 0)},
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run of five scorers over 240 rows of 80 triplets, with failures, and people's choices."""
    folder = tmp_path_factory.mktemp("study")
    rng = np.random.default_rng(7)
    triplets = [f"t{i // 3:03d}" for i in range(ROWS)]
    tables = []
    for name, (truth, typical) in KINDS.items():
        scores = rng.normal(0, 1, (ROWS, 4)) + truth * np.array([1, 0, 1, 0]) + typical * np.array([0, 1, 1, 0])
        scores = np.full_like(scores, 0.5) if name == "constant" else scores
        status = np.where((rng.random((ROWS, 4)) < 0.05) & (name == "half"), "invalid", "ok")
        columns = {
            "pair": np.repeat([f"{t}-{i % 3}" for i, t in enumerate(triplets)], 4), "triplet": np.repeat(triplets, 4),
            "cell": CELLS * ROWS, "domain": np.repeat([DOMAINS[i // 3 % 3] for i in range(ROWS)], 4),
            "knob": np.repeat([["count", "spatial"][i // 9 % 2] for i in range(ROWS)], 4), "scorer": [name] * 4 * ROWS,
            "status": status.ravel(), "reason": [""] * 4 * ROWS,
            "score": [v if s == "ok" else None for v, s in zip(scores.ravel().tolist(), status.ravel(), strict=True)],
        }  # fmt: skip
        tables.append(pa.table(columns))
    pq.write_table(pa.concat_tables(tables), folder / "scores.parquet")
    facts = {"parameters": {}, "question": "?", "licence": "MIT", "known_bias": "<none>", "hub_id": None}
    scorers = [facts | {"name": name, "revision": "r1"} for name in KINDS]
    write_manifest(folder, "score", {"source": "bench", "split": "test", "scorers": scorers}, scenes=True)
    (folder / "timing.json").write_text(json.dumps({"scoring_seconds": dict.fromkeys(KINDS, 48.0)}))
    with (folder / "people.csv").open("w") as handle:
        print("triplet,rendition,annotator,choice", file=handle)
        for i in range(150):
            for who in range(3):
                print(
                    triplets[i],
                    i % 3,
                    f"ann{who}",
                    rng.choice(["correct", "adversarial", "tie"], p=[0.7, 0.2, 0.1]),
                    sep=",",
                    file=handle,
                )
    report(folder, ProtoBias(human=str(folder / "people.csv"), resamples=400))
    return folder


def body(run):
    return json.loads((run / "results.json").read_text())


def test_kappa_with_the_majority_equals_a_plain_count(run):
    votes: dict = {}
    for row in csv.DictReader((run / "people.csv").open()):
        votes.setdefault(f"{row['triplet']}-{row['rendition']}", []).append(row["choice"])
    majority = {i: max(set(v), key=v.count) if max(map(v.count, v)) > 1 else "tie" for i, v in votes.items()}
    table = next(t for t in read_scores(run) if t.scorer == "half")
    nc, pv = table.scores[:, CELLS.index("non_correct")], table.scores[:, CELLS.index("proto_violated")]
    pairs = [(majority[i], a > b) for i, a, b in zip(table.ids, nc, pv, strict=True) if i in majority and np.isfinite(a + b)]
    metric = cohen_kappa_score(*zip(*[(m == "correct", r) for m, r in pairs if m != "tie"], strict=True))
    found = body(run)["details"]["table3"]
    assert found["half"]["all"]["kappa"]["value"] == pytest.approx(metric)
    assert found["half"]["all"]["accuracy"]["value"] == pytest.approx(np.mean([r for _, r in pairs]))
    assert found["people"]["all"]["accuracy"]["value"] == pytest.approx(np.mean([m == "correct" for m in majority.values()]))
    ranks = np.array([[("adversarial", "tie", "correct").index(c) for c in v] for v in votes.values()])
    among = np.mean([cohen_kappa_score(ranks[:, a], ranks[:, b], weights="quadratic") for a, b in ((0, 1), (0, 2), (1, 2))])
    assert found["people"]["all"]["kappa"]["value"] == pytest.approx(among)
    read = read_human(run / "people.csv", table.ids)
    wrong = read.choices("wrong")
    assert np.isnan(read.choices()).sum() > np.isnan(wrong).sum() == ROWS - 150


def test_differences_are_found_where_they_are_and_only_there(run):
    found = {(p["first"], p["second"]): p for p in body(run)["details"]["accuracy_pairs"]}
    assert len(found) == 10
    assert found["reads", "typical"]["p_holm"] < 0.05 and found["reads", "typical"]["difference"]["low"] > 0
    assert found["half", "other half"]["p_holm"] > 0.05
    assert found["reads", "constant"]["kappa"]["value"] in (None, 0.0)


def test_quantities_match_one_scorer_alone_and_people_change_none_of_them(run, tmp_path):
    everything = body(run)["estimates"]
    for table in read_scores(run):
        alone = five_quantities(*table.scores.T, clusters=table.triplets, resamples=400)
        assert everything[table.scorer]["all"]["incongruent"] == alone.incongruent._asdict()
        assert everything[table.scorer]["all"]["gap"] == alone.gap._asdict()


def test_a_leaderboard_row_says_what_was_measured_on_what(run):
    rows = [json.loads(line) for line in (run / "leaderboard.jsonl").read_text().splitlines()]
    assert [row["scorer"] for row in rows] == list(KINDS) and pq.read_table(run / "leaderboard.parquet").to_pylist() == rows
    row = rows[0]
    q = body(run)["estimates"]["reads"]["all"]
    assert (row["value"], row["incongruent_low"], row["incongruent_n"]) == (
        q["incongruent"]["value"],
        q["incongruent"]["low"],
        240,
    )
    assert (row["dataset_id"], row["dataset_task_id"], row["scenes"], row["seconds"]) == ("bench", "incongruent", True, 48.0)
    assert (
        row["verdict"] == reading(five_quantities(*read_scores(run)[0].scores.T, clusters=read_scores(run)[0].triplets)).verdict
    )
    assert "not photographs" in row["notes"] and f"{q['gap']['value']:.3f}" in row["notes"]


def test_the_page_says_the_answer_first_and_stands_alone(run):
    page = (run / "report.html").read_text()
    assert page.index("Prototypicality bias") < page.index("Reads the detail") < page.index("<h2>")  # good news, bad, neither
    assert "it was not scored" in page and "Does it read the nouns?" not in page
    assert "<script" not in page and "http" not in page and "&lt;none&gt;" in page and "not photographs" in page
    for title in (
        "People and metrics",
        "Which differences are real",
        "Do the scorers agree",
        "Where the scores lie",
        "How long it took",
    ):
        assert title in page
    assert ">20.0<" in page  # 960 pairs in 48 seconds
    assert not re.search(r"[^.\w](nan|inf|None)[^\w]", re.sub(r"(?s)<style>.*?</style>", "", page))


@pytest.mark.parametrize("scale", ["none", "minmax", "rank"])
def test_normalisations_keep_order_and_have_their_range(run, scale, tmp_path):
    copied = shutil.copytree(run, tmp_path / "run")
    report(copied, ProtoBias(resamples=100, normalise=scale))
    for name, cells in body(copied)["details"]["distributions"].items():
        values = [value for row in cells.values() for value in row]
        assert all(row == sorted(row) for row in cells.values())
        if scale != "none" and name != "constant":
            assert 0 <= min(values) <= max(values) <= 1
        if scale == "rank" and name == "constant":
            assert set(values) == {0.5}
    assert body(copied)["details"]["normalisation"] == scale


def test_two_pictures_a_text_are_reported_as_what_they_are(run, tmp_path):
    table = pq.read_table(run / "scores.parquet")
    keep = [c in ("non_correct", "proto_violated") for c in table["cell"].to_pylist()]
    (tmp_path / "manifest.json").write_bytes((run / "manifest.json").read_bytes())
    pq.write_table(table.filter(pa.array(keep)), tmp_path / "scores.parquet")
    report(tmp_path, ProtoBias(resamples=100))
    page = (tmp_path / "report.html").read_text()
    assert "only the paper's accuracy can be measured" in page and "Prefers the typical picture" in page
    assert "Incongruent against congruent" not in page and "Reads the" not in page
    assert body(tmp_path)["estimates"]["reads"]["all"]["congruent"]["value"] is None


def test_few_pairs_are_not_called_understanding():
    scores = np.tile([2.0, 1.0, 2.0, 1.0], (20, 1)).T
    few, many = (five_quantities(*np.tile(scores, n), clusters=np.arange(20 * n), resamples=100) for n in (1, 10))
    assert reading(few).verdict == "seems to read the text" and "20 pairs are too few" in reading(few).text
    right, wrong = np.ones((200, 2)), np.zeros((200, 3, 2))
    elements = [element_sensitivity(right[:n], wrong[:n], np.arange(n), resamples=100) for n in (20, 200)]
    assert reading(many).verdict == "reads the detail" and reading(many, elements[0]).verdict == "seems to read the text"
    wrong[:40, 2] = 2.0  # another subject wins in a fifth of the rows, then in half of them
    less = reading(many, element_sensitivity(right, wrong, np.arange(200), resamples=100))
    assert less.verdict == "reads the text, the subject less surely" and less.tone == "neutral" and "0.800" in less.text
    wrong[:100, 2] = 2.0
    blind = reading(many, element_sensitivity(right, wrong, np.arange(200), resamples=100))
    assert blind.verdict == "reads the detail, not the subject" and blind.tone == "bad"
    assert reading(many, elements[1]).verdict == "reads the text" and reading(many, elements[1]).tone == "good"


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("triplet,rendition,annotator\nt000,0,a\n", "lacks 'choice'"),
        ("triplet,rendition,annotator,choice\nt000,0,a,left\n", "the choice 'left'; known: adversarial, tie, correct"),
        ("triplet,rendition,annotator,choice\nt000,0,a,tie\nt000,0,a,tie\n", "judged t000-0 twice"),
        ("triplet,rendition,annotator,choice\nelse,0,a,tie\n", "annotates no pair of this run"),
    ],
)
def test_annotations_that_do_not_fit_are_refused(tmp_path, lines, says):
    (tmp_path / "people.csv").write_text(lines)
    with pytest.raises(DatasetError, match=re.escape(says)):
        read_human(tmp_path / "people.csv", np.array(["t000-0"]))


@pytest.mark.parametrize("width", [80, 160])
def test_every_metric_is_explained_at_any_width(width, capsys):
    print_list(Console(width=width))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    shown = " ".join(" ".join(lines).split())
    facts = all_facts()
    assert sorted(facts) == names("scorers") and all(name in shown for name in facts)
    for name, own in facts.items():
        print_card(name, Console(width=width))
        card = " ".join(capsys.readouterr().out.split())
        assert own.question in card and own.licence in card and own.known_bias in card
        assert ("higher" if own.higher_is_better else "lower") + " is better" in card
    with pytest.raises(UnknownName, match="did you mean 'random'"):
        print_card("rndom")
