"""Results that survive a kill: SQLite in WAL mode, keyed by content, so that nothing is ever scored twice."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from protoscore.errors import DatasetError, ProtoscoreError
from protoscore.schema import Status

_SCHEMA = """
CREATE TABLE IF NOT EXISTS results (
    key TEXT PRIMARY KEY, scorer TEXT NOT NULL, status TEXT NOT NULL, score REAL, reason TEXT NOT NULL,
    truncated INTEGER NOT NULL, seconds REAL NOT NULL
) WITHOUT ROWID
"""


class Result(NamedTuple):
    """One scored (image, text): its state, its number when the state is ``ok``, and the time that it took."""

    key: str
    status: Status
    score: float | None
    reason: str
    truncated: bool
    seconds: float


def result_key(scorer: str, revision: str, parameters: dict[str, Any], image: bytes, text: str) -> str:
    """What a result is kept under: who scored, with what, and the content of what was scored."""
    head = json.dumps([scorer, revision, parameters, hashlib.sha256(image).hexdigest(), text], sort_keys=True)
    return hashlib.sha256(head.encode()).hexdigest()


class Store:
    """A file of results. Several processes may use it at once."""

    def __init__(self, path: Path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=60, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            _refuse_full_disk(error)
            raise DatasetError(f"{path} cannot be used as a result store ({error}); choose another --out") from error

    def known(self, keys: Iterable[str]) -> dict[str, Result]:
        """The stored results among ``keys``."""
        wanted, found = list(keys), {}
        for start in range(0, len(wanted), 500):
            part = wanted[start : start + 500]
            marks = ",".join("?" * len(part))
            query = f"SELECT key, status, score, reason, truncated, seconds FROM results WHERE key IN ({marks})"
            for key, status, score, reason, truncated, seconds in self._db.execute(query, part):
                found[key] = Result(key, Status(status), score, reason, bool(truncated), seconds)
        return found

    def add(self, scorer: str, results: Iterable[Result]) -> None:
        """Keep results, all or none of them. A failure is kept as a state only when its input is to blame."""
        rows = [(r.key, scorer, r.status.value, r.score, r.reason, int(r.truncated), r.seconds) for r in results]
        with self._transaction():
            self._db.executemany("INSERT OR REPLACE INTO results VALUES (?,?,?,?,?,?,?)", rows)

    def seconds(self, scorer: str) -> float:
        """Time spent on all stored results of a scorer."""
        row = self._db.execute("SELECT SUM(seconds) FROM results WHERE scorer = ?", (scorer,)).fetchone()
        return float(row[0] or 0.0)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            _refuse_full_disk(error)
            raise

    def close(self) -> None:
        self._db.close()


def _refuse_full_disk(error: Exception) -> None:
    """SQLite tells a full disk in two ways, depending on which write hit the limit."""
    if "full" in str(error) or "disk I/O" in str(error):
        raise ProtoscoreError(f"the disk is full ({error}); free some space and run the same command again") from error
