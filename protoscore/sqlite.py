"""SQLite files that survive a kill: WAL mode, whole transactions, and a full disk in one line."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from protoscore.errors import DatasetError, ProtoscoreError

PATIENCE = 60.0  # seconds that a process waits for another one


def connect(path: Path, schema: str, **options: Any) -> sqlite3.Connection:
    """Open ``path``, which is made with its folder if need be, for several processes of one machine.

    Raises:
        DatasetError: it is another kind of file, or cannot be written.
        ProtoscoreError: the disk is full.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, **options)
        _use_wal(db)
        db.execute("PRAGMA synchronous=NORMAL")
        db.executescript(schema)
    except (OSError, sqlite3.Error) as error:
        _refuse_full_disk(error)
        raise DatasetError(f"{path} cannot be used as a result store ({error}); choose another --out") from error
    return db


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All of what is written inside, or nothing.

    Raises:
        ProtoscoreError: the disk is full.
    """
    try:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("COMMIT")
    except sqlite3.OperationalError as error:
        _refuse_full_disk(error)
        raise
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _use_wal(db: sqlite3.Connection) -> None:
    """For this one lock SQLite does not always wait: processes that open a new file at the same moment collide."""
    give_up = time.monotonic() + PATIENCE
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:  # the low byte is the kind
                raise
        time.sleep(0.01)


def _refuse_full_disk(error: Exception) -> None:
    """SQLite tells a full disk in two ways, depending on which write hit the limit."""
    if "full" in str(error) or "disk I/O" in str(error):
        raise ProtoscoreError(f"the disk is full ({error}); free some space and run the same command again") from error
