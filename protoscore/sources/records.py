"""Records of a dataset by number, from Parquet files, from the Hub, or from a list with pictures beside it.

Only what is asked for is read, a few records at a time, so that memory stays flat however large the pictures are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from protoscore.errors import DatasetError, first_line
from protoscore.schema import content_id
from protoscore.sources.rows import files_fingerprint

FEW = 16  # records read at once


class Origin(NamedTuple):
    """Where a dataset is found when the user names no place, and how to get at it where that fails."""

    hub_id: str | None
    licence: str
    help: str


class Records(Protocol):
    """A table of named values; pictures are ``{"bytes": ..., "path": ...}``, undecoded."""

    columns: list[str]
    pictures: list[str]  # the columns that hold pictures
    revision: str | None  # of a Hub dataset
    notes: list[str]  # what a user has to be told

    def __len__(self) -> int: ...

    def read(self, start: int, stop: int) -> Iterator[dict[str, Any]]: ...

    def fingerprint(self) -> str | None: ...

    def contents(self) -> str | None:
        """As :meth:`fingerprint`, but the same for a copy, under another name, and after a picture was mended."""
        ...


class ParquetRecords:
    """Records of Parquet files, one after the other.

    Args:
        columns: what is needed; None: everything.

    Raises:
        DatasetError: a file is damaged or lacks one of ``columns``.
    """

    revision: str | None = None
    notes: list[str] = []

    def __init__(self, paths: Sequence[Path], columns: Sequence[str] | None = None):
        self.paths = list(paths)
        schema = _schema(self.paths[0])
        self.columns = list(columns) if columns is not None else schema.names
        self.pictures = [name for name in self.columns if name in schema.names and _holds_pictures(schema.field(name).type)]
        self._sizes = []
        for path in self.paths:
            missing = set(self.columns) - set(_schema(path).names)
            if missing:
                raise DatasetError(f"{path} has no column {min(missing)!r}; is it another dataset?")
            with _plain_errors(path):
                self._sizes.append(pq.read_metadata(path).num_rows)

    def __len__(self) -> int:
        return sum(self._sizes)

    def read(self, start: int, stop: int) -> Iterator[dict[str, Any]]:
        first = 0
        for path, size in zip(self.paths, self._sizes, strict=True):
            if start < first + size and first < stop:
                for record in _range(path, self.columns, max(0, start - first), min(size, stop - first)):
                    yield record | {name: _picture(record[name], path.parent) for name in self.pictures}
            first += size

    def fingerprint(self) -> str | None:
        return files_fingerprint(self.paths, {})

    def contents(self) -> str | None:
        return files_fingerprint(self.paths, {}, times=False)


class ListedRecords:
    """Records that are in memory but for their pictures, which are read from files when their turn comes.

    Args:
        pictures: record to its picture columns and their files; a missing file is an empty picture.
        files: what the list was read from.
        shown: how pictures are called in tables, where it is not by the name of the file alone.
    """

    revision: str | None = None

    def __init__(
        self, records: Sequence[dict[str, Any]], pictures: Callable[[dict[str, Any]], dict[str, Path]], files: Sequence[Path],
        shown: Mapping[Path, str] | None = None,
    ):  # fmt: skip
        self._records, self._pictures, self._files, self._shown = records, pictures, files, shown or {}
        self.notes: list[str] = []
        self.pictures = list(pictures(records[0])) if records else []
        self.columns = list(dict.fromkeys(name for record in records for name in (*record, *self.pictures)))

    def __len__(self) -> int:
        return len(self._records)

    def read(self, start: int, stop: int) -> Iterator[dict[str, Any]]:
        for record in self._records[start:stop]:
            paths = self._pictures(record).items()
            shown = {path: self._shown.get(path, path.name) for _, path in paths}
            yield record | {name: {"bytes": _bytes_of(path), "path": shown[path]} for name, path in paths}

    def fingerprint(self) -> str | None:
        places = [path for record in self._records for path in self._pictures(record).values()]
        with suppress(OSError):  # one of them is gone: the rows are read again each time
            return files_fingerprint(dict.fromkeys([*self._files, *places]), {"records": len(self)})
        return None

    def contents(self) -> str | None:
        return content_id(*(json.dumps(record, sort_keys=True, default=str) for record in self._records), length=24)


class HubRecords:
    """Records of a Hub dataset, downloaded once into the library's cache, at one commit; pictures undecoded.

    Args:
        configs: the first that the dataset has is taken; None is its default one.
        help: what to do where it cannot be loaded.

    Raises:
        DatasetError: it cannot be loaded, or lacks one of ``columns``.
    """

    notes: list[str] = []

    def __init__(
        self, source: str, split: str, columns: Sequence[str] | None = None, configs: Sequence[str | None] = (None,),
        help: str = "",
    ):  # fmt: skip
        from datasets import Image

        try:
            self.revision = _commit(source)
            data = _load(source, split, self.revision, configs)
        except Exception as error:  # the library raises its own kinds, the Hub client's and plain OSError
            message = f"{source!r} is neither a folder here nor a dataset that can be loaded ({first_line(error)})"
            raise DatasetError(f"{message}. {help}" if help else message) from error
        missing = set(columns or ()) - set(data.column_names)
        if missing:
            raise DatasetError(f"{source} has no column {min(missing)!r}; is it another dataset?")
        self.columns = list(columns) if columns is not None else data.column_names
        schema = data.features.arrow_schema
        self.pictures = [name for name in self.columns if _holds_pictures(schema.field(name).type)]
        data = data.select_columns(self.columns)
        for name in self.pictures:
            if isinstance(data.features[name], Image):
                data = data.cast_column(name, Image(decode=False))
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def read(self, start: int, stop: int) -> Iterator[dict[str, Any]]:
        from huggingface_hub.constants import HF_HUB_CACHE

        for record in self._data.select(range(start, min(stop, len(self)))):
            yield record | {name: _picture(record[name], Path(HF_HUB_CACHE)) for name in self.pictures}

    def fingerprint(self) -> str | None:
        return self.revision or self._data._fingerprint

    contents = fingerprint


def find(source: str | None, split: str, columns: Sequence[str], origin: Origin) -> Records:
    """Parquet files of a folder, or a Hub dataset; without ``source``, the dataset's own place on the Hub.

    Raises:
        DatasetError: neither is there; the message says how to get it.
    """
    folder = Path(source) if source else None
    if folder is None or not folder.exists():
        name = source or origin.hub_id
        if name is None:
            raise DatasetError(f"this benchmark is not on the Hub. {origin.help}")
        return HubRecords(name, split, columns, help=origin.help)
    paths = parquet_files(folder, split)
    if not paths:
        raise DatasetError(f"{source} holds no Parquet file. {origin.help}")
    return ParquetRecords(paths, columns)


def parquet_files(folder: Path, split: str) -> list[Path]:
    """The Parquet files below a folder that are of a split by their names, or all where none is; hidden ones are not taken."""
    files = [path for path in sorted(folder.rglob("*.parquet")) if path.is_file() and not _hidden(path.relative_to(folder))]
    return [path for path in files if path.name.startswith((f"{split}-", f"{split}."))] or files


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def picture_bytes(value: Any) -> bytes:
    """The bytes of a picture column's value; empty where there is none."""
    return (value or {}).get("bytes") or b""


