"""``protoscore diversity`` as somebody types it: from models to a page, resumed, and refused in one line."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

from protoscore.benchmarks import of_run, report
from protoscore.benchmarks.diversity.comparison import compare_models, contradictions, mean_scores, outcomes_of
from protoscore.benchmarks.diversity.measured import read_measured
from protoscore.benchmarks.diversity.models import Model, read_models, wanted_of
from protoscore.benchmarks.diversity.pairs import read_pairs, write_pairs
from protoscore.benchmarks.diversity.running import Measures, run
from protoscore.benchmarks.diversity.set_scores import Drawing, score_sets
from protoscore.errors import ConfigError, DatasetError
from protoscore.reporting.results import read_results
from tests.conftest import cli

SIDE = """
import json
from protoscore.vlms import Reply
def reply(request):  # counts what the pictures' bytes tell apart
    half = len(request.images) // 2
    sets = request.images[:half], request.images[half:]
    counts = [len({image.resize((4, 4)).tobytes() for image in some}) for some in sets]
    choice = "equal" if counts[0] == counts[1] else "first" if counts[0] > counts[1] else "second"
    return json.dumps({"count_shown_first": counts[0], "count_shown_second": counts[1], "choice": choice})
"""


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Ten of the pairs that scenes can show, of attributes whose ground may change."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.csv"
    chosen = [pair for pair in read_pairs("scenes") if pair.attribute == "color"][:10]
    write_pairs(path, chosen)
    assert read_pairs(path) == chosen
    return path


@pytest.fixture(scope="module")
def confounded(pairs, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "out"
    models = [Model("place", "simulated:place"), Model("attribute", "simulated:attribute")]
    run(models, str(pairs), out, 8, Drawing(8, 1), Measures(("scene",)))
    return out


def test_vectors_fall_for_the_confound_and_judged_values_do_not(confounded, pairs):
    """What the pictures show is known, as they were drawn; it stands for a judge that sees it."""
    measured = []
    for name in ("place", "attribute"):
        one = read_measured(name, {"scene": confounded / name / "embedded-scene"})
        rows = [row for part in (confounded / name / "pictures").glob("part-*") for row in pq.read_table(part).to_pylist()]
        told = {row["id"]: json.loads(row["geometry"])["value"] for row in rows}
        measured.append(one._replace(values=np.array([told[name] for name in one.ids], object)))
    sets = score_sets(measured, read_pairs(pairs), Drawing(8, 1))
    found = [
        compare_models(measure, outcomes_of(scores, sets.models), sets.models, [p.group for p in sets.pairs])
        for measure, scores in sets.scores.items()
    ]
    by_name = {one.measure: one for one in found}
    assert by_name["judged_entropy"].direction("attribute", "place") == 1
    assert by_name["vendi_scene"].direction("place", "attribute") == 1
    named = {one.measure for one in contradictions(found)}
    assert "vendi_scene" in named <= {"vendi_scene", "distance_scene"}  # of ten pairs, the distance is now and then too close
    assert mean_scores(sets, "judged_count")["place"].value == 1


def test_a_run_is_reported_again_and_a_judge_s_votes_come_beside(confounded, tmp_path):
    script = tmp_path / "side.py"
    script.write_text(SIDE)
    from protoscore.catalog import load

    benchmark = of_run(confounded)
    benchmark.ask_side_by_side(confounded, load("vlms", f"scripted:{script}"))
    results = benchmark.evaluate(confounded)
    assert results.details["people"]["votes"] == 10 and results.details["people"]["unable"] == 0
    assert results.details["ranking"].keys() == {"people", "vendi_scene", "distance_scene"}
    page = benchmark.page(results, confounded)
    assert "Drawn scenes, not photographs" in page and page.count("data:image/webp") == 2 * 3 * 8
    shutil.rmtree(confounded / "side_by_side")


def test_the_command_line(pairs, tmp_path):
    told = [
        "diversity",
        "--a",
        "narrow=simulated:1",
        "--b",
        "wide=simulated:8",
        "--pairs",
        pairs,
        "--pictures",
        "8",
        "--set-number",
        "1",
    ]
    out = tmp_path / "out"
    plan = cli(*told, "--out", out, "--plan")
    assert plan.returncode == 0 and not out.exists() and "160 pictures" in plan.stdout
    done = cli(*told, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "wide > narrow" in done.stdout and "Misled" not in done.stdout
    (test,) = read_results(out).details["tests"]["vendi_scene"]
    assert test["first"] == "narrow" and test["direction"] == -1
    changed = cli(*told, "--seed", "1", "--out", out)
    assert changed.returncode == 2 and len(changed.stderr.strip().splitlines()) == 1 and "seed" in changed.stderr


def test_a_run_goes_on_where_it_stopped_to_the_same_bytes_and_folders_are_models_too(confounded, pairs, tmp_path):
    models = [Model("place", "simulated:place"), Model("attribute", "simulated:attribute")]
    report(confounded, of_run(confounded))
    other = tmp_path / "other"  # as if it had been killed while the second model was embedded
    shutil.copytree(confounded, other)
    for gone in (
        other / "manifest.json",
        other / "results.json",
        other / "attribute" / "embedded-scene" / "embeddings.parquet",
    ):
        gone.unlink()
    run(models, str(pairs), other, 8, Drawing(8, 1), Measures(("scene",)))
    report(other, of_run(other))
    assert (other / "results.json").read_bytes() == (confounded / "results.json").read_bytes()
    # pictures of a folder, named after the pairs; one broken picture is left out and counted
    rows = [row for part in (confounded / "place" / "pictures").glob("part-*") for row in pq.read_table(part).to_pylist()]
    folder = tmp_path / "mine"
    for row in rows:
        place = folder / row["pair"]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{row['id']}.png").write_bytes(row["image"]["bytes"])
    next(folder.rglob("*.png")).write_bytes(b"no picture")
    (folder / "strange.png").write_bytes(rows[0]["image"]["bytes"])
    third = tmp_path / "third"
    run([Model("mine", str(folder)), models[1]], str(pairs), third, 8, Drawing(8, 1), Measures(("scene",)))
    found = of_run(third).evaluate(third).details
    assert found["left_out"]["mine"] == {"no vector of scene": 1} and found["without_a_set"] == {"mine": 1, "attribute": 0}
    assert json.loads((third / "manifest.json").read_text())["strangers"] == {"mine": 1, "attribute": 0}


def test_what_cannot_be_compared_is_one_line(pairs, tmp_path):
    for typed, words in [
        (["simulated:3"], "at least --a and --b"), (["simulated:3", "simulated:3"], "two models are called 'simulated:3'"),
        (["x/y=simulated:3", "simulated:1"], "cannot be the name of a folder"),
    ]:  # fmt: skip
        with pytest.raises(ConfigError, match=words):
            read_models(typed)
    with pytest.raises(ConfigError, match="neither an effective number"):
        run(read_models(["simulated:0.5", "simulated:3"]), str(pairs), tmp_path / "a", 8, Drawing(), Measures())
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "1.png").write_bytes(b"")
    with pytest.raises(DatasetError, match="no picture of a known concept: name a folder for each pair, such as flower-color"):
        run(read_models([str(strange), "simulated:3"]), str(pairs), tmp_path / "b", 8, Drawing(), Measures())
    with pytest.raises(ConfigError, match="both --scorer and --keep-from"):
        Measures(scorer="constant").check()
    for text, words in [
        ("concept,attribute,prompt\na,b,c\n", "no column 'values'"),
        ("concept,attribute,values,prompt\na,b,red,c\n", "two or more"),
        ("concept,attribute,values,prompt\na,b,x; y,c\na,b,x; y,c\n", "given twice: 'a-b'"),
        ("concept,attribute,values,prompt,things,places\na,color,red; plaid,c,box,studio\n", "shows no color 'plaid'"),
    ]:  # fmt: skip
        table = tmp_path / "t.csv"
        table.write_text(text)
        with pytest.raises(DatasetError, match=words):
            read_pairs(table)


def test_models_of_one_kind_draw_other_pictures_and_the_same_model_the_same(pairs):
    some = read_pairs(pairs)[:2]
    one, two, again = (wanted_of(some, name, 3) for name in ("a", "b", "a"))
    assert one == again and {w.seed for w in one}.isdisjoint(w.seed for w in two) and len({w.id for w in one}) == 6
