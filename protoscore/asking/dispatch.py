"""The loop that asks: bounded concurrency, retries with backoff, a budget, and a ledger that is written before and after."""

from __future__ import annotations

import asyncio
import math
import random
import signal
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from protoscore.asking.ledger import Ledger, Spent
from protoscore.asking.reply import LONGEST, storable
from protoscore.errors import ConfigError, ProtoscoreError
from protoscore.vlms import VLM, Reply, Request

Result = TypeVar("Result")


class Budget(NamedTuple):
    """What a run may use over all its processes; None: no limit.

    Calls are counted when they start, so that limit is exact. Tokens and cost are known from replies: they are overstepped by
    at most what the calls in flight use.
    """

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None

    def check(self) -> None:
        """Raises: ConfigError: a limit is not a number above zero."""
        for name, limit in self._asdict().items():
            if limit is not None and not 0 < limit < math.inf:
                raise ConfigError(f"--max-{name} {limit} is not a number above 0; leave it out for no limit")

    def used_up(self, spent: Spent) -> str:
        """Which limit is reached, in words; empty when none is."""
        for name, limit in self._asdict().items():
            if limit is not None and getattr(spent, name) >= limit:
                return f"the budget of {limit} {name if name != 'cost' else '(cost)'} is used up; raise --max-{name} to go on"
        return ""

    def unknowable(self, reply: Reply) -> str:
        """Why a limit cannot be kept with this judge; empty when it can."""
        if self.tokens is not None and reply.tokens_out is None:
            return "the judge reports no token use, so --max-tokens cannot be kept; use --max-calls"
        if self.cost is not None and reply.cost is None:
            return "what a reply costs is unknown, so --max-cost cannot be kept; give the judge price_in and price_out"
        return ""


class Patience(NamedTuple):
    """How failures are met. Waits are in seconds; each is drawn from the upper half of what the backoff allows (jitter)."""

    tries: int = 6  # of one question within a run
    first_wait: float = 1.0  # doubles with every try
    longest_wait: float = 60.0  # a server that asks for more ends the run, which can be taken up later
    failures_in_a_row: int = 25  # questions without one reply between them: the server is down

    def wait(self, tries: int, retry_after: float | None) -> float:
        backoff = min(self.longest_wait, self.first_wait * 2 ** (tries - 1)) * random.uniform(0.5, 1.0)
        return max(backoff, retry_after or 0.0)


class Question(NamedTuple):
    """A request under the key that its reply is kept under."""

    key: str
    request: Request


