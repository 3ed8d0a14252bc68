"""Stage: each picture is scored 1-10 against its own description; a pair is kept when all its pictures reach 8.

Never contrastive: a filter sees one picture and what that picture was to show (paper, section 4.2).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from rich.progress import track

from protoscore.benchmarks.protobias.schema import Cell
from protoscore.catalog import load
from protoscore.folder import claim, parts, read_rows, write_manifest, write_table
from protoscore.images import read_triplets
from protoscore.scenes.spec import SceneSpec
from protoscore.schema import Status

KEEP_FROM = 8  # of 10; "main subject and controlled attributes are present with at most minor ambiguity"

SCHEMA = pa.schema(
    [
        ("triplet", pa.string()),
        ("rendition", pa.int32()),
        ("cell", pa.string()),
        ("status", pa.string()),
        ("score", pa.int32()),
        ("reason", pa.string()),
    ]
)


class Shown(NamedTuple):
    """What a filter may look at."""

    image: bytes
    description: str
    scene: SceneSpec
    geometry: list | None


def filter_images(triplets: Path, images: Path, out: Path, name: str = "geometric") -> dict[str, int]:
    """Score every picture of ``images`` and return how many were kept, rejected and refused."""
    check = load("image_filters", name)
    parameters = {"filter": name, "keep_from": KEEP_FROM}
    claim(out, "filter", parameters, parent=images)
    known = {t.id: t for t in read_triplets(triplets)}
    counts = {"kept": 0, "rejected": 0, "refused": 0}
    for path in track(parts(images), description="filtering", disable=len(parts(images)) < 10):
        rows = []
        for row in read_rows([path]):
            cell, triplet = Cell(row["cell"]), known[row["triplet"]]
            verdict = {"triplet": row["triplet"], "rendition": row["rendition"], "cell": row["cell"], "status": row["status"]}
            if row["status"] == Status.OK:
                geometry = json.loads(row["geometry"]) if row["geometry"] else None
                score, reason = check(Shown(row["image"], triplet.description(cell), triplet.scene(cell), geometry))
                counts["kept" if score >= KEEP_FROM else "rejected"] += 1
            else:
                score, reason = None, row["reason"]
                counts["refused"] += 1
            rows.append(verdict | {"score": score, "reason": reason})
        write_table(out / path.name, pa.Table.from_pylist(rows, SCHEMA))
    write_manifest(out, "filter", parameters, parent=images, counts=counts)
    return counts
