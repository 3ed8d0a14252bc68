"""Reading a dataset of cells, from a folder or by Hub id, one picture at a time.

Two layouts are known: all four cells a row (our ``controls`` config), and the paper's two (``pairs``, and the set that the
paper's authors published), which lets a report give the paper's accuracy and nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from protoscore.benchmarks.protobias.schema import Cell
from protoscore.errors import DatasetError
from protoscore.folder import MANIFEST, parts, read_manifest
from protoscore.sources.records import picture_bytes
from protoscore.sources.rows import Row, files_fingerprint


class Layout(NamedTuple):
    """A config, and the column of each cell's picture in it."""

    config: str
    pictures: dict[Cell, str]


LAYOUTS = (
    Layout("controls", {cell: f"{cell.value}_image" for cell in Cell}),
    Layout("pairs", {Cell.NON_CORRECT: "correct_image", Cell.PROTO_VIOLATED: "adversarial_image"}),
)
_TEXT = ("domain", "knob", "text")
_DOMAINS = {"animal": "animals", "object": "objects"}  # as the authors' set spells them


class CellRows:
    """Every cell of every row of a dataset, as :class:`protoscore.sources.rows.Rows`.

    Args:
        source: a folder made by ``dataset_scripts/protobias/build.py``, or a Hub id.
        limit: rows of the dataset (of two or four pictures) to stop after.

    Raises:
        DatasetError: the source is no such dataset.
    """

    columns: Sequence[str] = ("pair", "triplet", "cell", "domain", "knob")

    def __init__(self, source: str, split: str = "test", limit: int | None = None):
        self.source, self._limit = source, limit
        self.parameters: dict[str, Any] = {"benchmark": "protobias", "split": split, "limit": limit}
        folder = Path(source)
        self._table: _Files | _HubTable = _Files(source, split) if folder.exists() else _HubTable(source, split)
        self.parent = folder if (folder / MANIFEST).is_file() else None
        self.scenes = None if self.parent is None else not read_manifest(self.parent).get("photographic", False)
        if isinstance(self._table, _HubTable):
            self.parameters["revision"] = self._table.revision
        self._pictures = self._table.layout.pictures

    def __len__(self) -> int:
        total = len(self._table)
        return len(self._pictures) * min(total, self._limit if self._limit is not None else total)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        each = len(self._pictures)
        stop = len(self) if stop is None else min(stop, len(self))
        number = start - start % each
        for row in self._table.rows(number // each, -(-stop // each)):
            triplet = row.get("triplet") or row["id"]
            domain = _DOMAINS.get(row["domain"], row["domain"])
            for cell, column in self._pictures.items():
                if start <= number < stop:
                    pair = f"{triplet}-{row.get('rendition', 0)}"
                    fields = {"pair": pair, "triplet": triplet, "cell": cell.value, "domain": domain, "knob": row["knob"]}
                    yield Row(f"{pair}-{cell}", (picture_bytes(row[column]),), fields | {"text": row["text"]})
                number += 1

    def fingerprint(self) -> str | None:
        if isinstance(self._table, _HubTable):
            return self._table.revision
        return files_fingerprint(self._table.files, self.parameters)


class _Files:
    """The Parquet files of a config of a folder; what lies before a row that is asked for is not read.

    Read as files and not by ``load_dataset(folder)``: its cache would serve the rows of an earlier build of that name.
    """

    def __init__(self, source: str, split: str):
        found = ((layout, parts(Path(source) / layout.config, f"{split}-*.parquet")) for layout in LAYOUTS)
        self.layout, self.files = next((pair for pair in found if pair[1]), (LAYOUTS[0], []))
        if not self.files:
            raise DatasetError(
                f"{source} is no four-cell dataset: no controls/{split}-*.parquet; dataset_scripts/protobias/build.py makes one"
            )
        self._columns = [*_TEXT, "triplet", "rendition", *self.layout.pictures.values()]
        self._sizes = [_size(path) for path in self.files]

    def __len__(self) -> int:
        return sum(self._sizes)

    def rows(self, start: int, stop: int) -> Iterator[dict[str, Any]]:
        first = 0
        for path, size in zip(self.files, self._sizes, strict=True):
            if start < first + size and first < stop:
                yield from _range(path, self._columns, max(0, start - first), min(size, stop - first))
            first += size


class _HubTable:
    """A config of a Hub dataset: loaded once into the library's cache, then read from disk, at one commit."""

    def __init__(self, source: str, split: str):
        import datasets
        from huggingface_hub import HfApi

        try:
            try:
                self.revision: str | None = HfApi().dataset_info(source).sha
            except Exception:  # offline: the library may still have it in its cache, at a commit that it does not tell
                self.revision = None
            data = self._load(source, split, [*(layout.config for layout in LAYOUTS), None])
        except Exception as error:  # the library raises its own kinds, the Hub client's and plain OSError
            first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise DatasetError(f"{source!r} is neither a folder here nor a dataset that can be loaded ({first})") from error
        names = set(data.column_names)
        fits = [layout for layout in LAYOUTS if {*_TEXT, *layout.pictures.values()} <= names and names & {"triplet", "id"}]
        if not fits:
            missing = min({*_TEXT, *LAYOUTS[-1].pictures.values(), "id"} - names)
            raise DatasetError(f"{source!r} is no dataset of two or four cells: it lacks the column {missing!r}")
        self.layout = fits[0]
        pictures = list(self.layout.pictures.values())
        data = data.select_columns([*_TEXT, *(["triplet", "rendition"] if "triplet" in names else ["id"]), *pictures])
        for column in pictures:
            data = data.cast_column(column, datasets.Image(decode=False))
        self._data = data

    def _load(self, source: str, split: str, configs: list[str | None]) -> Any:
        """The first of ``configs`` that the dataset has; None is its default one."""
        import datasets

        config, *others = configs
        try:
            return datasets.load_dataset(source, config, split=split, revision=self.revision)
        except ValueError:  # no such config
            if not others:
                raise
            return self._load(source, split, others)

    def __len__(self) -> int:
        return len(self._data)

    def rows(self, start: int, stop: int) -> Iterator[dict[str, Any]]:
        yield from self._data.select(range(start, min(stop, len(self))))


def _size(path: Path) -> int:
    with _plain_parquet_errors(path):
        return pq.read_metadata(path).num_rows


def _range(path: Path, columns: list[str], start: int, stop: int) -> Iterator[dict[str, Any]]:
    """Rows ``start`` to ``stop`` of one Parquet file; row groups before and after are left alone."""
    with _plain_parquet_errors(path), pq.ParquetFile(path) as file:
        first = 0
        for group in range(file.num_row_groups):
            size = file.metadata.row_group(group).num_rows
            if start < first + size and first < stop:
                at = first
                for chunk in file.iter_batches(16, row_groups=[group], columns=columns):
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
