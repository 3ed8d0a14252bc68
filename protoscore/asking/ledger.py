"""What was asked and what came back, in SQLite (WAL), so that a kill loses no reply and no reply is paid for twice.

What is guaranteed, for a process that is killed at any moment (``kill -9`` included):

- An attempt is on disk before it is sent, and a reply before the next question of that worker is asked.
- A question whose reply is on disk is not asked again: replies are kept under the content of the question. Only ``--retry``
  asks for those in a named state once more.
- Attempts without an outcome were in flight when the process died, at most as many as calls run at once. Nobody can know
  whether they were billed, so they are *lost*: not asked again unless the user says so.

A call that timed out or broke off is tried again; a server may have billed what it did not deliver. A power cut may lose the
last replies too (``synchronous=NORMAL``). Replies are kept raw: reading them again costs nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from protoscore.sqlite import connect, transaction
from protoscore.vlms import Reply

_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY, judge TEXT NOT NULL, text TEXT NOT NULL, finish_reason TEXT NOT NULL, tokens_in INTEGER,
    tokens_out INTEGER, seconds REAL NOT NULL, cost REAL, probabilities TEXT
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS attempts (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, judge TEXT NOT NULL, started REAL NOT NULL, outcome TEXT,
    tokens INTEGER NOT NULL DEFAULT 0, cost REAL NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS open_attempts ON attempts (key) WHERE outcome IS NULL;
"""
UNSENT = "unsent"  # an attempt without a connection: it is written down, and not counted as a call
_COLUMNS = "key, text, finish_reason, tokens_in, tokens_out, seconds, cost, probabilities"


class Spent(NamedTuple):
    """What a run has used since it was begun, over all its processes. Attempts that failed count as calls."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    def told(self) -> str:
        """In words; the cost only where prices are known."""
        return f"{self.calls:,} calls, {self.tokens:,} tokens" + (f", cost {self.cost:.4f}" if self.cost else "")


class Ledger:
    """The attempts and replies of one run."""

    def __init__(self, path: Path):
        self._db = connect(path, _SCHEMA, check_same_thread=False)
        self.spent = self._spent()

    def replies(self, keys: Iterable[str]) -> dict[str, Reply]:
        """The kept replies among ``keys``."""
        found = {}
        for part in _chunks(keys):
            query = f"SELECT {_COLUMNS} FROM replies WHERE key IN ({','.join('?' * len(part))})"
            for key, text, finish, tokens_in, tokens_out, seconds, cost, probabilities in self._db.execute(query, part):
                read = json.loads(probabilities) if probabilities else None
                found[key] = Reply(text, finish, tokens_in, tokens_out, seconds, cost, probabilities=read)
        return found

    def answered(self) -> set[str]:
        """The keys of all kept replies."""
        return {key for (key,) in self._db.execute("SELECT key FROM replies")}

    def lost(self) -> set[str]:
        """Keys of attempts that have no outcome: they were in flight when an earlier process ended, or are now."""
        return {key for (key,) in self._db.execute("SELECT DISTINCT key FROM attempts WHERE outcome IS NULL")}

    def forget_lost(self, judge: str) -> None:
        """Let the lost questions of a judge be asked again."""
        with transaction(self._db):
            self._db.execute("UPDATE attempts SET outcome = 'lost' WHERE outcome IS NULL AND judge = ?", (judge,))

    def begin(self, judge: str, keys: list[str]) -> list[int]:
        """Write down that ``keys`` are about to be asked; returns the attempts' numbers."""
        with transaction(self._db):
            numbers = [
                self._db.execute(
                    "INSERT INTO attempts (key, judge, started) VALUES (?,?,?)", (key, judge, time.time())
                ).lastrowid
                for key in keys
            ]
        self.spent = self.spent._replace(calls=self.spent.calls + len(keys))
        return [int(number or 0) for number in numbers]

    def end(self, judge: str, numbers: list[int], keys: list[str], replies: list[Reply]) -> None:
        """Keep what came of attempts: the replies, or why there is none. All or nothing."""
        outcomes, kept = [], []
        for number, key, reply in zip(numbers, keys, replies, strict=True):
            tokens = (reply.tokens_in or 0) + (reply.tokens_out or 0)
            ended = "reply" if not reply.failure else f"{reply.failure if reply.sent else UNSENT}: {reply.reason}"
            outcomes.append((ended, tokens, reply.cost or 0.0, number))
            if not reply.failure:
                read = json.dumps(reply.probabilities) if reply.probabilities else None
                kept.append(
                    (
                        key,
                        judge,
                        reply.text,
                        reply.finish_reason,
                        reply.tokens_in,
                        reply.tokens_out,
                        reply.seconds,
                        reply.cost,
                        read,
                    )
                )
            self.spent = Spent(
                self.spent.calls - (not reply.sent), self.spent.tokens + tokens, self.spent.cost + (reply.cost or 0.0)
            )
        with transaction(self._db):
            self._db.executemany("UPDATE attempts SET outcome = ?, tokens = ?, cost = ? WHERE id = ?", outcomes)
            self._db.executemany("INSERT OR REPLACE INTO replies VALUES (?,?,?,?,?,?,?,?,?)", kept)

    def failures(self) -> dict[str, int]:
        """How often each kind of attempt ended in each way but a reply."""
        query = (
            "SELECT COALESCE(outcome, 'in flight'), COUNT(*) FROM attempts WHERE outcome IS NOT 'reply' GROUP BY 1 ORDER BY 1"
        )
        return {str(outcome): int(count) for outcome, count in self._db.execute(query)}

    def _spent(self) -> Spent:
        calls, tokens, cost = self._db.execute(
            "SELECT COUNT(*), COALESCE(SUM(tokens), 0), COALESCE(SUM(cost), 0.0) FROM attempts "
            "WHERE COALESCE(outcome, '') NOT LIKE ?",
            (f"{UNSENT}:%",),
        ).fetchone()
        return Spent(int(calls), int(tokens), float(cost))

    def close(self) -> None:
        self._db.close()


def _chunks(keys: Iterable[str], size: int = 500) -> Iterator[list[str]]:
    wanted = list(keys)
    for start in range(0, len(wanted), size):
        yield wanted[start : start + size]
