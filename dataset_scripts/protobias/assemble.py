"""Join pictures and filter verdicts into the published configs, and write the card."""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from card import write_card
from datasets import Features, Image, Value
from rich.progress import track

from protoscore.benchmarks.protobias.schema import DOMAINS, Cell, Triplet, features
from protoscore.errors import DatasetError
from protoscore.filters import KEEP_FROM
from protoscore.folder import MANIFEST, manifest_hash, parts, plain_disk_errors, read_manifest, read_rows, write_manifest
from protoscore.images import read_triplets
from protoscore.schema import Status, content_id

HUMAN_PER_DOMAIN = 300  # paper, section 5: 900 test examples, 300 a domain
ROWS_PER_FILE = 5_000
PAIR_CELLS = {Cell.NON_CORRECT: "correct", Cell.PROTO_VIOLATED: "adversarial"}


def assemble(work: Path, out: Path, train_pairs: int) -> dict[str, int]:
    """Write configs ``triplets``, ``pairs``, ``controls``, ``human`` and ``rejected`` to ``out``; return rows by file.

    Everything is written beside ``out`` first and moved there at the end, so a half-made dataset is never seen.

    Raises:
        DatasetError: ``out`` exists and holds something else; it is left as it is.
    """
    with plain_disk_errors(out):
        draft, rows = _draft(work, out, train_pairs)
        if not out.exists():
            draft.rename(out)
        elif not (out / MANIFEST).is_file() or manifest_hash(out) != manifest_hash(draft):
            shutil.rmtree(draft)
            raise DatasetError(f"{out} exists and holds something else; choose another --out, or delete that folder")
        shutil.rmtree(draft, ignore_errors=True)
    return rows


def _draft(work: Path, out: Path, train_pairs: int) -> tuple[Path, dict[str, int]]:
    draft = out.with_name(out.name + ".draft")
    shutil.rmtree(draft, ignore_errors=True)
    triplets = {t.id: t for t in read_triplets(work / "triplets")}
    writers = _Writers(draft)
    quota = {"train": train_pairs}
    human = _human(work, triplets)
    both = list(zip(parts(work / "images"), parts(work / "filter"), strict=True))
    for images, verdicts in track(both, description="assembling"):
        for group in _groups(images, verdicts):
            _publish(writers, triplets[group[0]["triplet"]], group, quota, human)
    for triplet in triplets.values():
        writers.add("triplets", triplet.split, triplet.model_dump())
    rows = writers.close()
    images = read_manifest(work / "images")
    facts = {
        "rows": rows, "photographic": images["photographic"], "refusals": images["refusals"],
        "filter": read_manifest(work / "filter")["counts"], "parameters_of_images": images["parameters"],
        "human": dict(Counter(triplets[triplet].domain for triplet, _ in sorted(human))),
    }  # fmt: skip
    write_manifest(draft, "dataset", {"train_pairs": train_pairs}, parent=work / "filter", **facts)
    columns = {config: config_features(config) for config in dict.fromkeys(key.split("/")[0] for key in rows)}
    write_card(draft, read_manifest(draft), list(triplets.values()), columns)
    return draft, rows


def _human(work: Path, triplets: dict[str, Triplet]) -> set[tuple[str, int]]:
    """The pairs to annotate: the same number a domain where there are enough, different triplets first."""
    kept: dict[tuple[str, int], set[str]] = {}
    for row in read_rows(parts(work / "filter")):
        if row["score"] is not None and row["score"] >= KEEP_FROM:
            kept.setdefault((row["triplet"], row["rendition"]), set()).add(row["cell"])
    chosen: set[tuple[str, int]] = set()
    for domain in DOMAINS:
        pairs = [
            (rendition, content_id("human", triplet), triplet)
            for (triplet, rendition), cells in kept.items()
            if cells >= PAIR_CELLS.keys() and triplets[triplet].split == "test" and triplets[triplet].domain == domain
        ]
        chosen |= {(triplet, rendition) for rendition, _, triplet in sorted(pairs)[:HUMAN_PER_DOMAIN]}
    return chosen


