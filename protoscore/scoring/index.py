"""What there is to score, found by reading the rows once: the distinct (picture, text) pairs, cut into blocks of fixed make-up.

The rule that makes a table depend on rows and scorers only: **the block is what is computed, kept and handed to shards, always
whole.** Pairs stand in the order in which their picture first comes up, all the pairs of a picture together; a block closes at
the first new picture after ``size`` pairs (or after ``4 * size``), where ``size`` depends on the scorer's batch size alone. So
which pairs meet in a batch, which can move a score in the last digit, is a matter of the rows and the scorer, and neither of
what an earlier run has left in the store, nor of where it was killed, nor of how many machines share the work.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from protoscore.errors import DatasetError
from protoscore.folder import whole_file
from protoscore.sources.rows import TEXT, Row, Rows, keys_of

NAME = "rows.parquet"
_TEXT, _IMAGE = "__text", "__sha256"  # beside the key columns, whose names the source chooses
_BATCH = 1024


class Block(NamedTuple):
    """Pairs that are computed together. ``images`` and ``texts`` are row-wise; ``rows`` is where each picture is read."""

    number: int
    images: list[str]  # sha256 of the bytes
    texts: list[str]
    rows: list[int]

    @property
    def makeup(self) -> str:
        """A name for which pairs it holds, in which order."""
        digest = hashlib.sha256()
        for image, text in zip(self.images, self.texts, strict=True):
            digest.update(f"{image}\x1f{text}\x1e".encode())
        return digest.hexdigest()[:32]

    def only(self, due: list[int]) -> Block:
        """The block with these of its pairs."""
        images, texts, rows = [self.images[i] for i in due], [self.texts[i] for i in due], [self.rows[i] for i in due]
        return Block(self.number, images, texts, rows)


class Index:
    """The pairs of some rows. Holds some 60 bytes a row and each distinct text once; no picture."""

    def __init__(self, path: Path):
        self.path = path
        self._cuts: dict[int, list[int]] = {}
        table = pq.read_table(path, columns=[_TEXT, _IMAGE])
        images, self._images = _codes(table[_IMAGE])
        texts, self._texts = _codes(table[_TEXT])
        width = max(1, len(self._texts))
        pairs, self.pair_of_row = np.unique(images.astype(np.int64) * width + texts, return_inverse=True)
        self._pair_image, self._pair_text = pairs // width, pairs % width
        _, self._row_of_image = np.unique(images, return_index=True)

    def __len__(self) -> int:
        """How many distinct pairs there are."""
        return len(self._pair_image)

    def blocks(self, size: int, numbers: Sequence[int] | None = None) -> Iterator[Block]:
        """The blocks for a block size, or those with the given numbers."""
        starts = self._starts(size)
        for number in numbers if numbers is not None else range(len(starts)):
            start, stop = starts[number], starts[number + 1] if number + 1 < len(starts) else len(self)
            images, texts = self._pair_image[start:stop], self._pair_text[start:stop]
            yield Block(
                number,
                self._images.take(pa.array(images)).to_pylist(),
                self._texts.take(pa.array(texts)).to_pylist(),
                self._row_of_image[images].tolist(),
            )

    def count(self, size: int) -> int:
        """How many blocks there are for a block size."""
        return len(self._starts(size))

    def _starts(self, size: int) -> list[int]:
        if size not in self._cuts:
            starts, images = [0] if len(self) else [], self._pair_image.tolist()
            for pair in range(1, len(images)):
                length = pair - starts[-1]
                if length >= size and (images[pair] != images[pair - 1] or length >= 4 * size):
                    starts.append(pair)
            self._cuts[size] = starts
        return self._cuts[size]

    @cached_property
    def columns(self) -> list[str]:
        return [name for name in pq.read_schema(self.path).names if name not in (_TEXT, _IMAGE)]

    def keys(self, batch: int) -> Iterator[pa.RecordBatch]:
        """The key columns of the rows, in order."""
        with pq.ParquetFile(self.path) as file:
            yield from file.iter_batches(batch, columns=self.columns)


def read_index(rows: Rows, out: Path) -> Index:
    """The index of ``rows`` in ``out``: the one that is there, where it is of the same rows, or else made by reading them."""
    path, fingerprint = out / NAME, rows.fingerprint()
    if fingerprint is None or _fingerprint(path) != fingerprint:
        _write(rows, path, fingerprint)
    return Index(path)


def _fingerprint(path: Path) -> str | None:
    try:
        return (pq.read_schema(path).metadata or {}).get(b"fingerprint", b"").decode() or None
    except (pa.ArrowException, OSError):
        return None


def _write(rows: Rows, path: Path, fingerprint: str | None) -> None:
    names = ["id", *rows.columns, _TEXT, _IMAGE]
    schema = pa.schema([(name, pa.string()) for name in names], metadata={"fingerprint": fingerprint or ""})
    with whole_file(path) as temporary, pq.ParquetWriter(temporary, schema) as writer:
        lines: list[tuple[str, ...]] = []
        ids: set[bytes] = set()  # digests: a million of them are 80 MB
        for row in rows.rows():
            name = hashlib.blake2b(row.id.encode("utf-8", "surrogatepass"), digest_size=12).digest()
            if name in ids:
                raise DatasetError(f"{rows.source}: two rows are called {row.id!r}; name unique ones with --id COLUMN")
            ids.add(name)
            text, image = pair_of(row, rows.source)
            keys = (row.id, *keys_of(row, rows.columns))
            lines.append((*keys, text, hashlib.sha256(image).hexdigest()))
            if len(lines) == _BATCH:
                writer.write_batch(_record(lines, schema))
                lines = []
        if lines:
            writer.write_batch(_record(lines, schema))


def pair_of(row: Row, source: str) -> tuple[str, bytes]:
    """The text and the picture of a row that is to be scored. The text is empty where it is null or blank.

    Raises:
        DatasetError: its source has no texts, or it has another number of pictures than one.
    """
    text = row.fields.get(TEXT)
    if TEXT not in row.fields or not isinstance(text, str | None):
        raise DatasetError(f"{source}: row {row.id!r} has no text to score its picture under; name it with --field text=COLUMN")
    if len(row.images) != 1:
        raise DatasetError(f"{source}: row {row.id!r} has {len(row.images)} pictures, not one; see --image COLUMN")
    return text if text and text.strip() else "", row.images[0]


def _record(lines: list[tuple[str, ...]], schema: pa.Schema) -> pa.RecordBatch:
    return pa.record_batch([pa.array(column, pa.string()) for column in zip(*lines, strict=True)], schema=schema)


def _codes(column: pa.ChunkedArray) -> tuple[NDArray[np.int32], pa.Array]:
    """Numbers in the order in which the values first come up, and the values."""
    encoded = pa.concat_arrays([pa.array([], pa.string()), *column.chunks]).dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False), encoded.dictionary