def _schema(path: Path) -> pa.Schema:
    with _plain_errors(path):
        return pq.read_schema(path)


def _range(path: Path, columns: list[str], start: int, stop: int) -> Iterator[dict[str, Any]]:
    """Rows ``start`` to ``stop`` of one Parquet file; row groups before and after are left alone."""
    with _plain_errors(path), pq.ParquetFile(path) as file:
        first = 0
        for group in range(file.num_row_groups):
            size = file.metadata.row_group(group).num_rows
            if start < first + size and first < stop:
                at = first
                for chunk in file.iter_batches(FEW, row_groups=[group], columns=columns):
                    low, high = max(0, start - at), min(chunk.num_rows, stop - at)
                    if low < high:
                        yield from chunk.slice(low, high - low).to_pylist()
                    at += chunk.num_rows
                    if at >= stop:
                        return
            first += size


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, KeyError, OSError) as error:
        raise DatasetError(f"{path} is not the Parquet file that was expected ({first_line(error)})") from error


def _holds_pictures(kind: pa.DataType) -> bool:
    """Whether a column is one of pictures: bytes, or the Hub's struct of bytes and path."""
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or (
        pa.types.is_struct(kind) and "bytes" in {kind.field(i).name for i in range(kind.num_fields)}
    )  # fmt: skip


def _picture(value: Any, folder: Path) -> dict[str, Any]:
    """A picture as bytes and path; one that is stored as a path beside the file is read from there, and from nowhere else."""
    if isinstance(value, bytes):
        return {"bytes": value, "path": None}
    if not isinstance(value, dict):
        return {"bytes": b"", "path": None}
    path = value.get("path")
    if value.get("bytes") or not path:
        return {"bytes": value.get("bytes") or b"", "path": path}
    place = (folder / path).resolve()
    return {"bytes": _bytes_of(place) if place.is_relative_to(folder.resolve()) else b"", "path": path}


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.is_file() else b""
    except OSError:  # gone or forbidden since it was listed: the row ends in a state
        return b""


def _commit(source: str) -> str | None:
    """The commit that a Hub dataset is at; None offline, where the library may still have it in its cache."""
    from huggingface_hub import HfApi

    with suppress(Exception):
        return HfApi().dataset_info(source).sha
    return None


def _load(source: str, split: str, revision: str | None, configs: Sequence[str | None]) -> Any:
    import datasets

    config, *others = configs
    try:
        return datasets.load_dataset(source, config, split=split, revision=revision)
    except RuntimeError:  # a repository with a loading script: the Hub keeps a Parquet copy of it beside
        return datasets.load_dataset(source, config, split=split, revision="refs/convert/parquet")
    except ValueError:  # no such config
        if not others:
            raise
        return _load(source, split, revision, others)
