"""The kit for building datasets: a second dataset needs its rows and a template, and can be published as it comes out."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from datasets import Features, Image, Value, load_dataset

import protoscore.publishing.datasets as kit
from protoscore.errors import DatasetError
from protoscore.folder import write_manifest
from protoscore.publishing import Kind
from protoscore.publishing.dataset_card import size_category, write_card
from protoscore.publishing.datasets import DatasetTables, drafted
from protoscore.publishing.files import collect
from protoscore.publishing.kinds import check
from tests.controls import png

FEATURES = {
    "faces": Features({"name": Value("string"), "image": Image()}),
    "texts": Features({"name": Value("string")}),
}
TEMPLATE = """---
pretty_name: Toy
license: mit
language: [en]
task_categories: [image-classification]
size_categories: [{{ size_category }}]
tags: [toy]
{{ configs }}
{{ dataset_info }}
---

# Toy

{{ count }} faces, MIT, made with {{ version }}.
"""


def build(out: Path, work: Path, count: int = 7) -> dict[str, int]:
    template = work / "card.md.jinja"
    template.write_text(TEMPLATE)
    with drafted(out, work) as draft:
        tables = DatasetTables(draft, FEATURES)
        for n in range(count):
            tables.add("faces", "test", {"name": f"face {n}", "image": {"bytes": png("kit", n, size=16), "path": f"{n}.png"}})
            tables.add("texts", "train" if n % 2 else "test", {"name": f"text {n}", "image": "left out"})
        rows = tables.close()
        write_card(draft, template, FEATURES, rows, default="faces", count=count)
        write_manifest(draft, "dataset", {"count": count}, rows=rows)
    return rows


@pytest.fixture
def work(tmp_path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_what_comes_out_can_be_published_and_loads(work, tmp_path):
    out = tmp_path / "toy"
    assert build(out, work) == {"faces/test": 7, "texts/test": 4, "texts/train": 3}
    metadata = check(Kind.DATASET, out, collect(out), "org/toy")
    assert metadata.size_categories == ["n<1K"] and [c.config_name for c in metadata.configs if c.default] == ["faces"]
    loaded = load_dataset(str(out), "texts", split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded["name"] == ["text 1", "text 3", "text 5"]


def test_files_are_bounded_by_rows_and_by_bytes_and_lose_none(work, tmp_path, monkeypatch):
    monkeypatch.setattr(kit, "ROWS_PER_GROUP", 2)
    monkeypatch.setattr(kit, "ROWS_PER_FILE", 5)
    build(tmp_path / "rows", work, 12)
    one = len(png("kit", 0, size=16))
    monkeypatch.setattr(kit, "BYTES_PER_FILE", 3 * one)
    build(tmp_path / "bytes", work, 12)
    for name, expected in (("rows", [5, 5, 2]), ("bytes", [3, 3, 3, 3])):
        files = sorted((tmp_path / name / "faces").glob("*.parquet"))
        assert [pq.read_metadata(path).num_rows for path in files] == pytest.approx(expected, abs=1)
        assert [row for path in files for row in pq.read_table(path)["name"].to_pylist()] == [f"face {n}" for n in range(12)]
        check(Kind.DATASET, tmp_path / name, collect(tmp_path / name), "org/toy")


def test_a_draft_is_seen_when_it_is_whole_and_only_then(work, tmp_path):
    out = tmp_path / "toy"
    with pytest.raises(KeyboardInterrupt), drafted(out, work) as draft:
        (draft / "half").write_text("half")
        raise KeyboardInterrupt
    left = work / ".draft-0123456789ab"  # of a process that was killed
    left.mkdir()
    build(out, work)
    assert not list(work.glob(".draft-*"))
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    build(out, work)  # the same again changes nothing
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    with pytest.raises(DatasetError, match="holds something else"):
        build(out, work, count=8)
    (out / "texts" / "test-00000.parquet").unlink()
    with pytest.raises(DatasetError, match=r"damaged: texts/test-00000\.parquet"):
        build(out, work)
    assert json.loads((out / "manifest.json").read_text())["rows"]["faces/test"] == 7


def test_size_categories_are_the_hubs():
    assert [size_category(n) for n in (0, 999, 1000, 10**5, 10**7)] == ["n<1K", "n<1K", "1K<n<10K", "100K<n<1M", "n>10M"]
