"""Several replies about one item combined into one decision. Documented rules, no weights, and abstention where they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from statistics import median_low
from typing import Any, NamedTuple

import pyarrow as pa

from protoscore.asking.fields import Field
from protoscore.asking.protocol import Protocol
from protoscore.asking.reply import best
from protoscore.asking.verdicts import Verdict, answer_columns
from protoscore.schema import Status


class Decision(NamedTuple):
    """What the replies about an item amount to. ``answer`` holds the closed fields; None where the replies differ."""

    state: Status
    answer: dict[str, Any] | None
    states: Mapping[str, Status]  # of each closed field
    asked: int
    usable: int
    contested: bool  # the usable replies differ in a closed field, or there is none

    @property
    def abstained(self) -> tuple[str, ...]:
        return tuple(name for name, state in self.states.items() if state == Status.ABSTAINED)


class Vote(NamedTuple):
    """What one reply says about one field."""

    state: Status
    value: Any = None


def decide(protocol: Protocol, verdicts: list[Verdict]) -> Decision:
    """Combine the verdicts about one item, field by field.

    A label needs more than half of the usable votes, among which an abstention is a vote like any other; without such a
    majority the field abstains. A number is the lower median, so it stays on the rubric. What is unmapped, invalid, refused or
    an error is not a vote; a field without votes has the state that most of its replies have. Of two alternatives, both
    orders are one vote together: for what they agree on, for neither where they differ, and none where one order has none.
    """
    usable = [v.parsed.answer for v in verdicts if v.usable and v.parsed.answer is not None]
    if not usable:
        state = Counter(v.parsed.state for v in verdicts).most_common(1)[0][0]
        return Decision(state, None, dict.fromkeys(protocol.decisions, state), len(verdicts), 0, True)
    combined = {name: _combine(protocol.fields[name], _votes(protocol, name, verdicts)) for name in protocol.decisions}
    state = best(vote.state for vote in combined.values())
    decided = state in (Status.OK, Status.ABSTAINED)
    answer = {name: vote.value for name, vote in combined.items()} if decided else None
    contested = any(a[name] != usable[0][name] for a in usable for name in protocol.decisions)
    return Decision(state, answer, {name: v.state for name, v in combined.items()}, len(verdicts), len(usable), contested)


def _votes(protocol: Protocol, name: str, verdicts: list[Verdict]) -> list[Vote]:
    votes = [Vote(v.parsed.of(name), (v.parsed.answer or {}).get(name)) for v in verdicts]
    if protocol.alternatives is None or name != protocol.alternatives.field:
        return votes
    pairs: dict[tuple[str, str, int], list[Vote]] = {}
    for verdict, vote in zip(verdicts, votes, strict=True):
        pairs.setdefault((verdict.judge, verdict.ask.variant, verdict.ask.sample), []).append(vote)
    return [_of_both_orders(pair) for pair in pairs.values()]


def _of_both_orders(votes: list[Vote]) -> Vote:
    without = next((vote for vote in votes if not _counts(vote)), None)
    if without is not None:
        return Vote(without.state)
    return votes[0] if len({vote.value for vote in votes}) == 1 else Vote(Status.ABSTAINED)


def _counts(vote: Vote) -> bool:
    return vote.state in (Status.OK, Status.ABSTAINED)


def _combine(field: Field, votes: list[Vote]) -> Vote:
    if len(votes) == 1 and field.kind != "labels":
        return votes[0]
    usable = [vote for vote in votes if _counts(vote)]
    if not usable:
        return Vote(Counter(vote.state for vote in votes).most_common(1)[0][0])
    if field.kind == "integer":
        middle = median_low(vote.value for vote in usable)
        return next(vote for vote in usable if vote.value == middle)
    values = [tuple(sorted(vote.value)) if isinstance(vote.value, list) else vote.value for vote in usable]
    value, count = Counter(values).most_common(1)[0]
    if 2 * count <= len(values) or value is None:
        return Vote(Status.ABSTAINED)
    return Vote(usable[values.index(value)].state, list(value) if field.kind == "labels" else value)


def decision_columns(protocol: Protocol) -> list[tuple[str, pa.DataType]]:
    """The columns of the table of decisions, but for the items' own."""
    return [
        ("item", pa.string()), ("state", pa.string()), ("abstained", pa.list_(pa.string())), ("asked", pa.int32()),
        ("usable", pa.int32()), ("contested", pa.bool_()), ("judges", pa.list_(pa.string())),
        *answer_columns(protocol, protocol.decisions),
    ]  # fmt: skip


def decision_row(protocol: Protocol, item: str, verdicts: list[Verdict]) -> dict[str, Any]:
    """One row of that table: an item's combined decision, and how many replies it stands on."""
    decision = decide(protocol, verdicts)
    return {
        "item": item, "state": decision.state.value, "abstained": list(decision.abstained), "asked": decision.asked,
        "usable": decision.usable, "contested": decision.contested, "judges": _in_turn(v.judge for v in verdicts),
        **{f"answer_{name}": (decision.answer or {}).get(name) for name in protocol.decisions},
        **{f"state_{name}": state.value for name, state in decision.states.items()},
    }  # fmt: skip


def _in_turn(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
