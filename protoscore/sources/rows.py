"""What the scoring stage reads: rows of (keys, text, picture), from wherever they come."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol


class Row(NamedTuple):
    """One picture, the text that it is scored under, and the strings that say which row of the table it is."""

    keys: tuple[str, ...]  # values of ``Rows.columns``, in their order
    text: str
    image: bytes  # as stored, undecoded; empty when there is no such file, and the row ends as ``invalid``


class Rows(Protocol):
    """A source of rows in a fixed order. It is read forward and a few rows at a time, perhaps from the middle, perhaps
    twice, and perhaps by several processes at once; nobody holds all of it.
    """

    columns: Sequence[str]  # key columns of the table, e.g. ("id", "triplet", "cell", "domain", "knob")
    source: str  # what the user named: a folder, a file, a Hub id
    parameters: dict[str, Any]  # what else chose the rows (split, limit ...); goes into the manifest, so no absolute path
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


def files_fingerprint(files: Iterable[Path], parameters: dict[str, Any]) -> str:
    """A fingerprint of files by name, size, time of change and last bytes (where Parquet keeps its index), all unread else."""
    digest = hashlib.sha256(json.dumps(parameters, sort_keys=True).encode())
    for path in files:
        state = path.stat()
        digest.update(f"\n{path.name}\x1f{state.st_size}\x1f{state.st_mtime_ns}\x1f".encode())
        with path.open("rb") as handle:
            handle.seek(max(0, state.st_size - 65536))
            digest.update(handle.read(65536))
    return digest.hexdigest()
