"""Records of a dataset by number, from Parquet files of a folder, from the Hub, or from a list with pictures beside it."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from protoscore.errors import DatasetError
from protoscore.sources.rows import files_fingerprint


class Origin(NamedTuple):
    """Where a dataset is found when the user names no place, and how to get at it where that fails."""

    hub_id: str | None
    licence: str
    help: str


class Records(Protocol):
    def __len__(self) -> int: ...

    def read(self, start: int, stop: int) -> Iterator[dict[str, Any]]: ...

    def fingerprint(self) -> str | None: ...


class ParquetRecords:
    """Records of Parquet files, one row group at a time.

    Raises:
        DatasetError: a file is damaged or lacks one of ``columns``.
    """

    def __init__(self, paths: Sequence[Path], columns: Sequence[str]):
        self._paths, self._columns = list(paths), list(columns)
        self._groups: list[tuple[Path, int]] = []
        sizes = []
        for path in self._paths:
            try:
                with pq.ParquetFile(path) as file:
                    missing = set(columns) - set(file.schema_arrow.names)
                    if missing:
                        raise DatasetError(f"{path} has no column {min(missing)!r}; is it another dataset?")
                    sizes += [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
                    self._groups += [(path, g) for g in range(file.num_row_groups)]
            except (pa.ArrowInvalid, OSError) as error:
                raise DatasetError(f"{path} is no Parquet file ({str(error).splitlines()[0]})") from error
        self._ends = list(accumulate(sizes))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def read(self, start: int, stop: int) -> Iterator[dict[str, Any]]:
        for number in range(bisect.bisect_right(self._ends, start), len(self._groups)):
            first = self._ends[number - 1] if number else 0
            if first >= stop:
                return
            path, group = self._groups[number]
            with pq.ParquetFile(path) as file:
                table = file.read_row_group(group, columns=self._columns)
            yield from table.slice(max(0, start - first), min(stop, self._ends[number]) - max(first, start)).to_pylist()

    def fingerprint(self) -> str | None:
        return files_fingerprint(self._paths, {})


class ListedRecords:
    """Records that are in memory but for their pictures, which are read from files when their turn comes.

    Args:
        pictures: record to its picture columns and their files; a missing file is an empty picture.
    """

    def __init__(
        self, records: Sequence[dict[str, Any]], pictures: Callable[[dict[str, Any]], dict[str, Path]], files: Sequence[Path]
    ):
        self._records, self._pictures, self._files = records, pictures, files

    def __len__(self) -> int:
        return len(self._records)

    def read(self, start: int, stop: int) -> Iterator[dict[str, Any]]:
        for record in self._records[start:stop]:
            paths = self._pictures(record).items()
            yield record | {name: {"bytes": path.read_bytes() if path.is_file() else b""} for name, path in paths}

    def fingerprint(self) -> str | None:
        return files_fingerprint(self._files, {"records": len(self)})


class HubRecords:
    """Records of a Hub dataset, downloaded into its own cache; pictures undecoded."""

    def __init__(self, source: str, split: str, columns: Sequence[str], help: Origin):
        self._data = _load(source, split, help)
        missing = set(columns) - set(self._data.column_names)
        if missing:
            raise DatasetError(f"{source} has no column {min(missing)!r}; is it another dataset?")
        from datasets import Image

        self._data = self._data.select_columns(list(columns))
        for name, feature in self._data.features.items():
            if isinstance(feature, Image):
                self._data = self._data.cast_column(name, Image(decode=False))

    def __len__(self) -> int:
        return len(self._data)

    def read(self, start: int, stop: int) -> Iterator[dict[str, Any]]:
        for number in range(start, min(stop, len(self))):
            yield self._data[number]

    def fingerprint(self) -> str | None:
        return self._data._fingerprint


def _load(source: str, split: str, help: Origin) -> Any:
    import datasets

    try:
        try:
            return datasets.load_dataset(source, split=split)
        except RuntimeError:  # a repository with a loading script: the Hub keeps a Parquet copy of it beside
            return datasets.load_dataset(source, split=split, revision="refs/convert/parquet")
    except Exception as error:  # the library raises its own kinds, the Hub client's and plain OSError
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DatasetError(f"{source!r} is no folder here and cannot be loaded from the Hub ({first}). {help.help}") from error


def find(source: str | None, split: str, columns: Sequence[str], help: Origin, pattern: str = "**/*.parquet") -> Records:
    """Parquet files of a folder, or a Hub dataset; without ``source``, the benchmark's own place on the Hub.

    Raises:
        DatasetError: neither is there; the message says how to get it.
    """
    folder = Path(source) if source else None
    if folder is None or not folder.exists():
        name = source or help.hub_id
        if name is None:
            raise DatasetError(f"this benchmark is not on the Hub. {help.help}")
        return HubRecords(name, split, columns, help)
    paths = [path for path in sorted(folder.glob(pattern)) if split in path.name] or sorted(folder.glob(pattern))
    if not paths:
        raise DatasetError(f"{source} holds no Parquet file. {help.help}")
    return ParquetRecords(paths, columns)


def picture_bytes(value: Any) -> bytes:
    """The bytes of a picture column's value; empty where there is none."""
    return (value or {}).get("bytes") or b""
