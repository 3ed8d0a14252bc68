"""Stage: rows in, verdicts and decisions out, by one judge or two."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from protoscore.asking.dispatch import Budget, Patience
from protoscore.asking.ledger import Spent
from protoscore.asking.protocol import Protocol
from protoscore.asking.questions import Robustness
from protoscore.asking.stage import ONCE, PATIENT, UNLIMITED, AskingRun, grouped, opened, rehearse
from protoscore.asking.verdicts import ItemColumns, Verdict, verdict_columns, verdict_row
from protoscore.errors import ProtoscoreError
from protoscore.folder import table_writer, write_manifest, write_text
from protoscore.judging.decide import decide, decision_columns, decision_row
from protoscore.schema import Status
from protoscore.sources.rows import RowSource, contents_of
from protoscore.vlms import VLM

PART = 5000  # rows of a table that are held before they are written


class Judged(NamedTuple):
    """What a run came to. ``states`` counts verdicts."""

    items: int
    states: dict[str, int]
    asked_now: int
    spent: Spent


def judge_items(
    protocol: Protocol, items: RowSource, judge: VLM, out: Path, how: Robustness = ONCE,
    second: VLM | None = None, budget: Budget = UNLIMITED, patience: Patience = PATIENT, ask_lost: bool = False,
    retry: Collection[Status] = (),
) -> Judged:  # fmt: skip
    """Judge every item and write ``verdicts.parquet`` (one row a question) and ``decisions.parquet`` (one row an item).

    Args:
        second: asked, with the protocol's own prompt, about the items on which the first judge's usable replies disagree, or
            of which there is none.
        budget: of the run, over all its processes.
        ask_lost: ask again what was in flight when an earlier process was killed.
        retry: states whose replies are asked for again, once.

    Raises:
        DatasetError: ``out`` holds other work, or another process is judging into it.
        ProtoscoreError: the run ended early (budget, server); what there is was written.
    """
    rehearse(protocol, items, judge, how)
    parameters = parameters_of(protocol, items, [judge, *([second] if second else [])], how)
    with opened(out, protocol, items, parameters, budget, patience) as run:
        first, again = run.ask(judge, how, ask_lost, retry=retry), list[Verdict]()
        if second:
            torn = {name for name, some in grouped(first) if decide(protocol, some).contested}
            again = list(run.ask(second, Robustness(shuffle=how.shuffle), ask_lost, lambda item: item.id in torn))
        tally, shown, later = Tally(), ItemColumns(run.fields), dict(grouped(again))
        with (
            _rows(run.out / "verdicts.parquet", shown, verdict_columns(protocol)) as said,
            _rows(run.out / "decisions.parquet", shown, decision_columns(protocol)) as decided,
        ):
            for name, some in grouped(first):
                for verdict in some:
                    said(verdict_row(protocol, tally.count(verdict)))
                decided(decision_row(protocol, name, [*some, *later.get(name, ())]))
            for verdict in again:
                said(verdict_row(protocol, tally.count(verdict)))
        return finish(run, tally, parameters)


class Tally:
    """What verdicts came to, counted as they pass."""

    def __init__(self) -> None:
        self.states, self.causes, self.repairs = Counter[str](), Counter[str](), Counter[str]()
        self.unanswered = Counter[str]()  # reasons of the questions that got no reply
        self.seconds = 0.0

    @property
    def verdicts(self) -> int:
        return self.states.total()

    def count(self, verdict: Verdict) -> Verdict:
        parsed = verdict.parsed
        self.states[parsed.state.value] += 1
        self.causes.update([parsed.cause] if parsed.cause else [])
        self.repairs.update(parsed.repairs)
        self.unanswered.update([parsed.reason] if parsed.cause in ("transient", "permanent") else [])
        self.seconds += verdict.reply.seconds
        return verdict


@contextmanager
def _rows(path: Path, items: ItemColumns, columns: list[tuple[str, pa.DataType]]) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A table that is written as its rows come, and appears whole."""
    waiting: list[dict[str, Any]] = []
    with table_writer(path, items.schema(columns)) as writer:

        def add(row: dict[str, Any]) -> None:
            waiting.append(row)
            if len(waiting) == PART:
                writer.write_table(items.table(waiting, columns))
                waiting.clear()

        yield add
        if waiting:
            writer.write_table(items.table(waiting, columns))


def finish(run: AskingRun, tally: Tally, parameters: dict[str, Any], screening: float = 0.0) -> Judged:
    """Write the manifest of a run whose tables are written.

    Raises:
        ProtoscoreError: the run ended early; everything is written before that is said.
    """
    states, spent = tally.states, run.ledger.spent
    write_manifest(
        run.out, "judge", parameters, rows=tally.verdicts, items=len(run.fields), states=dict(states),
        causes=dict(tally.causes), repairs=dict(tally.repairs), complete=not run.stopped, fields=run.protocol.described(),
        untaught=run.untaught,
    )  # fmt: skip
    usage = spent._asdict() | {
        "seconds": round(tally.seconds, 3),
        "screening_seconds": round(screening, 3),  # of a cascade's metric, in this process
        "without_reply": run.ledger.failures(),
    }
    write_text(run.out / "usage.json", json.dumps(usage, indent=2) + "\n")
    if not run.stopped and tally.verdicts and tally.unanswered.total() == tally.verdicts:
        reason = tally.unanswered.most_common(1)[0][0]
        raise ProtoscoreError(f"none of {tally.verdicts} questions got a reply ({reason}); run the same command again to go on")
    if run.stopped:
        asked = tally.verdicts - tally.causes["not_asked"]
        raise ProtoscoreError(f"{run.stopped} ({asked} of {tally.verdicts} questions were come to; all is kept)")
    return Judged(len(run.fields), {s.value: states[s.value] for s in Status if states[s.value]}, run.asked_now, spent)


def parameters_of(protocol: Protocol, items: RowSource, judges: list[VLM], how: Robustness) -> dict[str, Any]:
    """What makes two runs the same work. The budget does not."""
    source = dict(getattr(items, "parameters", {}))
    if held := contents_of(items):
        source["rows"] = held
    if place := getattr(items, "source", None):  # no folder of the user's machine in a manifest
        source["source"] = Path(place).name if Path(place).is_absolute() else place
    return {
        "protocol": protocol.name, "version": protocol.version, **source, **how._asdict(),
        "judges": [{"name": j.name, "revision": j.revision, "parameters": j.parameters} for j in judges],
    }  # fmt: skip
