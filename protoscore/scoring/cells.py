"""Reading a four-cell dataset, from a folder or by Hub id, one picture at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from protoscore.errors import DatasetError
from protoscore.folder import MANIFEST, parts, read_manifest, read_rows
from protoscore.schema import Cell
from protoscore.scoring.rows import Row, files_fingerprint

_TEXT = ("triplet", "rendition", "domain", "knob", "text")
_PICTURES = tuple(f"{cell.value}_image" for cell in Cell)


class CellRows:
    """The four cells of every row of a ``controls`` config, as :class:`protoscore.scoring.rows.Rows`.

    Args:
        source: a folder made by ``dataset_scripts/protobias/build.py``, or a Hub id.
        limit: rows of the dataset (four pictures each) to stop after.

    Raises:
        DatasetError: the folder is no such dataset.
    """

    columns: Sequence[str] = ("id", "triplet", "cell", "domain", "knob")

    def __init__(self, source: str, split: str = "test", limit: int | None = None):
        self.source, self._split, self._limit = source, split, limit
        self.parameters: dict[str, Any] = {"split": split, "limit": limit}
        folder = Path(source)
        self._hub = None if folder.exists() else _HubTable(source, split)
        self.parent = folder if (folder / MANIFEST).is_file() else None
        self.scenes = None if self.parent is None else not read_manifest(self.parent).get("photographic", False)
        self._sizes = [] if self._hub else [_size(path) for path in _files(source, split)]
        if self._hub:
            self.parameters["revision"] = self._hub.revision

    def __len__(self) -> int:
        total = len(self._hub) if self._hub else sum(self._sizes)
        return len(Cell) * min(total, self._limit if self._limit is not None else total)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        stop = len(self) if stop is None else min(stop, len(self))
        number = start - start % len(Cell)
        for row in self._table(number // len(Cell), -(-stop // len(Cell))):
            name = f"{row['triplet']}-{row['rendition']}"
            for cell in Cell:
                if start <= number < stop:
                    keys = (name, row["triplet"], cell.value, row["domain"], row["knob"])
                    yield Row(keys, row["text"], (row[f"{cell.value}_image"] or {}).get("bytes") or b"")
                number += 1

    def fingerprint(self) -> str | None:
        if self._hub:
            return self._hub.revision
        return files_fingerprint(_files(self.source, self._split), self.parameters)

    def _table(self, start: int, stop: int) -> Iterator[dict[str, Any]]:
        """Rows of the dataset (four pictures each); what lies before ``start`` is not read."""
        if self._hub:
            yield from self._hub.rows(start, stop)
            return
        first = 0
        for path, size in zip(_files(self.source, self._split), self._sizes, strict=True):
            if start < first + size and first < stop:
                yield from _range(path, max(0, start - first), min(size, stop - first))
            first += size


def rows(source: str, split: str = "test") -> Iterator[dict[str, Any]]:
    """Rows of the ``controls`` config as they are, pictures undecoded."""
    if Path(source).exists():
        # Read as files and not by load_dataset(folder): its cache would serve the rows of an earlier build of that name.
        yield from read_rows(_files(source, split), [*_TEXT, *_PICTURES], batch=16)
    else:
        hub = _HubTable(source, split)
        yield from hub.rows(0, len(hub))


class _HubTable:
    """A ``controls`` config of the Hub: loaded once into the library's cache, then read from disk, at one commit."""

    def __init__(self, source: str, split: str):
        import datasets
        from huggingface_hub import HfApi

        try:
            try:
                self.revision: str | None = HfApi().dataset_info(source).sha
            except Exception:  # offline: the library may still have it in its cache, at a commit that it does not tell
                self.revision = None
            data = datasets.load_dataset(source, "controls", split=split, revision=self.revision)
        except Exception as error:  # the library raises its own kinds, the Hub client's and plain OSError
            first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise DatasetError(f"{source!r} is neither a folder here nor a dataset that can be loaded ({first})") from error
        missing = set(_TEXT + _PICTURES) - set(data.column_names)
        if missing:
            raise DatasetError(f"{source!r} is no four-cell dataset: it lacks the column {min(missing)!r}")
        data = data.select_columns([*_TEXT, *_PICTURES])
        for column in _PICTURES:
            data = data.cast_column(column, datasets.Image(decode=False))
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def rows(self, start: int, stop: int) -> Iterator[dict[str, Any]]:
        yield from self._data.select(range(start, min(stop, len(self))))


def _files(source: str, split: str) -> list[Path]:
    found = parts(Path(source) / "controls", f"{split}-*.parquet")
    if not found:
        raise DatasetError(
            f"{source} is no four-cell dataset: no controls/{split}-*.parquet; dataset_scripts/protobias/build.py makes one"
        )
    return found


def _size(path: Path) -> int:
    with _plain_parquet_errors(path):
        return pq.read_metadata(path).num_rows


def _range(path: Path, start: int, stop: int) -> Iterator[dict[str, Any]]:
    """Rows ``start`` to ``stop`` of one Parquet file; row groups before and after are left alone."""
    with _plain_parquet_errors(path), pq.ParquetFile(path) as file:
        first = 0
        for group in range(file.num_row_groups):
            size = file.metadata.row_group(group).num_rows
            if start < first + size and first < stop:
                at = first
                for chunk in file.iter_batches(16, row_groups=[group], columns=[*_TEXT, *_PICTURES]):
                    low, high = max(0, start - at), min(chunk.num_rows, stop - at)
                    if low < high:
                        yield from chunk.slice(low, high - low).to_pylist()
                    at += chunk.num_rows
                    if at >= stop:
                        return
            first += size


@contextmanager
def _plain_parquet_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, KeyError, OSError) as error:
        raise DatasetError(f"{path} is not the Parquet file that was expected ({str(error).splitlines()[0]})") from error
