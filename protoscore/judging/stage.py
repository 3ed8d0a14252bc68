"""Stage: items in, verdicts out. Resumes where it was stopped; the table depends on what was asked and answered only."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from filelock import FileLock, Timeout

from protoscore.asking.dispatch import Asking, Budget, Patience, Question
from protoscore.asking.ledger import Ledger, Spent
from protoscore.asking.progress import Progress
from protoscore.asking.protocol import Protocol
from protoscore.asking.questions import Ask, Robustness, asks, check, digests_of, key_of, request_of
from protoscore.asking.reply import parse
from protoscore.asking.verdicts import Verdict, failed, verdict_table
from protoscore.errors import DatasetError, ImageError, ProtoscoreError
from protoscore.folder import claim, write_manifest, write_table, write_text
from protoscore.judging.decide import decide, decision_table
from protoscore.judging.injection import Injected
from protoscore.schema import Status
from protoscore.sources.decoding import open_image
from protoscore.sources.items import Item, Items
from protoscore.vlms import VLM, Reply

ONCE, UNLIMITED, PATIENT = Robustness(), Budget(), Patience()
LOST = "in flight when an earlier run was killed, so it may have been billed; --ask-lost asks it again"


class Outcome(NamedTuple):
    """What a run came to. ``states`` counts verdicts."""

    items: int
    states: dict[str, int]
    asked_now: int
    spent: Spent


class Run:
    """One run folder: its ledger, its budget, and the rounds of questions that are asked into it."""

    def __init__(self, out: Path, protocol: Protocol, items: Iterable[Item], budget: Budget, patience: Patience):
        self.out, self.protocol, self.items = Path(out), protocol, items
        self.budget, self.patience = budget, patience
        self.ledger = Ledger(self.out / "replies.sqlite")
        self.fields: dict[str, dict[str, Any]] = {}  # of every item, in order
        self.stopped = ""
        self.asked_now = 0

    def ask(
        self, judge: VLM, how: Robustness, ask_lost: bool = False, chosen: Callable[[Item], bool] = lambda item: True
    ) -> list[Verdict]:
        """Put the protocol's questions about the chosen items to a judge. Every question ends in a verdict."""
        check(self.protocol, judge, how)
        if ask_lost or not judge.billed:
            self.ledger.forget_lost(judge.name)
        before = self.ledger.spent.calls
        with Progress(judge.name, self.ledger) as bar:
            asking = Asking(judge, self.ledger, self.budget, self.patience, bar.advance)
            round_ = _Round(self, judge, how, chosen, bar.advance)
            try:
                if not self.stopped:
                    asking.run(round_.questions())
            finally:
                self.asked_now += self.ledger.spent.calls - before
            self.stopped = self.stopped or asking.stopped
            round_.list_the_rest()
        return round_.verdicts(asking.failed)


class _Round:
    """The questions of one judge: made as they are needed, and remembered without their pictures."""

    def __init__(self, run: Run, judge: VLM, how: Robustness, chosen: Callable[[Item], bool], done: Callable[[int], None]):
        self.run, self.judge, self.how, self.chosen, self._done = run, judge, how, chosen, done
        self.asked: list[tuple[Ask, str]] = []
        self.broken: dict[str, str] = {}  # item -> why its pictures cannot be shown
        self._seen: set[str] = set()
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
        for item in self.run.items:
            if item.id in names:
                raise DatasetError(f"two items are called {item.id!r}; name a column of unique names with --id COLUMN")
            names.add(item.id)
            self.run.fields.setdefault(item.id, dict(item.fields))
            if self.chosen(item):
                yield from self._of_item(item)

    def _of_item(self, item: Item) -> Iterator[Question]:
        digests = digests_of(item)
        made = [(ask, key_of(self.judge, ask, digests)) for ask in asks(self.run.protocol, item, self.how)]
        self.asked += made
        fresh = {key: ask for ask, key in made if key not in self._seen}
        self._seen |= set(fresh)
        ledger = self.run.ledger
        known = set(ledger.replies(fresh)) | ledger.lost(fresh)
        self._done(len(made) - len(fresh) + len(known))
        if len(known) == len(fresh) or self._listing:
            return
        try:
            images = tuple(open_image(data) for data in item.images)
        except ImageError as error:
            self.broken[item.id] = str(error)
            self._done(len(fresh) - len(known))
            return
        for key, ask in fresh.items():
            if key not in known:
                yield Question(key, request_of(ask, images))

    def verdicts(self, failures: dict[str, Reply]) -> list[Verdict]:
        """A verdict for everything that was to be asked, in the order of the items."""
        found: list[Verdict] = []
        for start in range(0, len(self.asked), 500):
            part = self.asked[start : start + 500]
            keys = [key for _, key in part]
            replies, lost = self.run.ledger.replies(keys), self.run.ledger.lost(keys)
            for ask, key in part:
                if key in replies:
                    found.append(self._read(ask, replies[key]))
                elif ask.item in self.broken:
                    found.append(failed(ask, self.judge.name, "image", self.broken[ask.item]))
                elif key in failures:
                    found.append(failed(ask, self.judge.name, failures[key].failure, failures[key].reason))
                else:
                    cause, reason = ("lost", LOST) if key in lost else ("not_asked", "the run ended before this was asked")
                    found.append(failed(ask, self.judge.name, cause, reason))
        return found

    def _read(self, ask: Ask, reply: Reply) -> Verdict:
        return Verdict(ask, self.judge.name, reply, parse(self.run.protocol, reply.text, reply.finish_reason))


