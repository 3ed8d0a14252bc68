"""The table of verdicts: one row a question, with everything that an audit needs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from protoscore.asking.protocol import Protocol
from protoscore.asking.questions import Ask
from protoscore.asking.reply import LONGEST, Parsed, storable
from protoscore.schema import Status
from protoscore.vlms import Reply

_COLUMNS = [
    ("item", pa.string()),
    ("judge", pa.string()),
    ("protocol", pa.string()),
    ("version", pa.string()),
    ("variant", pa.string()),
    ("sample", pa.int32()),
    ("order", pa.string()),  # JSON: the labels as they stood, by field; null where they stood as in the schema
    ("state", pa.string()),
    ("cause", pa.string()),  # short and stable: what kept a verdict, or the first faulty field of an ok one, from an answer
    ("reason", pa.string()),
    ("abstained", pa.list_(pa.string())),  # fields that withhold their decision
    ("unmapped", pa.string()),  # JSON: field -> what was said in place of a label; null where nothing was
    ("answer", pa.string()),  # JSON; null unless ok or abstained
    ("raw", pa.string()),
    ("finish_reason", pa.string()),
    ("tokens_in", pa.int64()),
    ("tokens_out", pa.int64()),
    ("seconds", pa.float64()),
    ("cost", pa.float64()),
    ("repairs", pa.list_(pa.string())),
    ("probabilities", pa.string()),  # JSON, where the judge reads label likelihoods
]
_KINDS = {
    "label": pa.string(),
    "text": pa.string(),
    "integer": pa.int64(),
    "boolean": pa.bool_(),
    "labels": pa.list_(pa.string()),
}


class Verdict(NamedTuple):
    """One question, what came back, and how it was read."""

    ask: Ask
    judge: str
    reply: Reply
    parsed: Parsed

    @property
    def usable(self) -> bool:
        return self.parsed.state in (Status.OK, Status.ABSTAINED)


def failed(ask: Ask, judge: str, cause: str, reason: str) -> Verdict:
    """The verdict of a question without a reply."""
    return Verdict(ask, judge, Reply(), Parsed(Status.ERROR, cause=cause, reason=storable(reason)))


def answer_columns(protocol: Protocol, names: Iterable[str]) -> list[tuple[str, pa.DataType]]:
    """A column ``answer_<field>`` for each named field, null unless it is ok or abstained; ``state_<field>`` where closed."""
    answers = [(f"answer_{name}", _KINDS[protocol.fields[name].kind]) for name in names]
    return answers + [(f"state_{name}", pa.string()) for name in names if protocol.fields[name].closed]


def verdict_table(protocol: Protocol, verdicts: list[Verdict], fields: Mapping[str, Mapping[str, Any]]) -> pa.Table:
    """Verdicts as a table, the items' own fields last. A field whose name is taken is called ``item_<field>``."""
    schema = pa.schema(_COLUMNS + answer_columns(protocol, protocol.fields))
    rows = [_row(protocol, verdict) for verdict in verdicts]
    return with_item_fields(pa.Table.from_pylist(rows, schema), [verdict.ask.item for verdict in verdicts], fields)


def with_item_fields(table: pa.Table, items: list[str], fields: Mapping[str, Mapping[str, Any]]) -> pa.Table:
    """``table`` with a column for every field of the items, row by row."""
    names = dict.fromkeys(name for item in fields.values() for name in item)
    for name in names:
        column = f"item_{name}" if name in table.column_names else name
        table = table.append_column(column, _column([fields[item].get(name) for item in items]))
    return table


def _column(values: list[Any]) -> pa.Array:
    """Plain values of one kind as they are; anything else as JSON."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {str} or kinds <= {int} or kinds <= {float} or kinds <= {bool}:
        return pa.array([storable(v) if isinstance(v, str) else v for v in values], None if kinds else pa.string())
    return pa.array([None if v is None else json.dumps(v, ensure_ascii=True, default=str) for v in values], pa.string())


def _row(protocol: Protocol, verdict: Verdict) -> dict[str, Any]:
    ask, reply, parsed = verdict.ask, verdict.reply, verdict.parsed
    answer = parsed.answer or {}
    return {
        "item": ask.item, "judge": verdict.judge, "protocol": protocol.name, "version": protocol.version,
        "variant": ask.variant, "sample": ask.sample,
        "order": ask.order and json.dumps(ask.order, ensure_ascii=False), "state": parsed.state.value,
        "cause": parsed.cause, "reason": parsed.reason, "abstained": list(parsed.abstained),
        "unmapped": json.dumps(parsed.unmapped, ensure_ascii=False) if parsed.unmapped else None,
        "answer": json.dumps(parsed.answer, ensure_ascii=False) if parsed.answer is not None else None,
        "raw": storable(reply.text[:LONGEST]), "finish_reason": reply.finish_reason, "tokens_in": reply.tokens_in,
        "tokens_out": reply.tokens_out, "seconds": reply.seconds, "cost": reply.cost, "repairs": list(parsed.repairs),
        "probabilities": json.dumps(reply.probabilities) if reply.probabilities else None,
        **{f"answer_{name}": answer.get(name) for name in protocol.fields},
        **{f"state_{name}": parsed.of(name).value for name in protocol.decisions},
    }  # fmt: skip
