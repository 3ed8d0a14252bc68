"""The published dataset: loads with the library, keeps its promises, and comes out the same after a kill."""

from __future__ import annotations

import io
import json
import os
import random
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from datasets import Image as ImageFeature
from datasets import get_dataset_config_names, load_dataset
from PIL import Image

from protoscore.benchmarks.protobias.dataset import write_configs
from protoscore.benchmarks.protobias.schema import Cell
from protoscore.benchmarks.protobias.triplets import read_triplets
from protoscore.catalog import load
from protoscore.errors import ConfigError, DatasetError
from protoscore.filters import filter_pictures
from protoscore.folder import read_manifest
from tests.conftest import BUILD, ROOT, run


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def script() -> dict[str, Any]:
    """The build script in this process."""
    return runpy.run_path(str(ROOT / BUILD[0]))


def test_every_config_loads_with_the_library(dataset, tmp_path):
    assert set(get_dataset_config_names(str(dataset))) >= {"pairs", "controls", "triplets", "human"}
    pairs = load_dataset(str(dataset), "pairs", split="test", cache_dir=str(tmp_path))
    assert isinstance(pairs.features["correct_image"], ImageFeature)
    row = pairs[0]
    assert row["correct_image"].size == (96, 96) and row["correct_image"].mode == "RGB"
    assert row["correct_filter_score"] >= 8 and row["text"] != row["correct"] != row["adversarial"]
    controls = load_dataset(str(dataset), "controls", split="train", cache_dir=str(tmp_path))
    assert all(f"{cell.value}_image" in controls.features for cell in Cell)
    streamed = next(iter(load_dataset(str(dataset), "controls", split="test", streaming=True)))
    assert len({streamed[f"{cell.value}_image"].tobytes() for cell in Cell}) == 4


def test_splits_share_no_triplet_and_no_neutral_text(dataset):
    columns = {s: pq.read_table(dataset / "triplets" / f"{s}-00000.parquet", columns=["id", "text"]) for s in ("train", "test")}
    for name in ("id", "text"):
        train, test = (set(columns[s][name].to_pylist()) for s in ("train", "test"))
        assert train and test and not train & test


def test_counts_say_what_is_there(dataset):
    manifest = read_manifest(dataset, "dataset")
    for key, count in manifest["rows"].items():
        assert sum(pq.ParquetFile(p).metadata.num_rows for p in dataset.glob(f"{key}-*.parquet")) == count, key
    assert manifest["photographic"] is False and sum(manifest["refusals"].values()) > 0
    assert all(":" in reason for reason in manifest["refusals"])
    human = pq.read_table(dataset / "human" / "test-00000.parquet").to_pylist()
    assert Counter(row["domain"] for row in human) == {d: n for d, n in manifest["human"].items() if n}
    assert {row["left"] for row in human} == {"correct", "adversarial"}
    # The domains are small here, so everything is in it: both renditions of each test triplet that was kept.
    assert len({(row["triplet"], row["rendition"]) for row in human}) == len(human)


def test_pictures_are_embedded_distinct_and_png(dataset):
    seen = set()
    for row in pq.read_table(dataset / "controls" / "test-00000.parquet").to_pylist():
        for cell in Cell:
            data = row[f"{cell.value}_image"]["bytes"]
            assert Image.open(io.BytesIO(data)).format == "PNG"
            seen.add(data)
    assert len(seen) == 4 * pq.ParquetFile(dataset / "controls" / "test-00000.parquet").metadata.num_rows


def test_card_is_complete(dataset):
    card = (dataset / "README.md").read_text()
    head = yaml.safe_load(card.split("---")[1])
    assert head["license"] == "cc-by-sa-4.0" and "scenes" in head["tags"]
    for config in head["configs"]:
        for file in config["data_files"]:
            assert list(dataset.glob(file["path"])), file
    for info in head["dataset_info"]:
        names = [feature["name"] for feature in info["features"]]
        for split in info["splits"]:
            table = pq.ParquetFile(dataset / info["config_name"] / f"{split['name']}-00000.parquet")
            assert table.schema_arrow.names == names and table.metadata.num_rows == split["num_examples"]
    assert "not photographs" in card and "OpenMoji" in card and "nobody has annotated" in card
    assert "{{" not in card and "None" not in card
    for key, count in read_manifest(dataset)["rows"].items():
        if count:
            config, split = key.split("/")
            assert f"| `{config}` | {split} | {count:,} |" in card


