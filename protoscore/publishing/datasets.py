"""Building a dataset: rows go out as Parquet by config and split, into a draft that takes its place when it is whole."""

from __future__ import annotations

import filecmp
import shutil
import uuid
from collections import Counter
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

ROWS_PER_FILE, ROWS_PER_GROUP = 5_000, 200  # the groups' size is what bounds the memory


class DatasetTables:
    """Open Parquet files ``CONFIG/SPLIT-00000.parquet`` of at most ``ROWS_PER_FILE`` rows each.

    Args:
        root: folder of the dataset.
        features: the columns of every config; what a row has beyond them is left out, what it lacks is null.
    """

    def __init__(self, root: Path, features: Mapping[str, Features]):
        self._root = root
        self._schemas = {config: columns.arrow_schema for config, columns in features.items()}
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._open: dict[str, tuple[str, pq.ParquetWriter]] = {}
        self.counts: Counter[str] = Counter()  # by "config/split"

    def add(self, config: str, split: str, row: Mapping[str, Any]) -> None:
        key = f"{config}/{split}"
        self._rows.setdefault(key, []).append({name: row.get(name) for name in self._schemas[config].names})
        self.counts[key] += 1
        if len(self._rows[key]) == ROWS_PER_GROUP:
            self._flush(key)

    def _flush(self, key: str) -> None:
        schema = self._schemas[key.split("/")[0]]
        name = f"{key}-{(self.counts[key] - 1) // ROWS_PER_FILE:05d}.parquet"
        if self._open.get(key, ("", None))[0] != name:
            self._close(key)
            path = self._root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            options = {"compression": "snappy", "use_content_defined_chunking": True, "write_page_index": True}
            self._open[key] = name, pq.ParquetWriter(path, schema, **options)
        self._open[key][1].write_table(pa.Table.from_pylist(self._rows.pop(key), schema))

    def _close(self, key: str) -> None:
        if key in self._open:
            self._open.pop(key)[1].close()

    def close(self) -> dict[str, int]:
        """Write what is left; returns rows by ``config/split``."""
        for key in list(self._rows):
            self._flush(key)
        for key in list(self._open):
            self._close(key)
        return dict(sorted(self.counts.items()))


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
