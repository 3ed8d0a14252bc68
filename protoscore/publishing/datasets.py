"""Building a dataset: rows go out as Parquet by config and split, into a draft that takes its place when it is whole."""

from __future__ import annotations

import filecmp
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from protoscore.errors import DatasetError
from protoscore.folder import MANIFEST, manifest_hash, plain_disk_errors

if TYPE_CHECKING:
    from datasets import Features

ROWS_PER_GROUP, BYTES_PER_GROUP = 200, 64_000_000  # of pictures; what is held in memory for each table
ROWS_PER_FILE, BYTES_PER_FILE = 5_000, 500_000_000


class DatasetTables:
    """Parquet files ``CONFIG/SPLIT-00000.parquet`` of bounded size, written row by row.

    Args:
        root: folder of the dataset.
        features: the columns of every config; what a row has beyond them is left out, what it lacks is null.
    """

    def __init__(self, root: Path, features: Mapping[str, Features]):
        self._root = root
        self._schemas = {config: columns.arrow_schema for config, columns in features.items()}
        self._tables: dict[str, _Table] = {}  # by "config/split"

    def add(self, config: str, split: str, row: Mapping[str, Any]) -> None:
        key = f"{config}/{split}"
        if key not in self._tables:
            self._tables[key] = _Table(self._root / key, self._schemas[config])
        self._tables[key].add(row)

    def close(self) -> dict[str, int]:
        """Write what is left; returns rows by ``config/split``."""
        for table in self._tables.values():
            table.close()
        return {key: self._tables[key].count for key in sorted(self._tables)}


class _Table:
    """The files of one split of one config. Where groups and files end depends on the rows alone."""

    def __init__(self, stem: Path, schema: pa.Schema):
        self._stem, self._schema = stem, schema
        self._rows: list[dict[str, Any]] = []
        self._writer: pq.ParquetWriter | None = None
        self._files = self._in_file = self._file_bytes = self._group_bytes = 0
        self.count = 0

    def add(self, row: Mapping[str, Any]) -> None:
        size = sum(len(value["bytes"]) for value in row.values() if isinstance(value, dict) and value.get("bytes"))
        self._rows.append({name: row.get(name) for name in self._schema.names})
        self.count, self._in_file = self.count + 1, self._in_file + 1
        self._group_bytes, self._file_bytes = self._group_bytes + size, self._file_bytes + size
        if self._in_file == ROWS_PER_FILE or self._file_bytes >= BYTES_PER_FILE:
            self.close()
        elif len(self._rows) == ROWS_PER_GROUP or self._group_bytes >= BYTES_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        if not self._rows:
            return
        if self._writer is None:
            self._stem.parent.mkdir(parents=True, exist_ok=True)
            path = self._stem.with_name(f"{self._stem.name}-{self._files:05d}.parquet")
            options = {"compression": "snappy", "use_content_defined_chunking": True, "write_page_index": True}
            self._writer = pq.ParquetWriter(path, self._schema, **options)
        self._writer.write_table(pa.Table.from_pylist(self._rows, self._schema))
        self._rows, self._group_bytes = [], 0

    def close(self) -> None:
        """End the file that is open; the next row begins another one."""
        self._flush()
        if self._writer is not None:
            self._writer.close()
            self._writer, self._files = None, self._files + 1
            self._in_file = self._file_bytes = 0


@contextmanager
def drafted(out: Path, work: Path) -> Iterator[Path]:
    """A folder to write a dataset into, with its manifest, that becomes ``out`` when the block ends well.

    Args:
        work: a folder on the same disk that the caller has locked; drafts that killed processes left there are swept.

    Raises:
        DatasetError: ``out`` holds something else than the draft, or is damaged; it is left as it is.
    """
    for left in work.glob(".draft-*"):
        shutil.rmtree(left, ignore_errors=True)
    draft = work / f".draft-{uuid.uuid4().hex[:12]}"
    with plain_disk_errors(out):
        try:
            draft.mkdir(parents=True)
            yield draft
            if out.exists():
                _require_same(out, draft)
            else:
                draft.rename(out)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _require_same(out: Path, draft: Path) -> None:
    if not (out / MANIFEST).is_file() or manifest_hash(out) != manifest_hash(draft):
        raise DatasetError(f"{out} exists and holds something else; choose another --out, or delete that folder")
    for path in sorted(path for path in draft.rglob("*") if path.is_file()):
        name = path.relative_to(draft)
        if not (out / name).is_file() or not filecmp.cmp(path, out / name, shallow=False):
            raise DatasetError(f"{out} is damaged: {name} is not what was written; delete that folder and run this again")
