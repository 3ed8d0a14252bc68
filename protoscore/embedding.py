"""Stage: rows of one picture each in, a table of vectors out. Each distinct picture is embedded once.

What is computed is always a whole block of pictures, in the order in which they first come up, and a vector is kept by the
content of its picture, by who embedded it, and by its block: which pictures meet in a batch can move the last digit. So the
table depends on the rows, the embedder and its batch size, and not on where a run was stopped.

What failed: ``error`` (a machine's fault, perhaps) is tried again by the next run, every other state is not.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.progress import track

from protoscore.batches import batched
from protoscore.embedders import Embedder
from protoscore.errors import DatasetError, ProtoscoreError
from protoscore.folder import claimed, whole_file, write_manifest
from protoscore.provenance import made_with
from protoscore.schema import Status
from protoscore.sources.decoding import Decoder, Picture, batches, what_happened
from protoscore.sources.rows import Rows, keys_of
from protoscore.sqlite import connect, transaction

STORE, TABLE = "vectors.sqlite", "embeddings.parquet"
ROW_GROUP = 1024  # rows of the table that are held at a time
CHANGED = Picture(None, Status.ERROR, "changed while embedding; run the command again")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (
    key TEXT PRIMARY KEY, status TEXT NOT NULL, reason TEXT NOT NULL, vector BLOB
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS notes (made_with TEXT PRIMARY KEY) WITHOUT ROWID;
"""


class Embedded(NamedTuple):
    """What became of a picture: its vector as float32 bytes, or a state and why."""

    status: Status
    reason: str = ""
    vector: bytes | None = None


class EmbeddingCounts(NamedTuple):
    """What a run did. ``embedded_now`` counts pictures, the others rows; ``reason`` is the commonest of a failure."""

    rows: int
    embedded_now: int
    not_ok: int
    reason: str = ""


class _Line(NamedTuple):
    """A row without its picture."""

    id: str
    keys: tuple[str, ...]
    image: str  # sha256 of the bytes


class _Block(NamedTuple):
    """Pictures that are embedded together: sha256 -> the row in which it is found."""

    rows: dict[str, int]

    def keys(self, who: str) -> dict[str, str]:
        """What each vector is kept under, by picture."""
        makeup = hashlib.sha256("\x1f".join((who, *self.rows)).encode()).hexdigest()
        return {image: hashlib.sha256(f"{makeup}\x1f{image}".encode()).hexdigest()[:40] for image in self.rows}


def embed_rows(rows: Rows, embedder: Embedder, out: Path) -> EmbeddingCounts:
    """Embed the picture of every row and write ``out/embeddings.parquet``: id, the key columns of ``rows``, status, reason,
    vector (list of float32, null where there is none).

    Raises:
        DatasetError: a row has another number of pictures than one, ``out`` holds other work, or another process is at work
            on it.
        ProtoscoreError: the embedder gives vectors of another length or number than it says.
    """
    lines = list(_lines(rows))
    who: dict[str, Any] = {"name": embedder.name, "revision": embedder.revision, "parameters": embedder.parameters}
    who |= {"batch_size": embedder.batch_size, "dimension": embedder.dimension}
    content = hashlib.sha256(json.dumps([list(rows.columns), lines]).encode()).hexdigest()
    with claimed(out, "embed", {"rows": content, "embedder": who}):
        store = _Store(out / STORE)
        try:
            blocks = list(_blocks(lines, embedder.batch_size))
            keys = {image: key for block in blocks for image, key in block.keys(json.dumps(who, sort_keys=True)).items()}
            made = _embed_missing(rows, embedder, blocks, keys, store)
            states, reasons = _write_table(out / TABLE, rows, lines, keys, store)
            parameters = {"source": rows.source, **rows.parameters, "embedder": who}
            facts = {"scenes": rows.scenes, "rows": len(lines), "states": dict(sorted(states.items()))}
            write_manifest(out, "embed", parameters, rows.parent, **facts, made_with=store.notes())
        finally:
            store.close()
    commonest = reasons.most_common(1)
    return EmbeddingCounts(len(lines), made, len(lines) - states[Status.OK.value], commonest[0][0] if commonest else "")


def _lines(rows: Rows) -> Iterator[_Line]:
    for row in rows.rows():
        if len(row.images) != 1:
            raise DatasetError(
                f"{rows.source}: row {row.id!r} has {len(row.images)} pictures, not one; a vector is of one picture"
            )
        keys = keys_of(row, rows.columns)
        yield _Line(row.id, keys, hashlib.sha256(row.images[0]).hexdigest())


def _blocks(lines: list[_Line], size: int) -> Iterator[_Block]:
    first: dict[str, int] = {}
    for number, line in enumerate(lines):
        first.setdefault(line.image, number)
    return (_Block(dict(part)) for part in batched(first.items(), size))


def _embed_missing(rows: Rows, embedder: Embedder, blocks: list[_Block], keys: dict[str, str], store: _Store) -> int:
    """Embed the blocks of which something is missing; how many pictures that were."""
    pending = [block for block in blocks if store.lacks([keys[image] for image in block.rows])]
    decoder = Decoder(ahead=min(256, 2 * embedder.batch_size))
    made = 0
    try:
        pictures = decoder.stream(_pictures(rows, [item for block in pending for item in block.rows.items()]))
        for block in track(pending, description=embedder.name, disable=len(pending) < 3):
            own = (CHANGED if changed else picture for changed, picture in islice(pictures, len(block.rows)))
            found = _embed_block(embedder, own)
            store.add({keys[image]: one for image, one in zip(block.rows, found, strict=True)})
            made += len(found)
    finally:
        decoder.close()
    return made


