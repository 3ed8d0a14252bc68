"""Reading a four-cell dataset, from a folder or by Hub id, one picture at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from protoscore.errors import DatasetError
from protoscore.folder import MANIFEST, parts, read_manifest, read_rows
from protoscore.schema import Cell

_TEXT = ("triplet", "rendition", "domain", "knob", "text")


class Item(NamedTuple):
    """One picture and the neutral text that it is scored under."""

    id: str  # of the row: triplet and rendition
    triplet: str
    cell: str
    domain: str
    knob: str
    text: str
    image: bytes


def items(source: str, split: str = "test", limit: int | None = None, images: bool = True) -> Iterator[Item]:
    """Every cell of the ``controls`` config of ``source``, row by row.

    Args:
        source: a folder made by ``dataset_scripts/protobias/build.py``, or a Hub id.
        limit: rows (four pictures each) to stop after.
        images: leave the bytes out (empty) to count rows fast.

    Raises:
        DatasetError: the folder is no such dataset.
    """
    for row in islice(rows(source, split, images), limit):
        name = f"{row['triplet']}-{row['rendition']}"
        for cell in Cell:
            data = row[f"{cell.value}_image"]["bytes"] if images else b""
            yield Item(name, row["triplet"], cell.value, row["domain"], row["knob"], row["text"], data)


def rows(source: str, split: str = "test", images: bool = True) -> Iterator[dict[str, Any]]:
    """Rows of the ``controls`` config, pictures undecoded."""
    columns = [*_TEXT, *(f"{cell.value}_image" for cell in Cell if images)]
    folder = Path(source)
    if folder.exists():
        # Read as files and not by load_dataset(folder): its cache would serve the rows of an earlier build of that name.
        found = parts(folder / "controls", f"{split}-*.parquet")
        if not found:
            raise DatasetError(
                f"{source} is no four-cell dataset: no controls/{split}-*.parquet; dataset_scripts/protobias/build.py makes one"
            )
        yield from read_rows(found, columns, batch=16)
    else:
        yield from _hub_rows(source, split, columns)


def _hub_rows(source: str, split: str, columns: list[str]) -> Iterator[dict[str, Any]]:
    import datasets

    try:
        data = datasets.load_dataset(source, "controls", split=split, streaming=True)
    except Exception as error:  # the library raises its own kinds, the Hub client's and plain OSError
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise DatasetError(f"{source!r} is neither a folder here nor a dataset that can be loaded ({first})") from error
    data = data.select_columns(columns)
    for column in columns:
        if column.endswith("_image"):
            data = data.cast_column(column, datasets.Image(decode=False))
    yield from data


def is_scenes(source: str) -> bool | None:
    """Whether the pictures are drawn scenes; None when the dataset does not say (a Hub id, a hand-made folder)."""
    folder = Path(source)
    if not (folder / MANIFEST).is_file():
        return None
    return not read_manifest(folder).get("photographic", False)
