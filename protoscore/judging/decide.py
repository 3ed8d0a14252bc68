"""Several replies about one item combined into one decision. Documented rules, no weights, and abstention where they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from statistics import median_low
from typing import Any, NamedTuple

import pyarrow as pa

from protoscore.asking.protocol import Field, Protocol
from protoscore.asking.verdicts import Verdict, answer_columns, with_item_fields
from protoscore.schema import Status


class Decision(NamedTuple):
    """What the replies about an item amount to. ``answer`` holds the closed fields; None where the replies differ."""

    state: Status
    answer: dict[str, Any] | None
    abstained: tuple[str, ...]
    asked: int
    usable: int
    contested: bool  # the usable replies differ in a closed field, or there is none


def decide(protocol: Protocol, verdicts: list[Verdict]) -> Decision:
    """Combine the verdicts about one item, field by field.

    A label needs more than half of the usable replies, among which an abstention is a vote like any other; without such a
    majority the field abstains. A number is the lower median, so it stays on the rubric. Replies that are invalid, refused or
    errors have no vote; when no reply is usable, the state is the most frequent one.
    """
    usable = [v.parsed.answer for v in verdicts if v.usable and v.parsed.answer is not None]
    if not usable:
        states = Counter(v.parsed.state for v in verdicts)
        return Decision(states.most_common(1)[0][0], None, (), len(verdicts), 0, True)
    answer = {name: _combine(protocol.fields[name], [a[name] for a in usable]) for name in protocol.decisions}
    withheld = tuple(n for n in protocol.decisions if answer[n] is None or n in protocol.abstained(answer))
    contested = any(a[name] != usable[0][name] for a in usable for name in protocol.decisions)
    state = Status.ABSTAINED if protocol.decisions and len(withheld) == len(protocol.decisions) else Status.OK
    return Decision(state, answer, withheld, len(verdicts), len(usable), contested)


def _combine(field: Field, values: list[Any]) -> Any:
    if field.kind == "integer":
        return median_low(values)
    votes = Counter(tuple(sorted(value)) if isinstance(value, list) else value for value in values)
    value, count = votes.most_common(1)[0]
    if 2 * count <= len(values):
        return None
    return list(value) if field.kind == "labels" else value


def decision_table(
    protocol: Protocol, verdicts: Mapping[str, list[Verdict]], fields: Mapping[str, Mapping[str, Any]]
) -> pa.Table:
    """One row an item: its combined decision, how many replies it stands on, and the item's fields."""
    closed = [(name, kind) for name, kind in answer_columns(protocol) if name.removeprefix("answer_") in protocol.decisions]
    schema = pa.schema(
        [
            ("item", pa.string()),
            ("state", pa.string()),
            ("abstained", pa.list_(pa.string())),
            ("asked", pa.int32()),
            ("usable", pa.int32()),
            ("contested", pa.bool_()),
            ("judges", pa.list_(pa.string())),
            *closed,
        ]
    )
    rows = []
    for item, some in verdicts.items():
        decision = decide(protocol, some)
        rows.append(
            {
                "item": item, "state": decision.state.value, "abstained": list(decision.abstained), "asked": decision.asked,
                "usable": decision.usable, "contested": decision.contested,
                "judges": list(dict.fromkeys(v.judge for v in some)),
                **{f"answer_{name}": (decision.answer or {}).get(name) for name in protocol.decisions},
            }
        )  # fmt: skip
    return with_item_fields(pa.Table.from_pylist(rows, schema), list(verdicts), fields)