class Asking:
    """Asks one judge. ``failed`` holds why a question got no reply, ``stopped`` why the run ended early."""

    def __init__(
        self, judge: VLM, ledger: Ledger, budget: Budget, patience: Patience, done: Callable[[int], None] = lambda n: None
    ) -> None:
        self.judge, self.ledger, self.budget, self.patience, self._done = judge, ledger, budget, patience, done
        self.failed: dict[str, Reply] = {}
        self.stopped = ""
        self._interrupted = False
        self._not_before = 0.0
        self._in_a_row = 0

    def run(self, questions: Iterator[Question]) -> None:
        """Ask until the questions, the budget or the patience end. Questions are taken as they are needed.

        Raises:
            KeyboardInterrupt: after Ctrl-C; the calls in flight were waited for. A second Ctrl-C waits for nothing.
        """
        run_coroutine(self._run(questions))
        if self._interrupted:
            raise KeyboardInterrupt

    async def _run(self, questions: Iterator[Question]) -> None:
        self._wake = asyncio.Event()  # ends every pause early
        try:
            with self._first_interrupt_waits():
                async with asyncio.TaskGroup() as group:
                    for _ in range(self.judge.concurrency):
                        group.create_task(self._work(questions))
        except BaseExceptionGroup as errors:  # what stopped one worker stopped the others
            raise errors.exceptions[0] from None
        finally:
            await self.judge.close()

    async def _work(self, questions: Iterator[Question]) -> None:
        for first in questions:  # only then is it known that there is something left to end early
            if (room := await self._room()) == 0:
                return
            await self._ask([first, *islice(questions, room - 1)])

    async def _room(self) -> int:
        """How many questions may be asked at once now, after any wait that the server wants; 0 when the run must end.

        Nobody may wait between this and the asking: another worker would use what is left.
        """
        while not self._ends and (wait := self._not_before - time.monotonic()) > 0:
            await self._sleep(wait)
        self.stopped = self.stopped or self.budget.used_up(self.ledger.spent)
        if self._ends:
            return 0
        left = self.judge.batch_size if self.budget.calls is None else self.budget.calls - self.ledger.spent.calls
        return min(self.judge.batch_size, left)

    @property
    def _ends(self) -> bool:
        return bool(self.stopped) or self._interrupted

    async def _ask(self, batch: list[Question]) -> None:
        """Ask a batch, and again what failed for a passing reason."""
        size, tries = len(batch), 0
        while batch:
            tries += 1
            replies = await self._attempt(batch)
            retried = []
            for question, reply in zip(batch, replies, strict=True):
                if reply.failure == "transient" and tries < self.patience.tries:
                    retried.append((question, reply))
                else:
                    self._settle(question, reply)
            batch = []
            if retried:
                await self._pause(tries, [reply for _, reply in retried])
                room = await self._room()
                batch = [question for question, _ in retried[:room]]
                self.failed |= {question.key: reply for question, reply in retried[room:]}
        self._done(size)

    async def _attempt(self, batch: list[Question]) -> list[Reply]:
        keys = [question.key for question in batch]
        numbers = self.ledger.begin(self.judge.name, keys)
        replies = [_storable(reply) for reply in await self.judge.reply([question.request for question in batch])]
        if len(replies) != len(batch):
            raise ProtoscoreError(f"judge {self.judge.name!r} gave {len(replies)} replies to {len(batch)} questions")
        self.ledger.end(self.judge.name, numbers, keys, replies)
        for reply in replies:
            if not reply.failure:
                self.stopped = self.stopped or self.budget.unknowable(reply)
        return replies

    def _settle(self, question: Question, reply: Reply) -> None:
        if not reply.failure:
            self._in_a_row = 0
            return
        self.failed[question.key] = reply
        self._in_a_row += 1
        if reply.failure == "fatal":
            self.stopped = self.stopped or reply.reason
        elif self._in_a_row >= self.patience.failures_in_a_row:
            self.stopped = self.stopped or f"{self._in_a_row} questions in a row got no reply ({reply.reason})"

    async def _pause(self, tries: int, replies: list[Reply]) -> None:
        asked = max((reply.retry_after or 0.0 for reply in replies), default=0.0)
        if asked > self.patience.longest_wait:
            self.stopped = self.stopped or f"the server asks to wait {asked:.0f} s; run the same command again after that"
            return
        if asked:  # it is meant for every call with this key
            self._not_before = max(self._not_before, time.monotonic() + asked)
        await self._sleep(self.patience.wait(tries, asked))

    async def _sleep(self, seconds: float) -> None:
        if seconds > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), seconds)

    @contextmanager
    def _first_interrupt_waits(self) -> Iterator[None]:
        """Ctrl-C lets the calls in flight end, since their replies may be paid for."""
        loop = asyncio.get_running_loop()

        def interrupt() -> None:
            self._interrupted = True
            self._wake.set()
            loop.remove_signal_handler(signal.SIGINT)

        try:
            loop.add_signal_handler(signal.SIGINT, interrupt)
        except (NotImplementedError, ValueError, RuntimeError):  # Windows, or not the main thread
            yield
            return
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGINT)


def _storable(reply: Reply) -> Reply:
    """A reply whose text can be kept; one that is too long keeps the length that makes it invalid."""
    return reply._replace(text=storable(reply.text[: LONGEST + 1]))


def run_coroutine(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """``asyncio.run``, also where a loop is already running (a notebook): then in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
