"""What is published keeps its word: every dataset, checkpoint, module, Space and results file that exists is found and checked.

Nothing is listed here. A new dataset script needs a fixture ``<name>_dataset`` with a small build (ProtoBias has ``dataset``).
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from scipy.stats import binomtest

from model_cards.write_card import write_card
from protoscore.publishing import Kind
from protoscore.publishing.cards import read_card
from protoscore.publishing.files import collect
from protoscore.publishing.kinds import check
from protoscore.publishing.leaderboard import Results
from protoscore.vlms.local import read_taught
from tests.conftest import ROOT

SCRIPTS = sorted(path.parent.name for path in (ROOT / "dataset_scripts").glob("*/build.py"))
CHECKPOINTS = sorted(path.parent for path in (ROOT / "protoscore" / "assets").glob("*/README.md"))
MODULES = sorted(path.parent for path in (ROOT / "evaluate_modules").glob("*/README.md"))
SPACES = sorted(path.parent for path in [*ROOT.glob("space/README.md"), *ROOT.glob("space/*/README.md")])
RESULTS = sorted((ROOT / "model_cards").glob("*.results.json"))
JUDGED = [path for path in RESULTS if "protocols" in json.loads(path.read_text())]
REPORTS = [path for path in RESULTS if path not in JUDGED]
TEMPLATES = sorted((ROOT / "model_cards").glob("*.md.jinja"))
LICENCES = {"apache-2.0": "Apache-2.0", "cc-by-sa-4.0": "CC BY-SA 4.0", "cc-by-4.0": "CC BY 4.0", "mit": "MIT"}
SIZES = {"n<1K": (0, 1e3), "1K<n<10K": (1e3, 1e4), "10K<n<100K": (1e4, 1e5), "100K<n<1M": (1e5, 1e6), "1M<n<10M": (1e6, 1e7)}
name_of = lambda path: path.name  # noqa: E731


@pytest.fixture(scope="module", params=SCRIPTS)
def built(request) -> Path:
    """A small build of each dataset."""
    return request.getfixturevalue("dataset" if request.param == "protobias" else f"{request.param}_dataset")


def splits(folder: Path) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Every config and split with its rows; pictures as hashes."""
    for config in read_card(folder).metadata["configs"]:
        for part in config["data_files"]:
            rows = [row for path in sorted(folder.glob(part["path"])) for row in pq.read_table(path).to_pylist()]
            yield config["config_name"], part["split"], [{k: _plain(v) for k, v in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, dict) and isinstance(value.get("bytes"), bytes):
        return "picture " + hashlib.sha256(value["bytes"]).hexdigest()
    return value


# -- datasets


def test_a_dataset_can_be_published_as_it_was_built(built):
    metadata = check(Kind.DATASET, built, collect(built), f"org/{built.name}")
    rows = sum(len(rows) for _, _, rows in splits(built))
    low, high = SIZES[metadata.size_categories[0]]
    assert low <= rows < high
    assert sum(config.default for config in metadata.configs) == 1
    for licence in metadata.license:
        assert LICENCES[licence] in read_card(built).text
    assert (built / "eval.yaml").is_file() and (built / "manifest.json").is_file()


def test_no_row_is_there_twice_and_no_picture_is_two(built):
    for config, split, rows in splits(built):
        keys = Counter(json.dumps(row, sort_keys=True) for row in rows)
        assert keys.most_common(1)[0][1] == 1, (config, split)
        for row in rows:  # the pictures of a row are different pictures
            pictures = [value for value in row.values() if str(value).startswith("picture ")]
            assert len(set(pictures)) == len(pictures)


def test_nothing_of_the_test_split_is_in_the_training_split(built):
    by_split: dict[str, dict[str, set[str]]] = {}
    for _, split, rows in splits(built):
        seen = by_split.setdefault(split, {"text": set(), "picture": set(), "id": set()})
        for row in rows:
            seen["text"].add(row.get("text"))
            seen["id"].add(row.get("triplet") or row.get("id"))
            seen["picture"] |= {value for value in row.values() if str(value).startswith("picture ")}
    assert {"train", "test"} <= by_split.keys()
    for kind in ("text", "picture", "id"):
        assert by_split["test"][kind] - {None} and not (by_split["train"][kind] & by_split["test"][kind]) - {None}, kind


def test_nothing_gives_the_answer_away(built):
    """Every closed column has its values in each split, and what should be a fair coin is one (two-sided, 0.1 %)."""
    coins = {"left": "correct", "pole": "positive", "gender": "woman"}
    for config, split, rows in splits(built):
        for column in ("domain", "knob"):
            values = Counter(row[column] for row in rows if column in row)
            assert not values or max(values.values()) <= 0.75 * sum(values.values()), (config, split, column, values)
        for column, side in coins.items():
            values = [row[column] for row in rows if row.get(column) is not None]
            if values:
                assert binomtest(values.count(side), len(values), 0.5).pvalue > 0.001, (config, split, column, Counter(values))


# -- checkpoints and their figures


@pytest.mark.parametrize("folder", CHECKPOINTS, ids=name_of)
def test_a_checkpoint_can_be_published_as_it_is(folder):
    metadata = check(Kind.MODEL, folder, collect(folder), f"org/{folder.name}")
    text = read_card(folder).text
    assert all(LICENCES[licence] in text for licence in metadata.license)
    (weights,) = folder.glob("*.safetensors")
    header = json.loads(weights.read_bytes()[8 : 8 + int.from_bytes(weights.read_bytes()[:8], "little")])
    count = sum(int(np.prod(tensor["shape"])) for name, tensor in header.items() if name != "__metadata__")
    assert f"{count / 1e6:.1f} million weights" in text
    size = sum(path.stat().st_size for path in folder.iterdir() if path.name != "README.md" and not path.name.startswith("."))
    assert f"{size / 1e6:.1f} MB" in text


@pytest.mark.parametrize("template", TEMPLATES, ids=name_of)
def test_a_card_is_its_template_filled_from_its_results_file(template, tmp_path):
    """So every figure of its tables is one of the results file, and none was typed."""
    name = template.name.removesuffix(".md.jinja")
    folder = ROOT / "protoscore" / "assets" / name
    copy = shutil.copytree(folder, tmp_path / name, ignore=shutil.ignore_patterns(".*"))
    write_card(template, template.with_name(f"{name}.results.json"), copy)
    assert (copy / "README.md").read_text() == (folder / "README.md").read_text()


@pytest.mark.parametrize("folder", CHECKPOINTS, ids=name_of)
def test_numbers_in_the_text_of_a_card_come_from_a_file(folder):
    """Thousands in the prose are those of a recipe or of the results; digits after a point are in the results."""
    text = read_card(folder).text
    sources = sorted((ROOT / "model_cards").glob(f"{folder.name}.*results.json"))
    assert any(f"`model_cards/{source.name}`" in text for source in sources)
    reports = [json.loads(source.read_text()) for source in sources]
    recipes = [yaml.safe_load(path.read_text()) for path in (ROOT / "training").glob("*/recipes/*.yaml")]
    known = {f"{value:,}" for recipe in recipes for value in recipe.values() if isinstance(value, int)}
    told = [value for report in reports for value in (report | report.get("details", {})).values()]
    known |= {f"{value:,}" for value in told if isinstance(value, int)}
    taught = read_taught(folder)
    known |= {f"{taught['questions']:,}"} if taught else set()
    assert set(re.findall(r"\b\d{1,3},\d{3}\b", text)) <= known
    figures = {f"{e[key]:.3f}" for report in reports for e in estimates(report) for key in ("value", "low", "high")}
    assert set(re.findall(r"(?<![\d.])-?\d\.\d{3}\b", text)) <= figures


def estimates(report: object) -> list[dict]:
    """Every value with its interval, at whatever depth; a measure without any question behind it has none."""
    if not isinstance(report, dict) or report.get("n") == 0:
        return []
    return [report] if {"value", "low", "high"} <= report.keys() else [e for part in report.values() for e in estimates(part)]


@pytest.mark.parametrize("path", JUDGED, ids=name_of)
def test_a_judges_results_are_possible(path):
    """Each rate is a count over its n, lies in its interval, and the fields' parts add up to their whole."""
    report = json.loads(path.read_text())
    for protocol, found in report["protocols"].items():
        for name, e in found.items():
            where = (protocol, name)
            if e["n"]:
                assert 0 <= e["low"] <= e["value"] <= e["high"] <= 1, where
                assert e["value"] * e["n"] == pytest.approx(round(e["value"] * e["n"]), abs=1e-6), where
        for name in [n for n in found if n.endswith(": right where shown")]:
            field = name.partition(":")[0]
            shown, absent = found[name], found[f"{field}: abstains where not shown"]
            rights = sum(e["value"] * e["n"] for e in (shown, absent) if e["n"])
            assert shown["n"] + absent["n"] == report["questions"]
            assert rights == pytest.approx(found[f"{field}: right"]["value"] * report["questions"], abs=1e-6)


@pytest.mark.parametrize("path", REPORTS, ids=name_of)
def test_a_results_file_is_possible(path):
    report = json.loads(path.read_text())
    Results.model_validate(report)
    for scorer, groups in report["estimates"].items():
        domains = [name for name in groups if name in ("animals", "objects", "demography")]
        for name, five in groups.items():
            where = (path.name, scorer, name)
            for quantity, e in five.items():
                floor = -1 if quantity == "gap" else 0
                assert floor <= e["low"] <= e["value"] <= e["high"] <= 1, where
                assert e["n"] > 0 and 0 <= e["ties"] <= e["n"] and e["left_out"] >= 0, where
            assert five["gap"]["value"] == pytest.approx(five["congruent"]["value"] - five["incongruent"]["value"], abs=1e-9), (
                where
            )
        assert groups["all"]["incongruent"]["n"] + groups["all"]["incongruent"]["left_out"] == report["details"]["triplets"]
        for quantity in ("incongruent", "congruent", "sensitivity", "preference"):
            parts = [groups[name][quantity] for name in domains]
            whole = sum(part["value"] * part["n"] for part in parts) / sum(part["n"] for part in parts)
            assert groups["all"][quantity]["value"] == pytest.approx(whole, abs=1e-9), (path.name, scorer, quantity)


# -- modules and Spaces


@pytest.mark.parametrize("folder", MODULES, ids=name_of)
def test_a_module_can_be_published_as_it_is(folder):
    metadata = check(Kind.MODULE, folder, collect(folder), f"org/{folder.name}")
    assert metadata.sdk == "gradio" and {"metric", "measurement", "comparison"} & set(metadata.tags)
    assert any(
        line.split("[")[0].split(">")[0].strip() == "protoscore"
        for line in (folder / "requirements.txt").read_text().splitlines()
    )
    source = (folder / f"{folder.name}.py").read_text()
    assert len(source.splitlines()) <= 100 and ">>> " in source  # a thin skin, with an example that its tests run
    for node in ast.walk(ast.parse(source)):  # evaluate reads imports line by line and takes "a," for a package
        assert not isinstance(node, ast.Import) or len(node.names) == 1


def test_modules_have_classes_of_their_own():
    """evaluate.combine tells two modules apart by the name of their class."""
    trees = [ast.parse((folder / f"{folder.name}.py").read_text()) for folder in MODULES]
    names = [node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    assert len(names) == len(set(names)) >= len(MODULES)


@pytest.mark.parametrize("folder", SPACES, ids=name_of)
def test_a_space_can_be_published_as_it_is(folder):
    assert check(Kind.SPACE, folder, collect(folder), f"org/{folder.name}") is not None