def test_the_same_command_builds_the_same_bytes_and_a_second_run_changes_nothing(dataset, tmp_path):
    out = tmp_path / "dataset"
    assert run(*BUILD, "--out", str(out)).returncode == 0
    assert tree(out) == tree(dataset)
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    assert run(*BUILD, "--out", str(out)).returncode == 0
    assert before == {p: p.stat().st_mtime_ns for p in out.rglob("*")}


def test_killed_anywhere_it_goes_on_to_the_same_bytes(dataset, tmp_path):
    out = tmp_path / "dataset"
    rng = random.Random(int(os.environ.get("PROTOSCORE_TEST_SEED", "7")))
    command = [sys.executable, *BUILD, "--out", str(out)]
    for _ in range(4):
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(1.0, 6.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
    result = run(*BUILD, "--out", str(out))
    assert result.returncode == 0, result.stderr
    assert tree(out) == tree(dataset)
    assert not [path for path in tmp_path.rglob(".*") if path.name != ".lock"], "what the killed ones left is swept"


@pytest.mark.parametrize(
    ("option", "named"),
    [
        (["--seed", "5"], "seed: 4 there, 5 now"),
        (["--triplets", "40"], "triplets: 160 there, 40 now"),
        (["--domains", "objects"], 'domains: ["animals", "objects", "demography"] there, ["objects"] now'),
        (["--split", "test"], 'split: null there, "test" now'),
        (["--drawable"], "drawable: false there, true now"),
        (["-o", "size=64", "--size", "64"], "generator.options.size: 96 there, 64 now"),
    ],
)
def test_other_parameters_do_not_overwrite_a_build(dataset, tmp_path, option, named):
    """Also where the dataset itself was removed: its work is named, which is what has to go."""
    work = tmp_path / "dataset.work"
    shutil.copytree(dataset.with_name("dataset.work"), work)
    with pytest.raises(DatasetError, match=re.escape(named)) as refusal:
        script()["build"]([*BUILD[1:], *option, "--out", str(tmp_path / "dataset")])
    assert f"{work} holds" in str(refusal.value) and "\n" not in str(refusal.value) and not (tmp_path / "dataset").exists()


def test_two_builds_at_once_are_one_and_a_refusal(tmp_path):
    arguments = [
        sys.executable,
        BUILD[0],
        "--triplets",
        "60",
        "--renditions",
        "1",
        "--size",
        "48",
        "--out",
        str(tmp_path / "d"),
    ]
    some = [subprocess.Popen(arguments, cwd=ROOT, text=True, stdout=-1, stderr=-1) for _ in range(3)]
    said = [(process.communicate()[1], process.returncode) for process in some]
    assert 0 in [code for _, code in said]
    assert all(code == 0 or (code == 2 and "another process" in text and text.count("\n") == 1) for text, code in said)
    assert read_manifest(tmp_path / "d")["rows"]["triplets/test"] > 0
    assert not [path for path in tmp_path.rglob(".*") if path.name != ".lock"]


def test_a_configuration_file_says_the_same_as_the_command_line(dataset, tmp_path):
    """The work of the command line's build is taken up, so every parameter is the same; a mistake has file and line."""
    shutil.copytree(dataset.with_name("dataset.work"), tmp_path / "dataset.work")
    file = tmp_path / "small.yaml"
    file.write_text(
        "generator: {name: scene, options: {size: 96}}\nfilters: [geometric]\ntriplets: 160\nrenditions: 2\nseed: 9\n"
    )
    result = run(BUILD[0], "--config", str(file), "--seed", "4", "--out", str(tmp_path / "dataset"))
    assert result.returncode == 0, result.stderr
    assert tree(tmp_path / "dataset") == tree(dataset)
    file.write_text("triplets: 160\nrendition: 2\n")
    with pytest.raises(ConfigError, match=re.escape(f"{file}:2: rendition: unknown key")):
        script()["build"](["--config", str(file), "--out", str(tmp_path / "other")])


@pytest.mark.parametrize("option", [["--taxonomy", "pyproject.toml"], ["--triplets", "0"], ["--size", "none"]])
def test_bad_input_is_one_line_and_leaves_nothing(tmp_path, option):
    result = run("dataset_scripts/protobias/build.py", "--out", str(tmp_path / "d"), *option)
    assert result.returncode == 2 and "Traceback" not in result.stderr
    assert not (tmp_path / "d").exists()


def test_a_folder_of_somebody_elses_is_never_touched(dataset, tmp_path):
    out = tmp_path / "dataset"
    shutil.copytree(dataset.with_name("dataset.work"), tmp_path / "dataset.work")
    out.mkdir()
    (out / "thesis.txt").write_text("three years of work")
    result = run(*BUILD, "--out", str(out))
    assert result.returncode == 2 and "holds something else" in result.stderr
    assert tree(out) == {"thesis.txt": b"three years of work"} and not list(tmp_path.glob("*/.draft*"))


def test_only_triplets_can_be_drawn(dataset):
    with pytest.raises(DatasetError, match="made by 'images', and this command needs the output of 'triplets'"):
        list(load("benchmarks", f"protobias:{dataset}.work/images").pictures())
    foiled = sum(triplet.has_foils for triplet in read_triplets(dataset.with_name("dataset.work") / "triplets"))
    pictures = list(load("benchmarks", f"protobias:{dataset}.work/triplets", renditions=2).pictures())
    assert len(pictures) == 2 * (160 * 4 + foiled * 6) and foiled > 140


def test_the_training_quota_cuts_all_domains_alike(tmp_path):
    arguments = ["--triplets", "150", "--renditions", "1", "--size", "32", "--drawable", "--train-pairs", "60"]
    assert run(BUILD[0], *arguments, "--out", str(tmp_path / "d")).returncode == 0
    counts = Counter(pq.read_table(tmp_path / "d" / "pairs" / "train-00000.parquet", columns=["domain"])["domain"].to_pylist())
    assert sum(counts.values()) == 60 and min(counts.values()) >= 8 and len(counts) == 3


def test_a_rejected_picture_takes_its_pair_out_and_is_kept_with_its_reason(dataset, tmp_path):
    """Hide one picture's subject in the geometry that the generator noted: the filter must see it, and only it go."""
    work = tmp_path / "work"
    shutil.copytree(dataset.with_name("dataset.work"), work)
    path = work / "images" / "part-00000.parquet"
    table = pq.read_table(path)
    rows = table.to_pylist()
    before = read_manifest(work / "filter")["counts"]["rejected"]
    whole = {
        (r["triplet"], r["rendition"]) for p in (dataset / "controls").glob("*.parquet") for r in pq.read_table(p).to_pylist()
    }
    hidden = next(r for r in rows if r["cell"] == "non_correct" and (r["triplet"], int(r["rendition"])) in whole)
    rendition = int(hidden["rendition"])
    geometry = json.loads(hidden["geometry"])
    subject = next(element for element in geometry if element[0] == "subject")
    subject[-1] = 0.2
    hidden["geometry"] = json.dumps(geometry)
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path)
    shutil.rmtree(work / "filter")
    counts = filter_pictures(work / "images", [load("image_filters", "geometric")], work / "filter")
    assert counts["rejected"] == before + 1
    facts = write_configs(work / "triplets", work / "images", work / "filter", tmp_path / "out", train_pairs=12_000)

    assert facts["rows"].get("rejected/train", 0) + facts["rows"].get("rejected/test", 0) == before + 1
    rejected = [row for p in (tmp_path / "out" / "rejected").glob("*.parquet") for row in pq.read_table(p).to_pylist()]
    (mine,) = (
        r for r in rejected if (r["triplet"], r["rendition"], r["cell"]) == (hidden["triplet"], rendition, "non_correct")
    )
    assert mine["score"] < 8 and "hidden" in mine["why"] and mine["image"] == hidden["image"]
    for config in ("pairs", "controls"):
        before, after = (
            {(r["triplet"], r["rendition"]) for p in (d / config).glob("*.parquet") for r in pq.read_table(p).to_pylist()}
            for d in (dataset, tmp_path / "out")
        )
        assert before - after == {(hidden["triplet"], rendition)} and not after - before
