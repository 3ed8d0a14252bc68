"""Stage: each picture is scored 1-10 against its own description, by one filter or several, and a rule says which are kept.

Never contrastive: a filter sees one picture and what that picture was to show (ProtoBias, section 4.2). A measurement is
kept by content, so that a repeat measures nothing again; one that failed is a state, and its picture is not kept.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from protoscore.errors import ConfigError, ProtoscoreError
from protoscore.folder import MANIFEST, claimed, manifest_hash, parts, read_manifest, read_rows, write_manifest, write_table
from protoscore.image_filters import ImageFilter, Measured, Shown
from protoscore.images import RESERVED
from protoscore.schema import Status, content_id
from protoscore.sqlite import connect, transaction

KEEP_FROM = 8  # of 10; "main subject and controlled attributes are present with at most minor ambiguity"
TOGETHER = 64  # measurements of one transaction

MEASUREMENTS, KEPT = "measurements.parquet", "kept.parquet"
_MEASURED = [
    ("id", pa.string()),
    ("filter", pa.string()),
    ("revision", pa.string()),
    ("score", pa.int32()),  # 1-10; null unless ok
    ("status", pa.string()),
    ("reason", pa.string()),
]
_VERDICT = [
    ("id", pa.string()),
    ("kept", pa.bool_()),
    ("score", pa.int32()),  # the lowest of the filters; null when one gave none
    ("status", pa.string()),
    ("reason", pa.string()),
]
_STORE = """
CREATE TABLE IF NOT EXISTS measured (key TEXT PRIMARY KEY, score INTEGER, status TEXT NOT NULL, reason TEXT NOT NULL)
    WITHOUT ROWID;