def judge_items(
    protocol: Protocol, items: Iterable[Item], judge: VLM, out: Path, how: Robustness = ONCE,
    second: VLM | None = None, budget: Budget = UNLIMITED, patience: Patience = PATIENT, ask_lost: bool = False,
) -> Outcome:  # fmt: skip
    """Judge every item and write ``verdicts.parquet`` (one row a question) and ``decisions.parquet`` (one row an item).

    Args:
        second: asked, with the protocol's own prompt, about the items on which the first judge's usable replies disagree, or
            of which there is none.
        budget: of the run, over all its processes.
        ask_lost: ask again what was in flight when an earlier process was killed.

    Raises:
        DatasetError: ``out`` holds other work, or another process is judging into it.
        ProtoscoreError: the run ended early (budget, server); what there is was written.
    """
    rehearse(protocol, items, judge, how)
    parameters = parameters_of(protocol, items, [judge, *([second] if second else [])], how)
    with opened(out, protocol, items, parameters, budget, patience) as run:
        verdicts = run.ask(judge, how, ask_lost)
        if second:
            torn = {name for name, some in by_item(verdicts).items() if decide(protocol, some).contested}
            verdicts += run.ask(second, Robustness(shuffle=how.shuffle), ask_lost, lambda item: item.id in torn)
        return finish(run, verdicts, parameters)


def rehearse(protocol: Protocol, items: Iterable[Item], judge: VLM, how: Robustness) -> None:
    """Read the first item and write its questions, so that a mistake shows before anything is asked or written.

    Raises:
        DatasetError, ConfigError, UnknownName: there is no item, or its questions cannot be written.
    """
    check(protocol, judge, how)
    first = next(iter(items), None)
    if first is None:
        raise DatasetError("there are no items to judge")
    deque(asks(protocol, first, how), maxlen=0)


@contextmanager
def opened(
    out: Path, protocol: Protocol, items: Iterable[Item], parameters: dict[str, Any], budget: Budget, patience: Patience
) -> Iterator[Run]:
    """A run folder for this process alone.

    Raises:
        DatasetError: it holds other work, or another process is judging into it.
    """
    claim(Path(out), "judge", parameters)
    try:
        with FileLock(Path(out) / ".lock", timeout=0):
            run = Run(out, protocol, items, budget, patience)
            try:
                yield run
            finally:
                run.ledger.close()
    except Timeout as error:
        raise DatasetError(f"another process is judging into {out}; wait for it, or choose another --out") from error


def finish(
    run: Run, verdicts: list[Verdict], parameters: dict[str, Any], decisions: pa.Table | None = None, screening: float = 0.0
) -> Outcome:
    """Write the tables and the manifest of a run.

    Raises:
        ProtoscoreError: the run ended early; everything is written before that is said.
    """
    if decisions is None:
        decisions = decision_table(run.protocol, by_item(verdicts), run.fields)
    write_table(run.out / "verdicts.parquet", verdict_table(run.protocol, verdicts, run.fields))
    write_table(run.out / "decisions.parquet", decisions)
    states = Counter(verdict.parsed.state.value for verdict in verdicts)
    causes = Counter(verdict.parsed.cause for verdict in verdicts if verdict.parsed.cause)
    repairs = Counter(repair for verdict in verdicts for repair in verdict.parsed.repairs)
    write_manifest(
        run.out, "judge", parameters, rows=len(verdicts), items=len(run.fields), states=dict(states), causes=dict(causes),
        repairs=dict(repairs), complete=not run.stopped,
    )  # fmt: skip
    spent = run.ledger.spent
    usage = spent._asdict() | {
        "seconds": round(sum(verdict.reply.seconds for verdict in verdicts), 3),
        "screening_seconds": round(screening, 3),  # of a cascade's metric, in this process
        "without_reply": run.ledger.failures(),
    }
    write_text(run.out / "usage.json", json.dumps(usage, indent=2) + "\n")
    if run.stopped:
        missing = causes["not_asked"]
        raise ProtoscoreError(
            f"{run.stopped} ({len(verdicts) - missing} of {len(verdicts)} questions were come to; all is kept)"
        )
    return Outcome(len(run.fields), {s.value: states[s.value] for s in Status if states[s.value]}, run.asked_now, spent)


def by_item(verdicts: list[Verdict]) -> dict[str, list[Verdict]]:
    grouped: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        grouped.setdefault(verdict.ask.item, []).append(verdict)
    return grouped


def parameters_of(protocol: Protocol, items: Iterable[Item], judges: list[VLM], how: Robustness) -> dict[str, Any]:
    """What makes two runs the same work. The budget does not."""
    source = items.parameters if isinstance(items, (Items, Injected)) else {}
    return {
        "protocol": protocol.name, "version": protocol.version, **source, **how._asdict(),
        "judges": [{"name": j.name, "revision": j.revision, "parameters": j.parameters} for j in judges],
    }  # fmt: skip
