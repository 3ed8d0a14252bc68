"""Training pairs are what was asked for: the mix, the split, from scenes and from datasets of two or four pictures."""

from __future__ import annotations

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset
from PIL import Image

from protoscore.benchmarks.protobias.schema import Cell, Foil
from protoscore.errors import ConfigError
from protoscore.modeling.protoscore import ProtoScore
from protoscore.scenes.spec import SceneSpec
from tests.conftest import run
from tests.training.support import history, train
from training.protoscore.pairs import PairArguments, evaluation_cells, training_pairs

HELD_OUT = ["shoebill", "armadillo", "hammock", "segway", "jewish_woman", "muslim_man"]


def test_pairs_are_the_train_split_and_differ_as_the_mix_says():
    args = PairArguments(pairs=600, incongruent=0.2, congruent=0.3, same_subject=0.5, pair_seed=3)
    rows = training_pairs(args).with_format(None)
    kinds = {"incongruent": 0, "congruent": 0, "same_subject": 0}
    from protoscore.benchmarks.protobias.taxonomy import load_taxonomy

    contrasts = [c for d in ("animals", "objects", "demography") for c in load_taxonomy().contrasts(d)]
    order = {(c.non_subject, c.proto_subject) for c in contrasts}
    for row in rows:
        chosen, rejected = (SceneSpec.model_validate_json(row[side]) for side in ("chosen", "rejected"))
        differing = {k for k in ("count", "color_tone", "layout_relation", "spatial", "scale_size")
                     if getattr(chosen, k) != getattr(rejected, k)}  # fmt: skip
        assert len(differing) == 1 and (chosen.extra, chosen.environment) == (rejected.extra, rejected.environment)
        if chosen.subject == rejected.subject:
            kinds["same_subject"] += 1
        else:
            # Muslim and Christian people may be either side, by the pole of their attribute.
            kinds["incongruent" if (chosen.subject, rejected.subject) in order else "congruent"] += 1
    assert kinds["same_subject"] / 600 == pytest.approx(0.5, abs=0.07)
    again = training_pairs(args)
    assert again[5]["chosen"].tobytes() == training_pairs(args)[5]["chosen"].tobytes()
    assert again[5]["margin"] == 0.5 and again[5]["chosen"].tobytes() != again[5]["rejected"].tobytes()


def test_pairs_with_foils_differ_in_one_noun_and_are_one_scene():
    args = PairArguments(pairs=300, incongruent=0.0, congruent=0.0, same_subject=0.0, foils=1.0, pair_seed=5)
    data = training_pairs(args)
    differing = []
    for row in data.with_format(None):
        chosen, rejected = (json.loads(row[side]) for side in ("chosen", "rejected"))
        differing.append(tuple(key for key in chosen if chosen[key] != rejected[key]))
    counts = {one: differing.count(one) / 300 for one in set(differing)}
    assert all(counts[element,] > 0.2 for element in ("extra", "environment", "subject"))
    assert all(len(one) == 1 for one in differing) and 1 - sum(counts[e,] for e in ("extra", "environment", "subject")) < 0.06
    place = differing.index(("environment",))
    free = training_pairs(PairArguments(**vars(args) | {"nuisance": 1.0}))
    same, other = (np.asarray(d[place]["chosen"]).astype(int) - d[place]["rejected"] for d in (data, free))
    assert (same == 0).all(2).mean() > (other == 0).all(2).mean()  # subject and thing stand where they stood


def test_foils_of_a_dataset_are_used_where_it_has_them(dataset, two_pictures):
    shares = {"incongruent": 0.0, "congruent": 0.0, "same_subject": 0.0, "foils": 1.0}
    data = training_pairs(PairArguments(dataset=str(dataset), pairs=6, **shares))
    rows = pq.read_table(dataset / "foils" / "train-00000.parquet").to_pylist()
    known = {Image.open(io.BytesIO(r[f"{p}_image"]["bytes"])).convert("RGB").tobytes(): p for r in rows for p in (*Cell, *Foil)}
    for row in (data[i] for i in range(6)):
        assert known[row["rejected"].tobytes()].correct == known[row["chosen"].tobytes()]
    with pytest.raises(ConfigError, match="2 pictures per row"):
        training_pairs(PairArguments(dataset=str(two_pictures), pairs=6, **shares))


def test_training_texts_never_occur_in_the_test_split(dataset, tmp_path):
    rows = training_pairs(PairArguments(pairs=4000)).with_format(None)
    test = load_dataset(str(dataset), "triplets", split="test", cache_dir=str(tmp_path))
    assert not set(rows["text"]) & set(test["text"])


def test_a_published_dataset_trains_too(dataset):
    shares = {"incongruent": 0.0, "congruent": 1.0, "same_subject": 0.0}
    rows = training_pairs(PairArguments(dataset=str(dataset), pairs=8, **shares))
    assert len(rows) == 8
    known = load_rows(dataset)
    for row in (rows[i] for i in range(8)):
        cells = known[row["chosen"].tobytes()], known[row["rejected"].tobytes()]
        assert cells == (Cell.PROTO_CORRECT, Cell.NON_VIOLATED)