"""


def filter_pictures(pictures: Path, filters: Sequence[ImageFilter], out: Path, keep_from: int = KEEP_FROM) -> dict[str, int]:
    """Measure every picture that :func:`protoscore.images.make_pictures` wrote, and say which are kept.

    Writes ``measurements.parquet``, one row per picture and filter, and ``kept.parquet``, one row per picture: kept when
    every filter gives it ``keep_from`` or more. Both have the pictures' own fields too.

    Returns:
        Pictures by what became of them: ``kept``, ``rejected`` (each filter gave a score, one was too low), or the state of
        what is not a picture (``refused`` ...) or got no score.

    Raises:
        ConfigError: no filter, or one twice.
        DatasetError: ``pictures`` is not such a folder, or ``out`` holds something else.
    """
    pictures, out = Path(pictures), Path(out)
    names = [one.name for one in filters]
    if not names or len(set(names)) < len(names):
        raise ConfigError("name at least one filter, each of them once")
    made = read_manifest(pictures, "images")
    # What was wanted, and not what came of it: after 'images --retry' the new pictures alone are measured.
    wanted = content_id(json.dumps([made["parameters"], made["parent"]], sort_keys=True))
    described = [{"name": one.name, "revision": one.revision, "parameters": one.parameters} for one in filters]
    parameters = {"filters": described, "rule": "all", "keep_from": keep_from, "pictures": wanted}
    with claimed(out, "filter", parameters):
        if (out / MANIFEST).is_file():
            facts = read_manifest(out, "filter")
            failed = any(states.get(Status.ERROR) for states in facts["states"].values())
            if facts["parent"] == manifest_hash(pictures) and not failed:
                return facts["counts"]
        with closing(connect(out / "measured.sqlite", _STORE)) as db:
            found = [_measure(pictures, one, out, db) for one in filters]
        counts, states = _write(pictures, out, filters, found, keep_from)
        write_manifest(out, "filter", parameters, parent=pictures, counts=counts, states=states)
    return counts


def read_verdicts(folder: Path) -> dict[str, dict[str, Any]]:
    """The rows of ``kept.parquet`` by picture."""
    read_manifest(folder, "filter")
    return {row["id"]: row for row in read_rows([Path(folder) / KEPT], batch=1024)}


def _measure(pictures: Path, one: ImageFilter, out: Path, db: Connection) -> dict[str, Measured]:
    """The measurement of every picture that there is, by id: from the store, or made now and stored."""
    found: dict[str, Measured] = {}
    waiting: deque[tuple[str, str]] = deque()  # ids and keys of what the filter was given

    def unknown() -> Iterator[Shown]:
        for row in read_rows(parts(pictures), ["id", "text", "status", "image", "geometry", "spec"], batch=16):
            if row["status"] != Status.OK:
                continue
            key = _key(one, row)
            known = db.execute("SELECT score, status, reason FROM measured WHERE key = ?", (key,)).fetchone()
            if known:
                found[row["id"]] = Measured(known[0], Status(known[1]), known[2])
                continue
            waiting.append((row["id"], key))
            geometry, spec = (json.loads(row[name]) if row[name] else None for name in ("geometry", "spec"))
            yield Shown(row["id"], row["image"]["bytes"], row["text"], spec, geometry)

    measured = iter(one.measure(unknown(), out))
    while some := list(islice(measured, TOGETHER)):
        if len(some) > len(waiting):
            raise ProtoscoreError(f"filter {one.name!r} gave more measurements than it was given pictures")
        made = [(*waiting.popleft(), _checked(now)) for now in some]
        with transaction(db):
            rows = [(key, now.score, now.status.value, now.reason) for _, key, now in made if now.status != Status.ERROR]
            db.executemany("INSERT OR REPLACE INTO measured VALUES (?,?,?,?)", rows)
        found |= {name: now for name, _, now in made}
    if waiting:
        raise ProtoscoreError(f"filter {one.name!r} gave no measurement for {len(waiting)} pictures")
    return found


def _checked(made: Measured) -> Measured:
    """A measurement that is one."""
    if made.status != Status.OK:
        return Measured(None, Status(made.status), made.reason)
    if isinstance(made.score, bool) or not isinstance(made.score, int) or not 1 <= made.score <= 10:
        return Measured(None, Status.INVALID, f"{made.score!r} is not a whole number from 1 to 10")
    return made


def _key(one: ImageFilter, row: dict[str, Any]) -> str:
    """What a measurement is kept under: who measured, and the content of all that was shown."""
    shown = [hashlib.sha256(row["image"]["bytes"]).hexdigest(), row["text"], row["spec"], row["geometry"]]
    return hashlib.sha256(json.dumps([one.name, one.revision, one.parameters, shown], sort_keys=True).encode()).hexdigest()


def _write(
    pictures: Path, out: Path, filters: Sequence[ImageFilter], found: list[dict[str, Measured]], keep_from: int
) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Write both tables; returns pictures by verdict, and states by filter."""
    columns = pq.read_schema(parts(pictures)[0]).names if parts(pictures) else []
    fields = [name for name in columns if name not in RESERVED]
    measurements: list[dict[str, Any]] = []
    verdicts: list[dict[str, Any]] = []
    counts = Counter({"kept": 0, "rejected": 0})
    states: dict[str, Counter[str]] = {one.name: Counter() for one in filters}
    for row in read_rows(parts(pictures), ["id", "status", "reason", *fields], batch=1024):
        own = {name: row[name] for name in fields}
        absent = Measured(None, Status(row["status"]), row["reason"])
        made = [each.get(row["id"], absent) for each in found]
        for one, measured in zip(filters, made, strict=True):
            states[one.name][measured.status.value] += 1
            measurements.append({"id": row["id"], "filter": one.name, "revision": one.revision} | _columns(measured) | own)
        worst = _worst(made)
        kept = worst.score is not None and worst.score >= keep_from
        verdicts.append({"id": row["id"], "kept": kept} | _columns(worst) | own)
        counts["kept" if kept else "rejected" if worst.score is not None else worst.status.value] += 1
    strings = [(name, pa.string()) for name in fields]
    write_table(out / MEASUREMENTS, pa.Table.from_pylist(measurements, pa.schema([*_MEASURED, *strings])))
    write_table(out / KEPT, pa.Table.from_pylist(verdicts, pa.schema([*_VERDICT, *strings])))
    return dict(sorted(counts.items())), {name: dict(some) for name, some in states.items()}


def _columns(measured: Measured) -> dict[str, Any]:
    return {"score": measured.score, "status": measured.status.value, "reason": measured.reason}


def _worst(made: list[Measured]) -> Measured:
    """The consensus: the lowest score, or the first state that is none."""
    without = next((one for one in made if one.score is None), None)
    return without or min(made, key=lambda one: one.score or 0)
