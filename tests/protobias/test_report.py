"""The report: its numbers are the statistics' own, its words follow the intervals, its page stands alone."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pyarrow.parquet as pq
import pytest

from protoscore.benchmarks import report
from protoscore.benchmarks.protobias import ProtoBias
from protoscore.benchmarks.protobias.cells import CellRows
from protoscore.benchmarks.protobias.report import mistakes
from protoscore.benchmarks.protobias.schema import ELEMENTS, Cell, Foil
from protoscore.benchmarks.protobias.tables import read_scores
from protoscore.benchmarks.protobias.wording import reading
from protoscore.catalog import load
from protoscore.scorers import Facts, Score
from protoscore.scoring.stage import score_rows
from protoscore.stats.pairwise import five_quantities
from tests.conftest import cli


class Oracle:
    """Knows the answer of every picture by its bytes; may also like one kind of subject, and see some nouns only."""

    facts = Facts(question="What is right?", paper="none", licence="none")
    revision, batch_size = "1", 50

    def __init__(self, dataset, name: str, truth: float, typical: float, nouns: tuple[str, ...] = ELEMENTS):
        self.name, self.parameters = name, {}
        self.known = {}
        for row in pq.read_table(dataset / "foils" / "train-00000.parquet").to_pylist():
            for cell in (*Cell, *Foil):
                from protoscore.sources.decoding import open_image

                pixels = open_image(row[f"{cell.value}_image"]["bytes"]).tobytes()
                own = cell.correct if isinstance(cell, Foil) else cell
                wrong = isinstance(cell, Foil) and cell.element in nouns
                self.known[pixels] = truth * own.is_correct + typical * (own.subject == "proto") - wrong

    def score(self, images, texts):
        return [Score(self.known[image.tobytes()]) for image in images]


@pytest.fixture(scope="module")
def run_folder(dataset, tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    oracles = [Oracle(dataset, "right", 1, 0.1), Oracle(dataset, "anti <b>", 0.1, -1), Oracle(dataset, "typical", 0.1, 1)]
    oracles += [Oracle(dataset, "knob only", 1, 0.1, ()), Oracle(dataset, "nouns only", 0, 0)]
    oracles += [Oracle(dataset, "no places", 1, 0.1, ("extra", "subject"))]
    score_rows(CellRows(str(dataset), "train"), [*oracles, load("scorers", "constant"), load("scorers", "random")], out)
    report(out, ProtoBias(str(dataset), resamples=300))
    return out


def test_verdicts_are_the_right_ones(run_folder):
    results = json.loads((run_folder / "results.json").read_text())
    assert {name: columns["verdict"] for name, columns in results["columns"].items()} == {
        "right": "reads the text",
        "anti <b>": "anti-prototype shortcut",
        "typical": "prototypicality bias",
        "knob only": "reads the detail, not the nouns",
        "nouns only": "reads the nouns, not the detail",
        "no places": "reads the detail, not the environment",
        "constant": "constant",
        "random": "no better than guessing",
    }


def test_four_cells_alone_do_not_tell_whether_the_nouns_are_read(run_folder):
    table = next(t for t in read_scores(run_folder) if t.scorer == "right")
    found = reading(table.quantities(resamples=300))
    assert found.verdict == "reads the detail" and found.tone == "neutral" and "only foils could tell" in found.text


def test_element_sensitivity_equals_a_plain_count(run_folder):
    results = json.loads((run_folder / "results.json").read_text())
    rows = [r for r in pq.read_table(run_folder / "scores.parquet").to_pylist() if r["scorer"] == "random"]
    scores = {(r["pair"], r["cell"]): r["score"] for r in rows}
    for group in ("all", *{r["domain"] for r in rows}):
        ids = {r["pair"] for r in rows if group in ("all", r["domain"])}
        shares = {}
        for element in ELEMENTS:
            wins = [
                np.mean([scores[i, f"{side}_correct"] > scores[i, f"{side}_{element}_foil"] for i in ids])
                for side in ("non", "proto")
            ]
            shares[element] = np.mean(wins)
            found = results["estimates"]["random"][group][f"element_{element}"]
            assert found["value"] == pytest.approx(shares[element]) and found["low"] < found["value"] < found["high"]
            assert found["n"] == 2 * len(ids) and found["left_out"] == 0
        assert results["estimates"]["random"][group]["elements"]["value"] == pytest.approx(np.mean(list(shares.values())))
    assert {task["id"] for task in results["tasks"]} >= {"elements"}


def test_a_model_that_learned_the_shortcut_is_called_out_though_its_accuracy_is_perfect():
    rng = np.random.default_rng(0)
    subject = np.array([1.0, 0.0, 0.0, 1.0])
    q = five_quantities(*(rng.normal(0, 0.05, (500, 4)) + subject).T, clusters=np.arange(500), resamples=300)
    found = reading(q)
    assert q.incongruent.value == 1 and found.verdict == "anti-prototype shortcut" and found.tone == "bad"
    assert "not understanding" in found.text and f"{q.sensitivity.value:.3f}" in found.text


def test_the_page_shows_the_numbers_of_the_json_and_needs_nothing_else(run_folder):
    page = (run_folder / "report.html").read_text()
    numbers = json.loads((run_folder / "results.json").read_text())
    for groups in numbers["estimates"].values():
        for group in groups.values():
            e = group["incongruent"]
            assert f'{e["value"]:.3f}</span> <span class="interval">[{e["low"]:.3f}, {e["high"]:.3f}]' in page
    assert set(re.findall(r'(?:src|href)="([^"]{0,12})', page)) == {"data:image/we"[:12]}
    assert "<script" not in page and "@import" not in page and "http" not in re.sub(r"data:[^\"]+", "", page)
    assert "not photographs" in page
    assert html.escape("anti <b>") in page and "anti <b>" not in page


def test_json_agrees_with_a_plain_count(run_folder):
    """Recount one quantity by hand from the table of scores."""
    numbers = json.loads((run_folder / "results.json").read_text())["estimates"]["random"]
    rows = [r for r in pq.read_table(run_folder / "scores.parquet").to_pylist() if r["scorer"] == "random"]
    scores = {(r["pair"], r["cell"]): r["score"] for r in rows}
    for domain in {r["domain"] for r in rows}:
        ids = {r["pair"] for r in rows if r["domain"] == domain}
        wins = sum(scores[i, "proto_correct"] > scores[i, "non_violated"] for i in ids)
        assert numbers[domain]["congruent"]["value"] == pytest.approx(wins / len(ids))
        assert numbers[domain]["congruent"]["n"] == len(ids)


def test_mistakes_are_mistakes_and_the_worst_come_first(run_folder):
    tables = {t.scorer: t for t in read_scores(run_folder)}
    assert mistakes(tables["right"]) == [] == mistakes(tables["constant"])
    table = tables["typical"]
    found = mistakes(table, 50)
    assert {m.kind for m in mistakes(tables["no places"], 500)} <= {"another environment"}
    assert found and [m.margin for m in found] == sorted(m.margin for m in found)
    for mistake in found:
        row = table.scores[list(table.ids).index(mistake.id)]
        cells = list(Cell)
        assert row[cells.index(mistake.right)] < row[cells.index(mistake.wrong)]
        assert mistake.right.is_correct and not mistake.wrong.is_correct
    page = (run_folder / "report.html").read_text()
    shown = page.count("<figure>")
    assert 6 * 3 <= shown <= 6 * 8 and page.count("data:image/webp") == 2 * shown


def test_another_dataset_than_the_scored_one_is_refused(run_folder, tmp_path):
    result = cli("report", str(run_folder), "--dataset", str(tmp_path))
    assert result.returncode == 2 and "not a four-cell dataset" in result.stderr
