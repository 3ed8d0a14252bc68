"""Rows of any dataset: a folder of pictures, a table, Parquet files, a Hub id, or a finished run of questions.

A folder holds Parquet files (of one split, in whatever subfolders; pictures as bytes or as paths beside the file), or pictures,
perhaps with a ``metadata.csv``, ``.jsonl`` or another table whose ``file_name`` and ``*_file_name`` columns name them. A row
needs no picture: a table of texts is a source too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from protoscore.errors import DatasetError
from protoscore.folder import MANIFEST, read_manifest
from protoscore.sources.pairing import FILE
from protoscore.sources.pictures import is_picture_name, named_inside, pictures_below, refuse
from protoscore.sources.records import HubRecords, ListedRecords, ParquetRecords, Records, parquet_files, picture_bytes
from protoscore.sources.rows import TEXT, Row
from protoscore.sources.runs import is_run, run_records
from protoscore.sources.tables import is_table, read_table, text_of

TEXTS = (TEXT, "prompt", "caption")  # the first that a dataset has is what a picture is scored under
LISTINGS = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
FILE_NAME = "file_name"
TABLES = {"embed": "embeddings.parquet", "filter": "kept.parquet"}  # what a stage's folder is read as


class DatasetRows:
    """The records of a dataset as :class:`protoscore.sources.rows.Rows`.

    Args:
        source: what the user named.
        images: columns that hold the pictures, in order; empty: every column that does.
        fields: field -> column, where they differ.
        id_column: column of unique names; by default ``id`` where there is one, and numbers where there is none.
        config: of a Hub dataset with several, or a subfolder.

    Raises:
        DatasetError: the source is none of the kinds of this module, or lacks a column.
    """

    columns: Sequence[str] = ("prompt", "image")

    def __init__(
        self, source: str, split: str = "test", images: Sequence[str] = (), fields: Mapping[str, str] | None = None,
        id_column: str | None = None, records: Records | None = None, config: str | None = None,
    ):  # fmt: skip
        self.source, self._id = source, id_column
        folder = Path(source)
        self._records = records if records is not None else records_of(source, split, config)
        if not len(self._records):
            raise DatasetError(f"{source} has no rows in the split {split!r}")
        self.notes = self._records.notes
        self._images, self._fields = tuple(images) or tuple(self._records.pictures), dict(fields or {})
        wanted = [*self._images, *self._fields.values(), *([id_column] if id_column else [])]
        for name in wanted:
            if name not in self._records.columns:
                raise DatasetError(f"{source} has no column {name!r}; it has: {', '.join(self._records.columns)}")
        names = [*self._fields, *self._records.columns]
        self._text = next((name for name in TEXTS if name in names), None)
        self.parent = folder if (folder / MANIFEST).is_file() else None
        made = read_manifest(self.parent) if self.parent else {}
        self.scenes = not made["photographic"] if "photographic" in made else None
        chosen = {"images": list(images), "fields": dict(self._fields), "id": id_column, "split": split, "config": config}
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
        given = record.get(self._id or "id")
        row_id = str(given) if given is not None else f"{number:06d}"
        paths = [(record[name] or {}).get("path") for name in self._images]
        named = {"image": next((path for path in paths if path), row_id)} if self._images else {}
        facts = {TEXT: fields[self._text], "prompt": fields[self._text]} if self._text else {}
        return Row(row_id, tuple(picture_bytes(record[name]) for name in self._images), named | facts | fields)

    def fingerprint(self) -> str | None:
        return self._records.fingerprint()

    def contents(self) -> str | None:
        return self._records.contents()


def records_of(source: str, split: str, config: str | None = None) -> Records:
    """The records behind a source.

    Raises:
        DatasetError: it is none of the kinds of this module.
    """
    place = Path(source)
    if not place.exists():
        return HubRecords(source, split, configs=(config,))
    if config and not (place := place / config).is_dir():
        raise DatasetError(f"{source} has no config {config!r}: there is no such folder in it")
    if place.is_file():
        if not is_table(place):
            raise DatasetError(f"{source} is not a table, a folder or a Hub dataset id")
        return _listed(place.parent, place, alone=True)
    if is_run(place):
        asked = asked_about(place)
        try:
            return run_records(place, asked, asked.source if asked is not None else None)
        except DatasetError:  # what lies there now has other names
            return run_records(place)
    stage = read_manifest(place)["stage"] if (place / MANIFEST).is_file() else ""
    if stage in TABLES and (place / TABLES[stage]).is_file():
        return ParquetRecords([place / TABLES[stage]])
    if files := parquet_files(place, split):
        _refuse_mixture(place, files)
        return ParquetRecords(files)
    tables = [place / name for name in LISTINGS if (place / name).is_file()] or sorted(place.glob("*.csv"))
    if len(tables) > 1:
        raise DatasetError(f"{source} has {len(tables)} lists; name the one that lists the pictures metadata.csv")
    return _listed(place, tables[0], alone=False) if tables else _pictures(place)


def _refuse_mixture(place: Path, files: list[Path]) -> None:
    """Several tables in one folder are not read as one."""
    columns = {path.parent: frozenset(ParquetRecords([path]).columns) for path in files}
    if len(set(columns.values())) > 1:
        configs = sorted(folder.relative_to(place).as_posix() for folder in columns)
        raise DatasetError(f"{place} holds tables with different columns; name one: --config {' or '.join(configs)}")


def asked_about(run: Path, source: str | None = None) -> DatasetRows | None:
    """What a run was about, where that is a dataset or a folder that is still there and the same.

    Args:
        source: where it is now, if the user says so; then it need not be the same.
    """
    parameters = read_manifest(run)["parameters"]
    place = source or parameters.get("source") or ""
    known = {"split": "split", "images": "images", "fields": "fields", "id": "id_column", "config": "config"}
    chosen = {name: parameters[key] for key, name in known.items() if parameters.get(key)}
    if not source and (Path(place) == run or not (Path(place).exists() or "revision" in parameters)):
        return None
    try:
        rows = DatasetRows(place, **chosen)
    except DatasetError:
        if source:
            raise
        return None
    return rows if source or "pairs" in parameters or rows.contents() == parameters.get("rows") else None


def _listed(folder: Path, listing: Path, alone: bool) -> Records:
    """Rows of a table; ``file_name`` becomes the picture column ``image``, ``left_file_name`` the column ``left``.

    Args:
        alone: the user named the table itself, and not the folder of pictures that it lies in.
    """
    lines = read_table(listing)
    columns = list(dict.fromkeys(name for line in lines for name in line.values))
    for line in lines:
        for name, value in line.values.items():
            if isinstance(value, str) and not value.isascii():
                text_of(value, f"{listing}, line {line.number}: {name}")
    records = [{name: line.values.get(name) for name in columns} for line in lines]
    names = _file_columns(columns, records)
    if not names:
        if not alone and (below := pictures_below(folder).pictures):
            raise DatasetError(
                f"{folder} has {len(below)} pictures and {listing.name} has no column {FILE_NAME}; give that column, or type "
                f"--images {folder} --prompts {listing}"
            )
        return ListedRecords(records, lambda record: {}, [listing])
    for record, line in zip(records, lines, strict=True):
        record |= {name: text_of(record[name], f"{listing}, line {line.number}: {name}") for name in names}
    empty = [f"line {line.number}" for record, line in zip(records, lines, strict=True) if not all(record[n] for n in names)]
    refuse(empty, "{} line(s) of " + f"{listing} name no picture")
    files = named_inside(folder, [str(record[name]) for record in records for name in names])
    targets = {name: name.removesuffix(FILE_NAME).rstrip("_") if name.endswith(FILE_NAME) else "" for name in names}

    def pictures(record: dict[str, Any]) -> dict[str, Path]:
        return {target or "image": files[record[name]][1] for name, target in targets.items()}

    return ListedRecords(records, pictures, [listing], {path: name for name, path in files.values()})


def _file_columns(columns: list[str], records: list[dict[str, Any]]) -> list[str]:
    """The columns that name pictures: by the Hub's name for them, or by a usual one where every value ends so."""
    if names := [name for name in columns if name == FILE_NAME or name.endswith(f"_{FILE_NAME}")]:
        return names
    for name in columns:
        if name.strip().lower() in FILE:
            values = [record[name] for record in records]
            if all(isinstance(value, str) and is_picture_name(value) for value in values):
                return [name]
    return []


def _pictures(folder: Path) -> Records:
    below = pictures_below(folder)
    files = below.pictures
    if not files:
        raise DatasetError(f"{folder} holds no pictures, no Parquet files and no dataset; give a folder that does, or a Hub id")
    stems = {str(Path(name).with_suffix("")) for name in files}
    records = [{"id": str(Path(name).with_suffix("")) if len(stems) == len(files) else name, FILE_NAME: name} for name in files]
    shown = {path: name for name, path in files.items()}
    found = ListedRecords(records, lambda r: {"image": files[r[FILE_NAME]]}, [], shown)
    found.notes = below.notes
    return found
