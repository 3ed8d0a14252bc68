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


class ItemColumns:
    """The items' own fields as columns of one type each, whatever part of the items a table is about.

    Args:
        fields: of every item.
    """

    def __init__(self, fields: Mapping[str, Mapping[str, Any]]):
        self._fields = fields
        kinds: dict[str, set[type]] = {}
        for item in fields.values():
            for name, value in item.items():
                kinds.setdefault(name, set()).add(_kind(value))
        self._types = {name: _TYPES.get(frozenset(found - {type(None)})) for name, found in kinds.items()}

    def schema(self, own: Iterable[tuple[str, pa.DataType]]) -> pa.Schema:
        """The columns of a table, the items' fields last. A field whose name is taken is called ``item_<field>``."""
        columns = dict(own)
        for name, kind in self._types.items():
            columns[f"item_{name}" if name in columns else name] = kind or pa.string()
        return pa.schema(list(columns.items()))

    def table(self, rows: list[dict[str, Any]], own: Iterable[tuple[str, pa.DataType]]) -> pa.Table:
        """Rows that name their ``item``, with its fields."""
        columns, schema = list(own), self.schema(own)
        arrays = [pa.array([row.get(name) for row in rows], kind) for name, kind in columns]
        for name, kind in self._types.items():
            values = [self._fields[row["item"]].get(name) for row in rows]
            arrays.append(pa.array([_plain(value, kind) for value in values], kind or pa.string()))
        return pa.Table.from_arrays(arrays, schema=schema)


_TYPES = {
    frozenset(): pa.string(), frozenset({str}): pa.string(), frozenset({int}): pa.int64(), frozenset({float}): pa.float64(),
    frozenset({bool}): pa.bool_(),
}  # fmt: skip


def _kind(value: Any) -> type:
    """The type of a value; ``object`` for a whole number that no column of numbers holds."""
    return object if type(value) is int and not -(2**63) <= value < 2**63 else type(value)


def _plain(value: Any, kind: pa.DataType | None) -> Any:
    """A value for its column: as it is, or as JSON where the values of a field are of several kinds."""
    if value is not None and kind is None:
        return json.dumps(value, ensure_ascii=True, default=str)
    return storable(value) if isinstance(value, str) else value


def verdict_columns(protocol: Protocol) -> list[tuple[str, pa.DataType]]:
    """The columns of the table of verdicts, but for the items' own."""
    return [*_COLUMNS, *answer_columns(protocol, protocol.fields)]


def verdict_row(protocol: Protocol, verdict: Verdict) -> dict[str, Any]:
    """One row of that table."""
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
