"""What is judged: items with pictures and named fields, from a four-cell dataset, any other dataset, or a folder."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from protoscore.benchmarks.protobias.cells import CellRows
from protoscore.errors import DatasetError
from protoscore.folder import parts, read_rows
from protoscore.sources.rows import Row

PICTURES = {".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp"}


@dataclass(frozen=True)
class Items:
    """A source of items that can be read again and again, one item at a time.

    Args:
        source: a folder made by ``dataset_scripts/protobias/build.py`` (its four cells become four items), a folder of Parquet
            files, a folder of pictures (with a ``metadata.csv`` whose ``file_name`` and ``*_file_name`` columns name them, or
            without), or a Hub dataset id.
        split: of a dataset.
        images: columns that hold the pictures, in order; empty: every column that does.
        fields: prompt field -> column, where they differ.
        id_column: column of unique names; without one, rows are numbered.
        limit: rows to stop after.
    """

    source: str
    split: str = "test"
    images: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    id_column: str | None = None
    limit: int | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """What names these items in a manifest: no path, since folders move."""
        source = {"items": Path(self.source).name} if Path(self.source).exists() else {"items": self.source}
        return source | {name: value for name, value in vars(self).items() if name != "source" and value}

    def __iter__(self) -> Iterator[Row]:
        """Every item.

        Raises:
            DatasetError: the source is none of the kinds above, or lacks a column.
        """
        folder = Path(self.source)
        if folder.is_dir() and parts(folder / "controls", f"{self.split}-*.parquet"):
            return self._cells()
        return islice(self._rows(folder), self.limit)

    def _cells(self) -> Iterator[Row]:
        source = CellRows(self.source, self.split, self.limit)
        for row in source.rows():
            yield row._replace(fields=self._mapped(dict(row.fields)))

    def _rows(self, folder: Path) -> Iterator[Row]:
        for number, row in enumerate(self._source_rows(folder)):
            columns = self.images or tuple(name for name, value in row.items() if _is_picture(value))
            missing = [name for name in (*columns, *([self.id_column] if self.id_column else [])) if name not in row]
            if missing or not columns:
                held = ", ".join(row)
                raise DatasetError(
                    f"{self.source} has no column {missing[0]!r}; it has: {held}" if missing
                    else f"{self.source} has no column of pictures (it has: {held}); name it with --image COLUMN"
                )  # fmt: skip
            facts = {name: value for name, value in row.items() if name not in columns and not _is_picture(value)}
            name = str(row[self.id_column]) if self.id_column else str(row.get("id") or f"{number:06d}")
            yield Row(name, tuple(_bytes(row[column], self.source) for column in columns), self._mapped(facts))

    def _mapped(self, facts: dict[str, Any]) -> dict[str, Any]:
        for name, column in self.fields.items():
            if column not in facts:
                raise DatasetError(f"{self.source} has no column {column!r} for the field {name!r}; it has: {', '.join(facts)}")
        return facts | {name: facts[column] for name, column in self.fields.items()}

    def _source_rows(self, folder: Path) -> Iterator[dict[str, Any]]:
        if not folder.exists():
            return _hub_rows(self.source, self.split)
        if folder.is_file():
            raise DatasetError(f"{self.source} is a file; give its folder, or a Hub dataset id")
        found = sorted(folder.rglob(f"{self.split}-*.parquet")) or sorted(folder.rglob("*.parquet"))
        if found:
            return read_rows(found, batch=16)
        listed = sorted(folder.glob("metadata.csv")) or sorted(folder.glob("*.csv"))
        if len(listed) > 1:
            raise DatasetError(f"{self.source} has {len(listed)} CSV files; name the one that lists the pictures metadata.csv")
        return _listed_rows(folder, listed[0]) if listed else _pictures(folder)


def _hub_rows(source: str, split: str) -> Iterator[dict[str, Any]]:
    import datasets

    try:
        data = datasets.load_dataset(source, split=split, streaming=True)
    except Exception as error:  # the library raises its own kinds, the Hub client's and plain OSError
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise DatasetError(f"{source!r} is neither a folder here nor a dataset that can be loaded ({first})") from error
    for name, feature in (data.features or {}).items():
        if isinstance(feature, datasets.Image):
            data = data.cast_column(name, datasets.Image(decode=False))
    yield from data


def _listed_rows(folder: Path, listing: Path) -> Iterator[dict[str, Any]]:
    """Rows of a CSV beside pictures; ``file_name`` becomes the column ``image``, ``left_file_name`` the column ``left``."""
    with listing.open(encoding="utf-8-sig", newline="") as handle:
        reader = csv.DictReader(handle)
        names = [name for name in reader.fieldnames or [] if name == "file_name" or name.endswith("_file_name")]
        if not names:
            raise DatasetError(f"{listing} has no column file_name; it names the picture of each row")
        for row in reader:
            pictures = {name[: -len("_file_name")] or "image": _inside(folder, row[name] or "", listing) for name in names}
            yield {name: value for name, value in row.items() if name and name not in names} | pictures


def _inside(folder: Path, name: str, listing: Path) -> dict[str, bytes]:
    """A picture of a listing; a name that leads out of the folder is refused."""
    path = (folder / name).resolve()
    if not name or folder.resolve() not in path.parents or not path.is_file():
        raise DatasetError(f"{listing} names the picture {name!r}, which is not in {folder}")
    return {"bytes": path.read_bytes()}


def _pictures(folder: Path) -> Iterator[dict[str, Any]]:
    found = sorted(path for path in folder.iterdir() if path.suffix.lower() in PICTURES)
    if not found:
        raise DatasetError(f"{folder} holds no pictures, no Parquet files and no dataset; give a folder that does, or a Hub id")
    for path in found:
        yield {
            "id": path.stem if len({p.stem for p in found}) == len(found) else path.name,
            "image": {"bytes": path.read_bytes()},
        }


def _is_picture(value: Any) -> bool:
    return isinstance(value, bytes) or (isinstance(value, dict) and "bytes" in value)


def _bytes(value: Any, source: str) -> bytes:
    data = value.get("bytes") if isinstance(value, dict) else value
    if not isinstance(data, bytes):
        raise DatasetError(f"{source} holds a picture column without picture bytes; embed the pictures when you save it")
    return data
