"""The cascade of FairJudge (its section on computational cost): a cheap metric screens, a judge sees what is uncertain or
sensitive, a second judge is heard where the two conflict.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from protoscore.asking.dispatch import Budget, Patience
from protoscore.asking.protocol import Protocol
from protoscore.asking.questions import Robustness
from protoscore.asking.stage import ONCE, PATIENT, UNLIMITED, grouped, opened, rehearse
from protoscore.asking.verdicts import ItemColumns, Verdict, verdict_columns, verdict_row
from protoscore.errors import ConfigError, DatasetError, ImageError
from protoscore.folder import write_table
from protoscore.judging.decide import decide
from protoscore.judging.stage import Judged, Tally, finish, parameters_of
from protoscore.schema import Status
from protoscore.scorers import Scorer
from protoscore.sources.decoding import open_image
from protoscore.sources.rows import RowSource, each
from protoscore.vlms import VLM

_COLUMNS = [
    ("item", pa.string()), ("route", pa.string()), ("state", pa.string()), ("score", pa.float64()), ("decision", pa.string()),
]  # fmt: skip


class Rule(NamedTuple):
    """When the cheap metric is believed.

    Its score (higher is better) rejects at ``low`` and below and accepts at ``high`` and above; between them, and for items
    whose field ``column`` has one of the ``sensitive`` values, a judge is asked. An answer of ``accept_from`` accepts.
    """

    low: float
    high: float
    accept_from: int
    sensitive: Mapping[str, tuple[str, ...]] = {}

    @classmethod
    def of(
        cls, low: float | None, high: float | None, accept_from: int | None, sensitive: Mapping[str, tuple[str, ...]]
    ) -> Rule:
        """A rule from what was typed.

        Raises:
            ConfigError: a part is missing.
        """
        if low is None or high is None or accept_from is None:
            raise ConfigError("a cascade needs --low, --high and --accept-from")
        return cls(low, high, accept_from, sensitive)

    def side(self, score: float | None) -> bool | None:
        """Accept, reject, or None for uncertain."""
        return None if score is None or self.low < score < self.high else score >= self.high

    def is_sensitive(self, fields: Mapping[str, Any]) -> bool:
        return any(str(fields.get(column)) in values for column, values in self.sensitive.items())


class Routed(NamedTuple):
    """What became of one item. ``accept`` is None where nothing usable was said, or the voices stand against each other."""

    route: str  # "cheap", "uncertain", "sensitive", with "+second" when a second judge was asked
    accept: bool | None
    state: Status


def cascade(
    protocol: Protocol, items: RowSource, scorer: Scorer, judge: VLM, out: Path, rule: Rule,
    second: VLM | None = None, how: Robustness = ONCE, budget: Budget = UNLIMITED, patience: Patience = PATIENT,
    ask_lost: bool = False,
) -> Judged:  # fmt: skip
    """Screen every item and judge what the rule escalates. Writes ``verdicts.parquet`` (of the judges) and
    ``decisions.parquet`` (one row an item: route, decision, state, score of the cheap metric).

    Raises:
        ConfigError: the protocol's answer is not a single number, or the thresholds are the wrong way round.
    """
    if len(protocol.decisions) != 1 or protocol.fields[protocol.decisions[0]].kind != "integer":
        raise ConfigError(f"a cascade needs a protocol with one number as its answer; {protocol.name} has {protocol.decisions}")
    if rule.low >= rule.high:
        raise ConfigError(f"the cascade rejects at {rule.low} and accepts at {rule.high}; the first must be the smaller one")
    rehearse(protocol, items, judge, how)
    asked = [judge, *([second] if second else [])]
    parameters = parameters_of(protocol, items, asked, how) | {
        "cascade": {**rule._asdict(), "scorer": scorer.name, "scorer_revision": scorer.revision}
    }
    with opened(out, protocol, items, parameters, budget, patience) as run:
        start = time.perf_counter()
        scores = _screen(items, scorer)
        screening = time.perf_counter() - start
        sides = {name: rule.side(score) for name, score in scores.items()}
        first = dict(grouped(run.ask(judge, how, ask_lost, lambda i: sides[i.id] is None or rule.is_sensitive(i.fields))))
        torn = {name for name, some in first.items() if _conflict(protocol, some, sides[name], rule)} if second else set()
        again = dict(grouped(run.ask(second, ONCE, ask_lost, lambda item: item.id in torn))) if second and torn else {}
        routed = {
            name: _settle(protocol, rule, sides[name], first.get(name), again.get(name), rule.is_sensitive(run.fields[name]))
            for name in run.fields
        }
        tally, columns = Tally(), ItemColumns(run.fields)
        said = [verdict_row(protocol, tally.count(v)) for some in (*first.values(), *again.values()) for v in some]
        write_table(run.out / "verdicts.parquet", columns.table(said, verdict_columns(protocol)))
        write_table(run.out / "decisions.parquet", columns.table(_decided(routed, scores), _COLUMNS))
        return finish(run, tally, parameters, screening)


def _screen(items: RowSource, scorer: Scorer) -> dict[str, float | None]:
    """The cheap metric's score of every item, higher is better; None where there is none."""
    scores: dict[str, float | None] = {}
    sign = 1.0 if scorer.facts.higher_is_better else -1.0
    stream = each(items)
    while batch := list(islice(stream, scorer.batch_size)):
        readable = []
        for item in batch:
            if not isinstance(item.fields.get("text"), str):
                raise DatasetError("a cascade compares pictures with a text; map a column to it with --field text=COLUMN")
            scores[item.id] = None
            try:
                readable.append((item, open_image(item.images[0] if item.images else b"")))
            except ImageError:
                continue
        results = scorer.score([image for _, image in readable], [item.fields["text"] for item, _ in readable])
        for (item, _), result in zip(readable, results, strict=True):
            if result.status == Status.OK and result.value is not None and np.isfinite(result.value):
                scores[item.id] = sign * result.value
    return scores


def _voice(protocol: Protocol, rule: Rule, verdicts: list[Verdict]) -> bool | None:
    """What a judge says: accept, reject, or None when it says nothing usable."""
    answer = decide(protocol, verdicts).answer
    return None if answer is None else answer[protocol.decisions[0]] >= rule.accept_from


def _conflict(protocol: Protocol, verdicts: list[Verdict], side: bool | None, rule: Rule) -> bool:
    voice = _voice(protocol, rule, verdicts)
    return voice is None or (side is not None and side != voice)


def _settle(
    protocol: Protocol, rule: Rule, side: bool | None, first: list[Verdict] | None, again: list[Verdict] | None, sensitive: bool
) -> Routed:
    if first is None:
        return Routed("cheap", side, Status.OK)
    route = ("sensitive" if sensitive else "uncertain") + ("+second" if again else "")
    voices = [_voice(protocol, rule, some) for some in (first, again) if some]
    heard = [voice for voice in voices if voice is not None]
    if again and side is not None:  # the metric took a side: two of three decide
        heard.append(side)
    if not any(voice is not None for voice in voices):
        return Routed(route, None, decide(protocol, first).state)
    accepting = sum(heard)
    if 2 * accepting == len(heard):
        return Routed(route, None, Status.ABSTAINED)
    return Routed(route, 2 * accepting > len(heard), Status.OK)


def _decided(routed: dict[str, Routed], scores: dict[str, float | None]) -> list[dict[str, Any]]:
    return [
        {"item": name, "route": r.route, "state": r.state.value, "score": scores[name],
         "decision": None if r.accept is None else ("accept" if r.accept else "reject")}
        for name, r in routed.items()
    ]  # fmt: skip
