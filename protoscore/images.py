"""Stage: wanted pictures in, pictures out, by any generator. What lies on disk is never made again.

Finished parts are Parquet files whose content depends on what was wanted and on the generator only. The pictures of the
unfinished part lie batch by batch in a small SQLite file, so that a kill loses the batch in flight and nothing else.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence, Sized
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.progress import track

from protoscore.errors import DatasetError
from protoscore.folder import claimed, parts, read_rows, write_manifest, write_table
from protoscore.generators import Generator, Wanted
from protoscore.generators._drawn import Drawn, draw
from protoscore.schema import Status
from protoscore.sqlite import connect, transaction

PART_ROWS, PART_BYTES = 500, 64_000_000  # a part is closed at either
SPOOL = "unfinished.sqlite"

_COLUMNS = [
    ("id", pa.string()),
    ("text", pa.string()),
    ("status", pa.string()),
    ("reason", pa.string()),
    ("seed", pa.int64()),
    ("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
    ("geometry", pa.string()),  # JSON: what the generator knows it drew
    ("spec", pa.string()),  # JSON: what it was to show
]
RESERVED = frozenset(name for name, _ in _COLUMNS)
_SCHEMA = """
CREATE TABLE IF NOT EXISTS pictures (
    position INTEGER PRIMARY KEY, status TEXT NOT NULL, reason TEXT NOT NULL, png BLOB, geometry TEXT
);
"""


def make_pictures(
    wanted: Iterable[Wanted], generator: Generator, out: Path, parameters: dict[str, Any], parent: Path | None = None,
    retry: Collection[str] = (),
) -> dict[str, int]:  # fmt: skip
    """Make every wanted picture and return counts by status.

    Args:
        wanted: in a fixed order, and decided by ``parameters`` and ``parent``.
        parameters: what chose ``wanted``, with the name of its ``benchmark`` where it has one; the generator is added.
        parent: the folder that ``wanted`` was read from.
        retry: states whose pictures are made again, e.g. ``{"error"}``.

    Raises:
        DatasetError: ``out`` holds something else, another process works there, or a wanted picture is malformed.
        ProtoscoreError: whatever would meet every picture (a missing extra, a full disk); what was made is kept.
    """
    out = Path(out)
    parameters = parameters | {
        "generator": {"name": generator.name, "revision": generator.revision, "parameters": generator.parameters}
    }
    with claimed(out, "images", parameters, parent):
        _Making(generator, out, retry).run(wanted)
        counts: Counter[str] = Counter()
        refusals: Counter[str] = Counter()
        for row in read_rows(parts(out), ["status", "reason"], batch=1024):
            counts[row["status"]] += 1
            refusals[row["reason"]] += row["status"] == Status.REFUSED
        write_manifest(
            out, "images", parameters, parent, counts=dict(counts), refusals=dict(+refusals),
            photographic=generator.photographic,
        )  # fmt: skip
    return dict(counts)


class _Making:
    """One run into one folder."""

    def __init__(self, generator: Generator, out: Path, retry: Collection[str]):
        self.generator, self.out, self.retry = generator, out, set(retry)
        self.spool = _Spool(out / SPOOL)
        self.first = 0  # position of the next part's first picture

    def run(self, wanted: Iterable[Wanted]) -> None:
        total = len(wanted) if isinstance(wanted, Sized) else None
        quick = total is not None and total < 200
        stream = iter(track(_checked(wanted), description="drawing", total=total, disable=quick))
        try:
            for path in parts(self.out):
                self._take_up(path, stream)
            self._go_on(enumerate(stream, self.first))
        finally:
            self.spool.close()
        self.spool.remove()

    def _take_up(self, path: Path, stream: Iterator[Wanted]) -> None:
        """Pass over a part that is there; make again what is to be retried."""
        there = list(read_rows([path], [name for name in pq.read_schema(path).names if name not in ("image", "geometry")]))
        some = list(islice(stream, len(there)))
        if [row | _wish(one) for row, one in zip(there, some, strict=False)] != there:
            raise DatasetError(f"{path} holds other pictures than are wanted now; choose another --out, or delete {self.out}")
        begin, self.first = self.first, self.first + len(there)
        again = [begin + i for i, row in enumerate(there) if row["status"] in self.retry]
        self._make([(position, some[position - begin]) for position in again])
        redone = self.spool.take(begin, self.first)  # also what a kill left here after the part was written
        if redone:
            was = [_drawn(row) for row in read_rows([path])]
            self._write(path, some, [redone.get(begin + i, one) for i, one in enumerate(was)])
            self.spool.drop(self.first)

    def _go_on(self, numbered: Iterator[tuple[int, Wanted]]) -> None:
        """Make the rest. Batches are cut by position, so that an interruption does not change what stands in one."""
        size = max(1, self.generator.batch_size)
        pending: list[Wanted] = []
        self.spool.forget(self.retry)
        for _, batch in groupby(numbered, key=lambda pair: pair[0] // size):
            some = list(batch)
            self._make(some)
            pending += [one for _, one in some]
            while (end := _part_end(pending, self.spool.sizes(self.first, len(pending)))) is not None:
                pending = self._close(pending, end)
        if pending:
            self._close(pending, len(pending))

    def _close(self, pending: list[Wanted], end: int) -> list[Wanted]:
        path = self.out / f"part-{len(parts(self.out)):05d}.parquet"
        self._write(path, pending[:end], list(self.spool.take(self.first, self.first + end).values()))
        self.first += end
        self.spool.drop(self.first)
        return pending[end:]

    def _write(self, path: Path, wanted: list[Wanted], drawn: list[Drawn]) -> None:
        rows = [_row(one, became) for one, became in zip(wanted, _as_groups(wanted, drawn), strict=True)]
        schema = pa.schema([*_COLUMNS, *((name, pa.string()) for name in wanted[0].fields)])
        write_table(path, pa.Table.from_pylist(rows, schema), for_hub=False)

    def _make(self, numbered: list[tuple[int, Wanted]]) -> None:
        """Draw what the spool does not hold yet."""
        kept = self.spool.held(position for position, _ in numbered)
        missing = [(position, one) for position, one in numbered if position not in kept]
        size = max(1, self.generator.batch_size)
        for start in range(0, len(missing), size):
            some = missing[start : start + size]
            drawn = draw(self.generator, [one for _, one in some])
            self.spool.put([position for position, _ in some], drawn)


class _Spool:
    """The pictures of the part that is being made, by position."""

    def __init__(self, path: Path):
        self._path = path
        self._db: sqlite3.Connection | None = None

    @property
    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = connect(self._path, _SCHEMA)
        return self._db

    def put(self, positions: Sequence[int], drawn: Sequence[Drawn]) -> None:
        rows = [(position, *one) for position, one in zip(positions, drawn, strict=True)]
        with transaction(self._open):
            self._open.executemany("INSERT OR REPLACE INTO pictures VALUES (?,?,?,?,?)", rows)

    def held(self, positions: Iterable[int]) -> set[int]:
        wanted = list(positions)
        if not wanted or (self._db is None and not self._path.is_file()):
            return set()
        query = "SELECT position FROM pictures WHERE position BETWEEN ? AND ?"
        return {position for (position,) in self._open.execute(query, (wanted[0], wanted[-1]))}

    def sizes(self, start: int, count: int) -> list[int]:
        """Bytes of each of ``count`` pictures from position ``start`` on."""
        query = "SELECT COALESCE(LENGTH(png), 0) FROM pictures WHERE position >= ? ORDER BY position LIMIT ?"
        return [size for (size,) in self._open.execute(query, (start, count))]

    def take(self, start: int, stop: int) -> dict[int, Drawn]:
        if self._db is None and not self._path.is_file():
            return {}
        query = "SELECT position, status, reason, png, geometry FROM pictures WHERE position >= ? AND position < ? ORDER BY 1"
        found = self._open.execute(query, (start, stop))
        return {position: Drawn(Status(status), *rest) for position, status, *rest in found}

    def forget(self, states: Collection[str]) -> None:
        if states and self._path.is_file():
            with transaction(self._open):
                self._open.executemany("DELETE FROM pictures WHERE status = ?", [(state,) for state in states])

    def drop(self, stop: int) -> None:
        with transaction(self._open):
            self._open.execute("DELETE FROM pictures WHERE position < ?", (stop,))

    def close(self) -> None:
        if self._db is not None:
            self._db.close()

    def remove(self) -> None:
        for name in (SPOOL, f"{SPOOL}-wal", f"{SPOOL}-shm"):
            self._path.with_name(name).unlink(missing_ok=True)


def _checked(wanted: Iterable[Wanted]) -> Iterator[Wanted]:
    """The wanted pictures, none with a name that is taken, all with the same fields."""
    seen: set[str] = set()
    fields: Collection[str] | None = None
    for one in wanted:
        fields = one.fields.keys() if fields is None else fields
        if one.fields.keys() != fields:
            raise DatasetError(f"the wanted picture {one.id!r} has the fields {list(one.fields)}, the first one {list(fields)}")
        if one.id in seen:
            raise DatasetError(f"two wanted pictures are called {one.id!r}; each needs a name of its own")
        if taken := RESERVED & one.fields.keys():
            raise DatasetError(f"the wanted picture {one.id!r} has a field {min(taken)!r}, which is a column of every picture")
        seen.add(one.id)
        yield one


def _part_end(pending: list[Wanted], sizes: list[int]) -> int | None:
    """How many of ``pending`` make a full part; None while there is room. A group is never cut."""
    held = 0
    for count, (one, size) in enumerate(zip(pending, sizes, strict=True)):
        whole = count and not (one.group and one.group == pending[count - 1].group)
        if whole and (held >= PART_BYTES or count >= PART_ROWS):
            return count
        held += size
    return None


def _as_groups(wanted: list[Wanted], drawn: list[Drawn]) -> list[Drawn]:
    """What is refused takes the rest of its group with it."""
    refused: dict[str, str] = {}
    for one, became in zip(wanted, drawn, strict=True):
        if one.group and became.status == Status.REFUSED:
            refused.setdefault(one.group, became.reason)
    return [
        Drawn(Status.REFUSED, refused[one.group]) if one.group in refused else became
        for one, became in zip(wanted, drawn, strict=True)
    ]


def _row(wanted: Wanted, drawn: Drawn) -> dict[str, Any]:
    image = None
    if drawn.png is not None:
        image = {"bytes": drawn.png, "path": f"{wanted.id}-{hashlib.sha256(drawn.png).hexdigest()[:12]}.png"}
    return _wish(wanted) | {
        "status": drawn.status.value, "reason": drawn.reason, "image": image, "geometry": drawn.geometry,
    }  # fmt: skip


def _drawn(row: dict[str, Any]) -> Drawn:
    return Drawn(Status(row["status"]), row["reason"], (row["image"] or {}).get("bytes"), row["geometry"])


def _wish(wanted: Wanted) -> dict[str, Any]:
    """The columns that say what was wanted."""
    spec = None if wanted.spec is None else wanted.spec.model_dump_json(exclude_defaults=True)
    return {"id": wanted.id, "text": wanted.text, "seed": wanted.seed, "spec": spec, **wanted.fields}
