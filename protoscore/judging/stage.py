"""Stage: rows in, verdicts and decisions out, by one judge or two."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from protoscore.asking.dispatch import Budget, Patience
from protoscore.asking.ledger import Spent
from protoscore.asking.protocol import Protocol
from protoscore.asking.questions import Robustness
from protoscore.asking.stage import ONCE, PATIENT, UNLIMITED, AskingRun, by_item, opened, rehearse
from protoscore.asking.verdicts import Verdict, verdict_table
from protoscore.errors import ProtoscoreError
from protoscore.folder import write_manifest, write_table, write_text
from protoscore.judging.decide import decide, decision_table
from protoscore.schema import Status
from protoscore.sources.rows import RowSource, contents_of
from protoscore.vlms import VLM


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
        verdicts = run.ask(judge, how, ask_lost, retry=retry)
        if second:
            torn = {name for name, some in by_item(verdicts).items() if decide(protocol, some).contested}
            verdicts += run.ask(second, Robustness(shuffle=how.shuffle), ask_lost, lambda item: item.id in torn)
        return finish(run, verdicts, parameters)


def finish(
    run: AskingRun,
    verdicts: list[Verdict],
    parameters: dict[str, Any],
    decisions: pa.Table | None = None,
    screening: float = 0.0,
) -> Judged:
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
        repairs=dict(repairs), complete=not run.stopped, fields=run.protocol.described(),
    )  # fmt: skip
    spent = run.ledger.spent
    usage = spent._asdict() | {
        "seconds": round(sum(verdict.reply.seconds for verdict in verdicts), 3),
        "screening_seconds": round(screening, 3),  # of a cascade's metric, in this process
        "without_reply": run.ledger.failures(),
    }
    write_text(run.out / "usage.json", json.dumps(usage, indent=2) + "\n")
    unanswered = [verdict.parsed for verdict in verdicts if verdict.parsed.cause in ("transient", "permanent")]
    if not run.stopped and unanswered and len(unanswered) == len(verdicts):
        reason = Counter(parsed.reason for parsed in unanswered).most_common(1)[0][0]
        raise ProtoscoreError(f"none of {len(verdicts)} questions got a reply ({reason}); run the same command again to go on")
    if run.stopped:
        missing = causes["not_asked"]
        raise ProtoscoreError(
            f"{run.stopped} ({len(verdicts) - missing} of {len(verdicts)} questions were come to; all is kept)"
        )
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
