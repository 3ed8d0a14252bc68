"""Triplets as a stage folder, and the pictures that they want."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from protoscore.benchmarks.protobias.schema import Cell, Foil, Triplet
from protoscore.folder import claimed, parts, read_manifest, read_rows, write_manifest, write_table
from protoscore.generators import Wanted
from protoscore.schema import derive_seed


def write_triplets(out: Path, triplets: Iterable[Triplet], parameters: dict[str, Any]) -> int:
    """Store triplets as a stage folder and return how many there are.

    Raises:
        DatasetError: ``out`` holds something else.
    """
    out, parameters = Path(out), {"benchmark": "protobias"} | parameters
    with claimed(out, "triplets", parameters):
        rows = [t.model_dump() for t in triplets]
        schema = pa.schema([(name, pa.string()) for name in Triplet.model_fields])
        write_table(out / "part-00000.parquet", pa.Table.from_pylist(rows, schema))
        write_manifest(out, "triplets", parameters, rows=len(rows))
    return len(rows)


def read_triplets(folder: Path) -> list[Triplet]:
    """Every triplet of a folder that :func:`write_triplets` made.

    Raises:
        DatasetError: it is another folder.
    """
    read_manifest(folder, "triplets")
    return [Triplet.model_validate(row) for row in read_rows(parts(folder))]


def wanted_pictures(
    triplets: Iterable[Triplet], renditions: int = 1, seed: int = 0, nuisance: bool = False
) -> Iterator[Wanted]:
    """``renditions`` pictures of each cell of every triplet, and of each foil where it has them.

    The pictures of a triplet and rendition are a set: one seed, so that what no text states is equal in them, and of use
    together only, so that one that cannot be drawn leaves all of them out.

    Args:
        nuisance: a seed for each picture, so that sides, sizes, colours and people differ too.
    """
    for triplet in triplets:
        for rendition in range(renditions):
            group = f"{triplet.id}-{rendition}"
            for picture in (*Cell, *Foil) if triplet.has_foils else Cell:
                own = (picture.value,) if nuisance else ()
                yield Wanted(
                    f"{group}-{picture.value}", triplet.description(picture), derive_seed(seed, triplet.id, rendition, *own),
                    triplet.scene(picture), {"triplet": triplet.id, "rendition": str(rendition), "cell": picture.value}, group,
                )  # fmt: skip