def _pictures(rows: Rows, wanted: list[tuple[str, int]]) -> Iterator[tuple[bool, str, bytes]]:
    """The pictures of some rows, which are in ascending order, read forward; and whether each is not the one that it was."""
    if not wanted:
        return
    ahead = iter(wanted)
    image, at = next(ahead)
    for number, row in enumerate(rows.rows(at), at):
        if number < at:
            continue
        changed = len(row.images) != 1 or hashlib.sha256(row.images[0]).hexdigest() != image
        yield changed, f"{image} changed" if changed else image, b"" if changed else row.images[0]
        image, at = next(ahead, ("", -1))
        if at < 0:
            return
    raise ProtoscoreError(f"{rows.source} ended before row {at}; it was changed meanwhile: run the command again")


def _embed_block(embedder: Embedder, pictures: Iterable[Picture]) -> list[Embedded]:
    found: list[Embedded] = []
    for batch in batches(pictures, embedder.batch_size, lambda picture: picture):
        vectors = iter(_embed_batch(embedder, [picture.image for picture in batch if picture.image is not None]))
        found += [Embedded(p.status, p.reason) if p.image is None else next(vectors) for p in batch]
    return found


def _embed_batch(embedder: Embedder, images: list[Any]) -> list[Embedded]:
    """Together, and one by one when that raises, so that the guilty picture fails alone."""
    if not images:
        return []
    try:
        vectors = np.asarray(embedder.embed(images), np.float32)
    except ProtoscoreError:
        raise
    except (Exception, SystemExit) as error:  # whatever a model or a user's own embedder raises on some picture
        if len(images) > 1:
            return [one for image in images for one in _embed_batch(embedder, [image])]
        return [Embedded(Status.ERROR, what_happened(error))]
    if vectors.shape != (len(images), embedder.dimension):
        raise ProtoscoreError(
            f"embedder {embedder.name!r} gave vectors of shape {vectors.shape} for {len(images)} pictures; "
            f"({len(images)}, {embedder.dimension}) is needed"
        )
    return [_checked(vector) for vector in vectors]


def _checked(vector: NDArray[np.float32]) -> Embedded:
    if not np.isfinite(vector).all():
        return Embedded(Status.INVALID, "the vector is not finite")
    return Embedded(Status.OK, vector=vector.astype("<f4").tobytes())


def _write_table(
    path: Path, rows: Rows, lines: list[_Line], keys: dict[str, str], store: _Store
) -> tuple[Counter[str], Counter[str]]:
    """Write the table; how many rows are in each state, and how often each reason occurs."""
    texts = ["id", *rows.columns, "status", "reason"]
    schema = pa.schema([(name, pa.string()) for name in texts] + [("vector", pa.list_(pa.float32()))])
    states: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    options = {"compression": "snappy", "use_content_defined_chunking": True, "write_page_index": True}
    with whole_file(path) as temporary, pq.ParquetWriter(temporary, schema, **options) as writer:
        for part in batched(lines, ROW_GROUP):
            known = store.known({keys[line.image] for line in part})
            found = [known[keys[line.image]] for line in part]
            states.update(one.status.value for one in found)
            reasons.update(one.reason for one in found if one.status != Status.OK)
            told = [(line.id, *line.keys, one.status.value, one.reason) for line, one in zip(part, found, strict=True)]
            vectors = [None if one.vector is None else np.frombuffer(one.vector, "<f4") for one in found]
            columns = [pa.array(column, pa.string()) for column in zip(*told, strict=True)]
            writer.write_batch(pa.record_batch([*columns, pa.array(vectors, schema.field("vector").type)], schema=schema))
    return states, reasons


class _Store:
    """Vectors that survive a kill, by key."""

    def __init__(self, path: Path):
        self._db = connect(path, _SCHEMA)

    def known(self, keys: Iterable[str]) -> dict[str, Embedded]:
        found: dict[str, Embedded] = {}
        for part in batched(keys, 500):
            marks = ",".join("?" * len(part))
            query = f"SELECT key, status, reason, vector FROM vectors WHERE key IN ({marks})"
            found |= {key: Embedded(Status(state), why, vector) for key, state, why, vector in self._db.execute(query, part)}
        return found

    def lacks(self, keys: list[str]) -> bool:
        """Whether one of them is not there, or is an error."""
        found = self.known(keys)
        return any(key not in found or found[key].status == Status.ERROR for key in keys)

    def add(self, results: dict[str, Embedded]) -> None:
        """Keep a block, all or none of it, and with what it was made."""
        with transaction(self._db):
            lines = [(key, one.status.value, one.reason, one.vector) for key, one in results.items()]
            self._db.executemany("INSERT OR REPLACE INTO vectors VALUES (?,?,?,?)", lines)
            self._db.execute("INSERT OR IGNORE INTO notes VALUES (?)", (json.dumps(made_with(), sort_keys=True),))

    def notes(self) -> list[dict[str, Any]]:
        """With what the vectors were made: one entry, unless machines or versions differed."""
        return [json.loads(row[0]) for row in self._db.execute("SELECT made_with FROM notes ORDER BY made_with")]

    def close(self) -> None:
        self._db.close()