def test_evaluation_triplets_of_a_dataset_are_in_no_pair(dataset):
    args = PairArguments(dataset=str(dataset), pairs=10_000, eval_triplets=20)
    cells, pairs = evaluation_cells(args), training_pairs(args)
    held = set(cells.with_format(None)["triplet"])
    assert len(held) == 20 and not held & set(pairs.with_format(None)["triplet"])
    row = cells[0]
    known = load_rows(dataset)
    assert [known[row[cell.value].tobytes()] for cell in Cell] == list(Cell)
    with pytest.raises(ConfigError, match="no triplets left"):
        training_pairs(PairArguments(dataset=str(dataset), pairs=4, eval_triplets=100_000))


@pytest.fixture
def two_pictures(dataset, tmp_path):
    """The pairs of the built dataset as others publish theirs: an ``id``, plain bytes, nothing else of ours."""
    rows = pq.read_table(dataset / "pairs" / "train-00000.parquet").to_pylist()
    sides = ("correct_image", "adversarial_image")
    table = [{"id": row["triplet"], "text": row["text"], **{side: row[side]["bytes"] for side in sides}} for row in rows]
    (tmp_path / "theirs" / "data").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(table), tmp_path / "theirs" / "data" / "train-00000.parquet")
    return tmp_path / "theirs"


FEW = ["--pairs", "8", "--max_steps", "2", "--save_steps", "2", "--eval_triplets", "4", "--eval_strategy", "steps"]


def test_the_script_trains_and_evaluates_on_a_dataset(dataset, tmp_path):
    """Pictures come from columns that no model knows, which a Trainer would take away."""
    given = ["--dataset", str(dataset), "--eval_steps", "1", "--output_dir", str(tmp_path / "out")]
    assert train(*FEW, *given, "--incongruent", "0.5", "--congruent", "0.5") == 0
    assert [entry["step"] for entry in history(tmp_path / "out", "eval_gap")] == [1, 2]
    card = (tmp_path / "out" / "README.md").read_text()
    assert "license:" in card and "Shortcut" not in card and str(tmp_path) not in card


def test_two_pictures_are_enough_for_the_papers_pairs(two_pictures, tmp_path, capsys):
    """Trained and measured by the one comparison that they allow; other pairs are refused in a line that says what to add."""
    given = ["--dataset", str(two_pictures), "--eval_steps", "1", "--output_dir", str(tmp_path / "out")]
    assert train(*FEW, *given) == 0
    entry = history(tmp_path / "out", "eval_incongruent")[-1]
    assert 0 <= entry["eval_incongruent"] <= 1 and entry["eval_incongruent_n"] >= 4 and "eval_congruent" not in entry
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| incongruent |" in card and "| congruent |" not in card and "license: unknown" in card
    assert np.isfinite(ProtoScore.from_pretrained(tmp_path / "out").score([Image.new("RGB", (96, 96))], ["A bird."])).all()
    assert train(*FEW, *given, "--incongruent", "0.5", "--congruent", "0.5") == 2
    assert "--incongruent 1 --congruent 0" in capsys.readouterr().err.splitlines()[-1]


def test_a_dataset_of_other_columns_is_told_what_is_needed(tmp_path):
    with pytest.raises(ConfigError, match="no controls/train"):
        training_pairs(PairArguments(dataset=str(tmp_path), pairs=4))
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table({"caption": ["a bird"]}), tmp_path / "data" / "train-00000.parquet")
    with pytest.raises(ConfigError, match=r"has the columns caption; .*correct_image, adversarial_image"):
        training_pairs(PairArguments(dataset=str(tmp_path), pairs=4))


def load_rows(dataset) -> dict[bytes, Cell]:

    found = {}
    for row in pq.read_table(dataset / "controls" / "train-00000.parquet").to_pylist():
        for cell in Cell:
            found[Image.open(io.BytesIO(row[f"{cell.value}_image"]["bytes"])).convert("RGB").tobytes()] = cell
    return found


def test_held_out_subjects_are_in_no_training_scene_and_in_every_test_triplet(tmp_path):
    args = PairArguments(pairs=1500, eval_triplets=100, held_out=HELD_OUT)
    for data, sides in (
        (training_pairs(args), ["chosen", "rejected"]),
        (evaluation_cells(args), [cell.value for cell in Cell]),
    ):
        rows = data.with_format(None)
        shown = {SceneSpec.model_validate_json(scene).subject for side in sides for scene in rows[side]}
        assert len(shown) > 20 and not shown & set(HELD_OUT)
    build = ["dataset_scripts/protobias/build.py", "--triplets", "12", "--renditions", "1", "--size", "64", "--drawable"]
    result = run(*build, "--split", "test", "--subjects", *HELD_OUT, "--out", str(tmp_path / "built"))
    assert result.returncode == 0, result.stderr
    rows = load_dataset(str(tmp_path / "built"), "triplets", split="test", cache_dir=str(tmp_path))
    subjects = [
        {json.loads(row[key])["subject"] if key.endswith("scene") else row[key] for key in row if "subject" in key}
        for row in rows
    ]
    assert len(rows) == 12 and all(found & set(HELD_OUT) for found in subjects)