def _groups(images: Path, verdicts: Path) -> Iterator[list[dict[str, Any]]]:
    """The cells of one triplet and rendition, each with its picture and its verdict."""
    group: list[dict[str, Any]] = []
    for image, verdict in zip(read_rows([images]), read_rows([verdicts]), strict=True):
        row = image | {"score": verdict["score"], "why": verdict["reason"]}
        if group and (group[0]["triplet"], group[0]["rendition"]) != (row["triplet"], row["rendition"]):
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def _publish(
    writers: _Writers, triplet: Triplet, group: list[dict], quota: dict[str, int], human: set[tuple[str, int]]
) -> None:
    """Put one rendition where it belongs: kept pairs and controls by split, rejected pictures apart."""
    if any(cell["status"] != Status.OK for cell in group):
        return  # refused: counted in the manifest, nothing to publish
    for cell in group:
        if cell["score"] < KEEP_FROM:
            row = {key: cell[key] for key in ("triplet", "rendition", "cell", "score", "why")}
            writers.add("rejected", triplet.split, row | {"image": _image(cell)})
    cells = {Cell(cell["cell"]): cell for cell in group if cell["score"] >= KEEP_FROM}
    if not PAIR_CELLS.keys() <= cells.keys():
        return
    if triplet.split == "train":
        if quota["train"] == 0:
            return
        quota["train"] -= 1
    base = triplet.model_dump() | {"triplet": triplet.id, "rendition": group[0]["rendition"], "generator": "scene"}
    pair = base | _columns({name: cells[cell] for cell, name in PAIR_CELLS.items()})
    writers.add("pairs", triplet.split, pair)
    if len(cells) == len(Cell):
        writers.add("controls", triplet.split, base | _columns({cell.value: cells[cell] for cell in Cell}))
    if (triplet.id, group[0]["rendition"]) in human:
        # Which side is which is settled here, so that every annotator sees the same order.
        swap = int(content_id("side", triplet.id), 16) % 2 == 1
        writers.add("human", "test", pair | {"left": "adversarial" if swap else "correct"})


def _columns(cells: dict[str, dict]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name, cell in cells.items():
        columns |= {f"{name}_image": _image(cell), f"{name}_filter_score": cell["score"]}
    return columns


def _image(cell: dict) -> dict[str, Any]:
    digest = hashlib.sha256(cell["image"]).hexdigest()[:12]
    return {"bytes": cell["image"], "path": f"{cell['triplet']}-{cell['rendition']}-{cell['cell']}-{digest}.png"}


def config_features(config: str) -> Features:
    """The column types of a published config."""
    if config == "human":
        return Features(features("pairs") | {"left": Value("string")})
    if config == "rejected":
        text = {name: Value("string") for name in ("triplet", "cell", "why")}
        return Features(text | {"rendition": Value("int32"), "score": Value("int32"), "image": Image()})
    return features(config)


class _Writers:
    """Open Parquet files by config and split. Rows go out in groups of at most 200, so that memory stays flat."""

    def __init__(self, root: Path):
        self._root = root
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._open: dict[str, pq.ParquetWriter] = {}
        self.counts: Counter[str] = Counter()

    def add(self, config: str, split: str, row: dict[str, Any]) -> None:
        key = f"{config}/{split}"
        self._rows.setdefault(key, []).append(row)
        self.counts[key] += 1
        if len(self._rows[key]) == 200:
            self._flush(key)

    def _flush(self, key: str) -> None:
        config = key.split("/")[0]
        schema = config_features(config).arrow_schema
        number = (self.counts[key] - 1) // ROWS_PER_FILE
        name = f"{key}-{number:05d}.parquet"
        if name not in self._open:
            self._close(key)
            path = self._root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            options = {"compression": "snappy", "use_content_defined_chunking": True, "write_page_index": True}
            self._open[name] = pq.ParquetWriter(path, schema, **options)
        columns = schema.names
        rows = [{column: row.get(column) for column in columns} for row in self._rows[key]]
        self._open[name].write_table(pa.Table.from_pylist(rows, schema))
        self._rows[key] = []

    def _close(self, prefix: str) -> None:
        for name in [n for n in self._open if n.startswith(prefix)]:
            self._open.pop(name).close()

    def close(self) -> dict[str, int]:
        for key in [key for key, rows in self._rows.items() if rows]:
            self._flush(key)
        self._close("")
        expected = {f"{c}/{s}" for c in ("triplets", "pairs", "controls") for s in ("train", "test")} | {"human/test"}
        return {key: self.counts[key] for key in sorted(expected | set(self.counts))}
