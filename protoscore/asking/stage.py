"""The stage that asks: rows in, a verdict for every question out. Resumes where it was stopped; what it gives
depends on what was asked and answered only. Judging, and every benchmark that asks a model under test, stands on it.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

from protoscore.asking.dispatch import Asking, Budget, Patience, Question
from protoscore.asking.ledger import Ledger
from protoscore.asking.progress import Progress
from protoscore.asking.prompts import NothingToAsk
from protoscore.asking.protocol import Protocol
from protoscore.asking.questions import Ask, Robustness, asks, check_item, digests_of, key_of, request_of
from protoscore.asking.reply import parse
from protoscore.asking.verdicts import Verdict, failed
from protoscore.errors import ConfigError, DatasetError, ImageError
from protoscore.folder import claimed
from protoscore.schema import Status
from protoscore.sources.decoding import open_image
from protoscore.sources.rows import Row, RowSource, each
from protoscore.vlms import VLM, Reply

ONCE, UNLIMITED, PATIENT = Robustness(), Budget(), Patience()
LOST = "in flight when an earlier run was killed, so it may have been billed; --ask-lost asks it again"


class AskingRun:
    """One run folder: its ledger, its budget, and the rounds of questions that are asked into it."""

    def __init__(self, out: Path, protocol: Protocol, items: RowSource, budget: Budget, patience: Patience):
        budget.check()
        self.out, self.protocol, self.items = Path(out), protocol, items
        self.budget, self.patience = budget, patience
        self.ledger = Ledger(self.out / "replies.sqlite")
        self.fields: dict[str, dict[str, Any]] = {}  # of every item, in order
        self.stopped = ""
        self.asked_now = 0
        self.untaught: list[str] = []  # judges that were asked what they were never taught

    def ask(
        self, judge: VLM, how: Robustness, ask_lost: bool = False, chosen: Callable[[Row], bool] = lambda item: True,
        retry: Collection[Status] = (),
    ) -> Verdicts:  # fmt: skip
        """Put the protocol's questions about the chosen items to a judge. Every question ends in a verdict.

        Args:
            retry: states whose replies are asked for again, once; the new reply takes the old one's place.
        """
        self._warn(judge)
        if ask_lost or not judge.billed:
            self.ledger.forget_lost(judge.name)
        before = self.ledger.spent.calls
        with Progress(judge.name, self.ledger) as bar:
            asking = Asking(judge, self.ledger, self.budget, self.patience, bar.advance)
            round_ = _Round(self, judge, how, chosen, bar.advance, retry)
            try:
                if not self.stopped:
                    asking.run(round_.questions())
            finally:
                self.asked_now += self.ledger.spent.calls - before
            self.stopped = self.stopped or asking.stopped
            round_.list_the_rest()
        return Verdicts(round_, asking.failed)

    def _warn(self, judge: VLM) -> None:
        taught = getattr(judge, "taught", None)
        if taught is None or self.protocol.version in taught.values():
            return
        self.untaught.append(judge.name)
        says = f"{judge.name} was never taught {self.protocol.name}, so its answers mean nothing; it knows: {', '.join(taught)}"
        print(says, file=sys.stderr)


class Verdicts:
    """The verdicts of one judge, in the order of the items. Each time they are read from the open ledger, so that nobody has
    to hold them all."""

    def __init__(self, made: _Round, failures: dict[str, Reply]):
        self._made, self._failures = made, failures

    def __len__(self) -> int:
        return len(self._made.asked)

    def __iter__(self) -> Iterator[Verdict]:
        return self._made.verdicts(self._failures)


class _Round:
    """The questions of one judge: made as they are needed, and remembered without their pictures."""

    def __init__(
        self, run: AskingRun, judge: VLM, how: Robustness, chosen: Callable[[Row], bool], done: Callable[[int], None],
        retry: Collection[Status],
    ):  # fmt: skip
        self.run, self.judge, self.how, self.chosen, self._done, self._retry = run, judge, how, chosen, done, retry
        self.asked: list[tuple[Ask, str]] = []
        self.broken: dict[str, tuple[str, str]] = {}  # item -> cause and reason why it cannot be asked about
        self._seen: set[str] = set()
        self._answered, self._lost = run.ledger.answered(), run.ledger.lost()  # when the round begins
        self._listing = False
        self._made = self._make()

    def questions(self) -> Iterator[Question]:
        """The questions that have no reply yet, each once."""
        return self._made

    def list_the_rest(self) -> None:
        """Note what was not come to, so that it has its verdicts too."""
        self._listing = True
        deque(self._made, maxlen=0)

    def _make(self) -> Iterator[Question]:
        names: set[str] = set()
        for item in each(self.run.items):
            if item.id in names:
                raise DatasetError(f"two items are called {item.id!r}; name a column of unique names with --id COLUMN")
            names.add(item.id)
            self.run.fields.setdefault(item.id, dict(item.fields))
            if self.chosen(item):
                yield from self._of_item(item)

    def _of_item(self, item: Row) -> Iterator[Question]:
        digests = digests_of(item)
        try:
            made = [(ask, key_of(self.judge, ask, digests)) for ask in asks(self.run.protocol, item, self.how)]
        except (ConfigError, DatasetError) as error:  # e.g. it lacks a field that the first item had
            self.broken[item.id] = "question", str(error)
            self.asked.append((Ask(item.id), ""))
            self._done(1)
            return
        self.asked += [(ask._replace(prompt="", schema={}), key) for ask, key in made]
        fresh = {key: ask for ask, key in made if key not in self._seen}
        self._seen |= set(fresh)
        known = {key for key in fresh if key in self._lost or (key in self._answered and not self._again(fresh[key], key))}
        self._done(len(made) - len(fresh) + len(known))
        if len(known) == len(fresh) or self._listing:
            return
        try:
            images = tuple(open_image(data) for data in item.images)
        except ImageError as error:
            self.broken[item.id] = "image", str(error)
            self._done(len(fresh) - len(known))
            return
        for key, ask in fresh.items():
            if key not in known:
                yield Question(key, request_of(ask, images))

    def _again(self, ask: Ask, key: str) -> bool:
        return bool(self._retry) and self._read(ask, self.run.ledger.replies([key])[key]).parsed.state in self._retry

    def verdicts(self, failures: dict[str, Reply]) -> Iterator[Verdict]:
        """A verdict for everything that was to be asked, in the order of the items."""
        lost = self.run.ledger.lost()
        for start in range(0, len(self.asked), 500):
            part = self.asked[start : start + 500]
            replies = self.run.ledger.replies([key for _, key in part])
            for ask, key in part:
                if key in replies:
                    yield self._read(ask, replies[key])
                elif ask.item in self.broken:
                    yield failed(ask, self.judge.name, *self.broken[ask.item])
                elif key in failures:
                    yield failed(ask, self.judge.name, failures[key].failure, failures[key].reason)
                else:
                    cause, reason = ("lost", LOST) if key in lost else ("not_asked", "the run ended before this was asked")
                    yield failed(ask, self.judge.name, cause, reason)

    def _read(self, ask: Ask, reply: Reply) -> Verdict:
        protocol = self.run.protocol.of(self.run.fields[ask.item])
        parsed = parse(protocol, reply.text, reply.finish_reason)
        return Verdict(ask, self.judge.name, reply, parsed.swapped(protocol) if ask.swapped else parsed)


def rehearse(protocol: Protocol, items: RowSource, judge: VLM, how: Robustness) -> None:
    """Read the first item with something in it and write its questions, so that a mistake shows before anything is asked.

    Raises:
        DatasetError, ConfigError, UnknownName: there is no item, or its questions cannot be written.
    """
    nothing: NothingToAsk | None = None
    for item in each(items):
        try:
            return check_item(protocol, item, judge, how)
        except NothingToAsk as error:  # that item's state
            nothing = nothing or error
    raise nothing or DatasetError("there are no items to judge")


@contextmanager
def opened(
    out: Path, protocol: Protocol, items: RowSource, parameters: dict[str, Any], budget: Budget, patience: Patience
) -> Iterator[AskingRun]:
    """A run folder for this process alone.

    Raises:
        DatasetError: it holds other work, or another process is working into it.
    """
    budget.check()
    where = {"source", "prompts"} if "rows" in parameters else set()  # the same rows may have been moved
    with claimed(Path(out), "judge", {name: value for name, value in parameters.items() if name not in where}):
        run = AskingRun(out, protocol, items, budget, patience)
        try:
            yield run
        finally:
            run.ledger.close()


def grouped(verdicts: Iterable[Verdict]) -> Iterator[tuple[str, list[Verdict]]]:
    """The verdicts of one judge by item, in turn."""
    for item, some in groupby(verdicts, lambda verdict: verdict.ask.item):
        yield item, list(some)
