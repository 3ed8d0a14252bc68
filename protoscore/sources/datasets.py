"""Rows of any dataset: a folder of pictures, a table, Parquet files, a Hub id, or a finished run of questions.

A folder holds Parquet files (of one split, in whatever subfolders; pictures as bytes or as paths beside the file), or pictures,
perhaps with a ``metadata.csv``, ``.jsonl`` or another table whose ``file_name`` and ``*_file_name`` columns name them. A row
needs no picture: a table of texts is a source too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from protoscore.errors import DatasetError
from protoscore.folder import MANIFEST, read_manifest
from protoscore.sources.pictures import named_inside, natural, pictures_below, refuse
from protoscore.sources.records import HubRecords, ListedRecords, ParquetRecords, Records, parquet_files, picture_bytes
from protoscore.sources.rows import TEXT, Row
from protoscore.sources.tables import is_table, read_table

TEXTS = (TEXT, "prompt", "caption")  # the first that a dataset has is what a picture is scored under
LISTINGS = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
FILE_NAME = "file_name"
TABLES = {"score": "scores.parquet", "embed": "embeddings.parquet", "filter": "kept.parquet"}  # what a finished run is read as


class DatasetRows:
    """The records of a dataset as :class:`protoscore.sources.rows.Rows`.

    Args:
        source: what the user named.
        images: columns that hold the pictures, in order; empty: every column that does.
        fields: field -> column, where they differ.
        id_column: column of unique names; by default ``id`` where there is one, and numbers where there is none.

    Raises:
        DatasetError: the source is none of the kinds of this module, or lacks a column.
    """

    columns: Sequence[str] = ("prompt", "image")

    def __init__(
        self, source: str, split: str = "test", images: Sequence[str] = (), fields: Mapping[str, str] | None = None,
        id_column: str | None = None, records: Records | None = None,
    ):  # fmt: skip
        self.source, self._id = source, id_column
        folder = Path(source)
        self._records = records or records_of(source, split)
        self._images, self._fields = tuple(images) or tuple(self._records.pictures), dict(fields or {})
        wanted = [*self._images, *self._fields.values(), *([id_column] if id_column else [])]
        for name in wanted:
            if name not in self._records.columns:
                raise DatasetError(f"{source} has no column {name!r}; it has: {', '.join(self._records.columns)}")
        self.parent = folder if (folder / MANIFEST).is_file() else None
        made = read_manifest(self.parent) if self.parent else {}
        self.scenes = not made["photographic"] if "photographic" in made else None
        chosen = {"images": list(images), "fields": dict(self._fields), "id": id_column, "split": split}
        self.parameters: dict[str, Any] = {name: value for name, value in chosen.items() if value}
        if self._records.revision:
            self.parameters["revision"] = self._records.revision

    def __len__(self) -> int:
        return len(self._records)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        stop = len(self) if stop is None else min(stop, len(self))
        for number, record in enumerate(self._records.read(start, stop), start):
            yield self._row(number, record)

    def _row(self, number: int, record: dict[str, Any]) -> Row:
        fields = {name: value for name, value in record.items() if name not in self._records.pictures}
        fields |= {name: record[column] for name, column in self._fields.items()}
        text = next((fields[name] for name in TEXTS if fields.get(name) is not None), None)
        given = record.get(self._id or "id")
        row_id = str(given) if given is not None else f"{number:06d}"
        paths = [(record[name] or {}).get("path") for name in self._images]
        named = {"image": next((path for path in paths if path), row_id)} if self._images else {}
        facts = {TEXT: text, "prompt": text} if text is not None else {}
        return Row(row_id, tuple(picture_bytes(record[name]) for name in self._images), named | facts | fields)

    def fingerprint(self) -> str | None:
        return self._records.fingerprint()


def records_of(source: str, split: str) -> Records:
    """The records behind a source.

    Raises:
        DatasetError: it is none of the kinds of this module.
    """
    place = Path(source)
    if not place.exists():
        return HubRecords(source, split)
    if place.is_file():
        if not is_table(place):
            raise DatasetError(f"{source} is not a table, a folder or a Hub dataset id")
        return _listed(place.parent, place)
    stage = read_manifest(place)["stage"] if (place / MANIFEST).is_file() else ""
    if stage == "judge":
        return replies_of(place)
    if stage in TABLES and (place / TABLES[stage]).is_file():
        return ParquetRecords([place / TABLES[stage]])
    if files := parquet_files(place, split):
        return ParquetRecords(files)
    tables = [place / name for name in LISTINGS if (place / name).is_file()] or sorted(place.glob("*.csv"))
    if len(tables) > 1:
        raise DatasetError(f"{source} has {len(tables)} lists; name the one that lists the pictures metadata.csv")
    return _listed(place, tables[0]) if tables else _pictures(place)


def _listed(folder: Path, listing: Path) -> Records:
    """Rows of a table; ``file_name`` becomes the picture column ``image``, ``left_file_name`` the column ``left``."""
    lines = read_table(listing)
    names = [name for name in lines[0].values if name == FILE_NAME or name.endswith(f"_{FILE_NAME}")]
    empty = [f"line {line.number}" for line in lines for name in names if not line.values.get(name)]
    refuse(empty, "{} line(s) of " + f"{listing} name no picture")
    files = named_inside(folder, [line.values[name] for line in lines for name in names])
    columns = {name: name.removesuffix(FILE_NAME).rstrip("_") or "image" for name in names}

    def pictures(record: dict[str, Any]) -> dict[str, Path]:
        return {columns[name]: files[record[name]][1] for name in names}

    return ListedRecords([line.values for line in lines], pictures, [listing])


def _pictures(folder: Path) -> Records:
    below = pictures_below(folder)
    files = below.pictures
    if not files:
        raise DatasetError(f"{folder} holds no pictures, no Parquet files and no dataset; give a folder that does, or a Hub id")
    stems = {str(Path(name).with_suffix("")) for name in files}
    records = [{"id": str(Path(name).with_suffix("")) if len(stems) == len(files) else name, FILE_NAME: name} for name in files]
    return ListedRecords(sorted(records, key=lambda r: natural(r[FILE_NAME])), lambda r: {"image": files[r[FILE_NAME]]}, [])


def replies_of(run: Path) -> Records:
    """The replies of a finished run of questions, one row per reply, with the fields and pictures of what was asked about.

    ``reply`` is the raw text, ``answer_<field>`` what was read in it, ``answered_by`` who gave it. Pictures come from the run's
    source where that is still there; otherwise the rows are texts.

    Raises:
        DatasetError: the run is not finished.
    """
    manifest = read_manifest(run, "judge")
    own = ParquetRecords([run / "verdicts.parquet"])
    records = []
    for record in own.read(0, len(own)):
        repeated = f"{record['variant']}#{record['sample']}" if record["variant"] or record["sample"] else ""
        new = {"id": record["item"] + repeated, "reply": record["raw"], "answered_by": record["judge"]}
        records.append({name: value for name, value in record.items() if name not in _INTERNAL} | new)
    source = manifest["parameters"].get("source")
    if not source or not Path(source).exists() or source == str(run):
        print(f"{run}: the pictures that it was asked about are not at hand, so its rows are texts", file=sys.stderr)
        return ListedRecords(records, lambda record: {}, [run / "verdicts.parquet"])
    return _Joined(records, DatasetRows(source, **_chosen(manifest["parameters"])))


_INTERNAL = frozenset(
    "judge protocol version variant sample order_seed cause reason repairs raw finish_reason tokens_in tokens_out seconds cost "
    "probabilities abstained answer".split()
)


def _chosen(parameters: dict[str, Any]) -> dict[str, Any]:
    """How a run chose its rows, in the words of :class:`DatasetRows`."""
    known = {"split": "split", "images": "images", "fields": "fields", "id": "id_column"}
    return {name: parameters[key] for key, name in known.items() if parameters.get(key)}


class _Joined:
    """Replies beside the pictures of what they are about, which are read in one pass with them."""

    revision: str | None = None

    def __init__(self, records: list[dict[str, Any]], source: DatasetRows):
        self._records, self._source = records, source
        first = next(source.rows(0, 1))
        self.pictures = ["image"] if len(first.images) == 1 else [f"image_{n}" for n in range(len(first.images))]
        self.columns = list(dict.fromkeys([*(name for record in records for name in record), *self.pictures]))

    def __len__(self) -> int:
        return len(self._records)

    def read(self, start: int, stop: int) -> Iterator[dict[str, Any]]:
        rows = self._source.rows()
        row = next(rows, None)
        for number, record in enumerate(self._records[:stop]):
            while row is not None and row.id != record["item"]:  # both stand in the order of the source
                row = next(rows, None)
            if number >= start:
                images = row.images if row is not None else (b"",) * len(self.pictures)
                yield record | {name: {"bytes": data, "path": None} for name, data in zip(self.pictures, images, strict=True)}

    def fingerprint(self) -> str | None:
        return None
