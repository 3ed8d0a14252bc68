"""What stages read: rows of an id, any number of pictures and named fields, from wherever they come."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from protoscore.errors import DatasetError

TEXT = "text"  # the field that a picture is scored under


class Row(NamedTuple):
    """One thing to score, to ask about or to embed."""

    id: str  # no other row of the source has it
    images: tuple[bytes, ...]  # as stored, undecoded; none for a text alone. Empty bytes: there is no such file
    fields: Mapping[str, Any]  # what prompts use, what statistics group by, and under TEXT what a picture is scored under


class Rows(Protocol):
    """A source of rows in a fixed order. It is read forward and a few rows at a time, perhaps from the middle, perhaps
    twice, and perhaps by several processes at once; nobody holds all of it.
    """

    columns: Sequence[str]  # fields that a table of results keeps beside the id, e.g. ("triplet", "cell", "domain", "knob")
    source: str  # what the user named: a folder, a file, a Hub id
    parameters: dict[str, Any]  # what else chose the rows (benchmark, split, limit ...); for the manifest, so no absolute path
    parent: Path | None  # the folder of ours that it was read from, for the chain of manifests
    scenes: bool | None  # drawn scenes, not photographs; None: the source does not say

    def __len__(self) -> int: ...

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """Rows ``start`` to ``stop``; what lies before ``start`` is skipped cheaply.

        Raises:
            DatasetError: the source is not what it should be.
        """
        ...

    def fingerprint(self) -> str | None:
        """A string that differs whenever the rows may differ, without reading them all (for files: name, size, time of
        change; for a Hub dataset: its commit). None when there is none, and the rows are read again each time.
        """
        ...


def files_fingerprint(files: Iterable[Path], parameters: dict[str, Any], times: bool = True) -> str:
    """A fingerprint of files by name, size, time of change and last bytes (where Parquet keeps its index), all unread else.

    Args:
        times: whether the time of change counts; it differs between copies.
    """
    digest = hashlib.sha256(json.dumps(parameters, sort_keys=True).encode())
    for path in files:
        state = path.stat()
        changed = state.st_mtime_ns if times else ""
        digest.update(f"\n{path.name}\x1f{state.st_size}\x1f{changed}\x1f".encode("utf-8", "surrogateescape"))
        with path.open("rb") as handle:
            handle.seek(max(0, state.st_size - 65536))
            digest.update(handle.read(65536))
    return digest.hexdigest()


def keys_of(row: Row, columns: Sequence[str]) -> tuple[str, ...]:
    """The fields of a row that a table keeps, as text; empty where it lacks one."""
    return tuple("" if row.fields.get(name) is None else str(row.fields[name]) for name in columns)


def contents_of(rows: object) -> str | None:
    """A digest of what a source holds, wherever it lies and whenever it was written; None where it cannot say."""
    say = getattr(rows, "contents", None)
    return say() if say else None


RowSource = Rows | Iterable[Row]


def each(rows: RowSource) -> Iterator[Row]:
    """Every row of a source, or of a plain list, as scripts and tests make them."""
    return rows.rows() if hasattr(rows, "rows") else iter(rows)


class View:
    """The first of some rows, with fields under other names.

    Args:
        limit: rows to stop after; None: all.
        fields: field -> the field that it is a copy of.

    Raises:
        DatasetError: when a row lacks a field.
    """

    def __init__(self, rows: Rows, limit: int | None = None, fields: Mapping[str, str] | None = None):
        self._rows, self._limit, self._fields = rows, limit, dict(fields or {})
        self.columns, self.source, self.parent, self.scenes = rows.columns, rows.source, rows.parent, rows.scenes
        self.notes = getattr(rows, "notes", [])
        chosen = {"limit": limit, "fields": self._fields}
        self.parameters = rows.parameters | {name: value for name, value in chosen.items() if value}

    def __len__(self) -> int:
        return len(self._rows) if self._limit is None else min(self._limit, len(self._rows))

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        for row in self._rows.rows(start, len(self) if stop is None else min(stop, len(self))):
            yield self._renamed(row) if self._fields else row

    def _renamed(self, row: Row) -> Row:
        for name, column in self._fields.items():
            if column not in row.fields:
                held = ", ".join(row.fields)
                raise DatasetError(f"{self.source} has no field {column!r} for {name!r}; it has: {held}")
        return row._replace(fields={**row.fields, **{name: row.fields[column] for name, column in self._fields.items()}})

    def fingerprint(self) -> str | None:
        inner = self._rows.fingerprint()
        return None if inner is None else hashlib.sha256(f"{inner}\n{self._limit}\n{self._fields}".encode()).hexdigest()

    def contents(self) -> str | None:
        return contents_of(self._rows)
