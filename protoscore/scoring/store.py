"""Results that survive a kill: SQLite in WAL mode, keyed by content, so that nothing is ever scored twice.

One process writes into a store: the run's, or that of a shard, which may read the run's.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from protoscore.errors import DatasetError
from protoscore.schema import Status
from protoscore.sqlite import connect, transaction

_SCHEMA = """
CREATE TABLE IF NOT EXISTS scores (
    key TEXT PRIMARY KEY, scorer TEXT NOT NULL, status TEXT NOT NULL, score REAL, reason TEXT NOT NULL,
    truncated INTEGER NOT NULL, seconds REAL NOT NULL, made REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS notes (made_with TEXT PRIMARY KEY) WITHOUT ROWID;
"""
# A number that was measured stays; only a failure gives way to what a later try found.
_UNLESS_KNOWN = """
ON CONFLICT(key) DO UPDATE SET status = excluded.status, score = excluded.score, reason = excluded.reason,
truncated = excluded.truncated, seconds = excluded.seconds, made = excluded.made
WHERE scores.status != 'ok' AND excluded.made >= scores.made
"""


class Result(NamedTuple):
    """One scored (image, text): its state, its number when the state is ``ok``, and the time that it took."""

    key: str
    status: Status
    score: float | None
    reason: str
    truncated: bool
    seconds: float
    made: float = 0.0  # Unix time; set by the store


def scorer_key(scorer: str, revision: str, parameters: dict[str, Any]) -> str:
    """Who scores, and with what."""
    return hashlib.sha256(json.dumps([scorer, revision, parameters], sort_keys=True).encode()).hexdigest()


def result_key(scorer: str, image: str, text: str, block: str = "") -> str:
    """What a result is kept under: who scored with what (:func:`scorer_key`), the content of what was scored (``image`` is
    the sha256 of its bytes), and the block that it was scored in where that moves the last digit."""
    return hashlib.sha256("\x1f".join((scorer, image, block, text)).encode()).hexdigest()[:40]


class Store:
    """A file of results.

    Args:
        base: another store, whose results count as known; it is only read.
    """

    def __init__(self, path: Path, base: Path | None = None):
        self.path = path
        self._noted: set[str] = set()
        self._db = connect(path, _SCHEMA, uri=True)
        self._tables = ["main.scores"]
        if base and base.is_file():
            self._db.execute("ATTACH ? AS base", (f"{base.resolve().as_uri()}?mode=ro",))
            self._tables.append("base.scores")

    def known(self, keys: Iterable[str]) -> dict[str, Result]:
        """The stored results among ``keys``."""
        wanted = list(keys)
        found: dict[str, Result] = {}
        for table in self._tables:
            left = [key for key in wanted if key not in found]
            for start in range(0, len(left), 500):
                part = left[start : start + 500]
                marks = ",".join("?" * len(part))
                query = f"SELECT key, status, score, reason, truncated, seconds, made FROM {table} WHERE key IN ({marks})"
                for key, status, score, reason, truncated, seconds, made in self._db.execute(query, part):
                    found[key] = Result(key, Status(status), score, reason, bool(truncated), seconds, made)
        return found

    def add(self, scorer: str, results: Iterable[Result]) -> None:
        """Keep results, all or none of them. A stored number is never replaced."""
        now = time.time()
        rows = [(r.key, scorer, r.status.value, r.score, r.reason, int(r.truncated), r.seconds, now) for r in results]
        with transaction(self._db):
            self._db.executemany(f"INSERT INTO main.scores VALUES (?,?,?,?,?,?,?,?) {_UNLESS_KNOWN}", rows)

    def note(self, made_with: dict[str, Any]) -> None:
        """Keep with what results were made."""
        line = json.dumps(made_with, sort_keys=True)
        if line not in self._noted:
            with transaction(self._db):
                self._db.execute("INSERT OR IGNORE INTO main.notes VALUES (?)", (line,))
            self._noted.add(line)

    def notes(self) -> list[dict[str, Any]]:
        """With what the results were made: one entry, unless machines or versions differed."""
        return [json.loads(row[0]) for row in self._db.execute("SELECT made_with FROM main.notes ORDER BY made_with")]

    def absorb(self, other: Path) -> None:
        """Take over the results of another store."""
        self._db.execute("ATTACH ? AS other", (str(other),))
        try:
            with transaction(self._db):
                self._db.execute(f"INSERT INTO main.scores SELECT * FROM other.scores WHERE true {_UNLESS_KNOWN}")
                self._db.execute("INSERT OR IGNORE INTO main.notes SELECT * FROM other.notes")
        except sqlite3.DatabaseError as error:
            raise DatasetError(f"{other} is not a store of results ({error}); delete it") from error
        finally:
            self._db.execute("DETACH other")

    def close(self) -> None:
        self._db.close()
