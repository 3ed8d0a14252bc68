"""From a judge's reply to a verdict: a state for it and for each field, an answer from the closed schema, and every repair by
name. Never a guess.

A field is ``ok``, ``abstained`` (it withholds its decision), ``unmapped`` (text that its closed set does not have; the text is
kept) or ``invalid`` (no label at all: a number out of range, a list that holds a label and its abstention). It stands for
itself: the other fields keep their answers. The verdict's state is the best of its closed fields', in that order; without a
closed field it is ``ok``. A reply that is not an answer gives every field its own state: ``refused`` (the server filtered the
content, or the judge says in words that it will not answer) or ``invalid`` (everything else). A rationale is kept and read by
nobody here.

On top of the repairs of :mod:`protoscore.asking.lenient_json`:

====================== ==================================================================================
key_case               a key differs from the field's name in case, spaces, underscores or hyphens
extra_key              a key that the schema does not have is dropped
label_case             a label differs in case, spaces, underscores, hyphens or invisible characters
label_alias            another spelling that the protocol lists
number_as_string       "4" for 4
float_for_integer      4.0 for 4
boolean_as_string      "true" for true
text_not_string        free text given as another JSON value, kept as its JSON
plain_text             the reply is the text itself, where one free text is all that is asked for
====================== ==================================================================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from protoscore.asking.fields import Field
from protoscore.asking.labels import INVISIBLE, fold
from protoscore.asking.lenient_json import Malformed, read_among, read_strict
from protoscore.asking.prose import takes_back
from protoscore.asking.protocol import Protocol
from protoscore.asking.reasoning import after_reasoning
from protoscore.asking.refusals import declines
from protoscore.schema import Status

LONGEST = 100_000  # characters of a reply that are kept; a longer one is invalid
LONGEST_LABEL = 1000  # characters that are kept of what is not a label
_BEST_FIRST = (Status.OK, Status.ABSTAINED, Status.UNMAPPED, Status.INVALID, Status.REFUSED, Status.ERROR)

_INTEGER = re.compile(r"\s*([+-]?\d{1,9})(?:\.0{1,9})?\s*", re.ASCII)


class Parsed(NamedTuple):
    """What a reply amounts to. ``answer`` is set for ``ok`` and ``abstained`` only; a field that is neither is None in it."""

    state: Status
    answer: dict[str, Any] | None = None
    repairs: tuple[str, ...] = ()
    cause: str = ""  # short and stable, to count by; of an ok answer, of its first field that is unmapped or invalid
    reason: str = ""
    states: Mapping[str, Status] = {}  # of each closed field; empty where none could be read
    unmapped: Mapping[str, str] = {}  # field -> what was said

    def of(self, name: str) -> Status:
        """The state of a closed field."""
        return self.states.get(name, self.state)

    @property
    def abstained(self) -> tuple[str, ...]:
        """The closed fields that withhold a decision."""
        return tuple(name for name, state in self.states.items() if state == Status.ABSTAINED)

    def swapped(self, protocol: Protocol) -> Parsed:
        """The same answer, about two alternatives that changed places."""
        if self.answer is None or protocol.alternatives is None:
            return self
        name = protocol.alternatives.field
        first, second = protocol.fields[name].labels[:2]
        value = self.answer[name]
        return self._replace(answer={**self.answer, name: {first: second, second: first}.get(value, value)})


def parse(protocol: Protocol, text: str, finish_reason: str = "") -> Parsed:
    """Read a complete reply. Every string ends in a state; no string raises."""
    if finish_reason == "content_filter":
        return Parsed(Status.REFUSED, cause="content_filter", reason="the server filtered the content")
    if len(text) > LONGEST:
        return Parsed(Status.INVALID, cause="too_long", reason=f"the reply has more than {LONGEST} characters")
    if finish_reason == "length":
        return Parsed(Status.INVALID, cause="cut_off", reason="the reply ended at the token limit")
    repairs: list[str] = []
    try:
        return _read(protocol, text, repairs)
    except Malformed as error:
        return Parsed(Status.INVALID, None, _once(repairs), error.cause, storable(str(error)))


def _read(protocol: Protocol, text: str, repairs: list[str]) -> Parsed:
    found = read_strict(text)
    if found is None:
        answer = after_reasoning(text)
        if len(answer) < len(text):
            repairs.append("reasoning_block")
        if "{" not in answer:
            return _words_only(protocol, answer, repairs)
        found = read_strict(answer) or read_among(answer)
    repairs += found.repairs
    reading = _Reading(protocol, repairs)
    if not any(fold(key) in map(fold, protocol.fields) for key in found.object):
        said = " ".join(value for value in found.object.values() if isinstance(value, str))
        if declines(said):
            return _refused(repairs)
    answered = reading.parsed(reading.answer(found.object))
    if (found.before + found.after).strip() and takes_back(found.before, found.after, *_stated(protocol, answered)):
        raise Malformed("taken_back", "the words around the object deny it, doubt it or offer something else")
    return answered


def _words_only(protocol: Protocol, text: str, repairs: list[str]) -> Parsed:
    """A reply without an object: a refusal, or the text itself where one text is all that is asked for."""
    closed = [field for field in protocol.fields.values() if field.closed]
    numbers = [label for field in closed for label in field.labels if type(label) is int]
    labels = [label for field in closed for label in field.labels if isinstance(label, str)]
    if declines(text, numbers, labels):
        return _refused(repairs)
    if not closed and len(protocol.fields) == 1 and text.strip():
        (name,) = protocol.fields
        return Parsed(Status.OK, {name: storable(text.strip())}, _once([*repairs, "plain_text"]))
    raise Malformed("no_object" if INVISIBLE.sub("", text).strip() else "empty", "no JSON object in the reply")


def _refused(repairs: list[str]) -> Parsed:
    return Parsed(Status.REFUSED, None, _once(repairs), "refusal_text", "the judge said that it will not answer")


def _stated(protocol: Protocol, parsed: Parsed) -> tuple[dict[str, int], dict[str, tuple[str, tuple[str, ...]]]]:
    """The numbers of an answer by field, and its labels with those that it could have had."""
    answer = parsed.answer or {}
    numbers = {name: value for name, value in answer.items() if type(value) is int and protocol.fields[name].kind == "integer"}
    labels = {
        name: (answer[name], tuple(map(str, field.labels)))
        for name, field in protocol.fields.items()
        if field.kind == "label" and isinstance(answer.get(name), str)
    }
    return numbers, labels


def storable(text: str) -> str:
    """``text`` without lone surrogates, which neither SQLite nor Parquet can hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _Reading:
    """One object read field by field."""

    def __init__(self, protocol: Protocol, repairs: list[str]):
        self.protocol, self.repairs = protocol, repairs
        self.states: dict[str, Status] = {}
        self.unmapped: dict[str, str] = {}
        self.first: Malformed | None = None  # what was wrong with a field

    def parsed(self, answer: dict[str, Any]) -> Parsed:
        state = best(self.states.values())
        cause, reason = (self.first.cause, storable(str(self.first))) if self.first else ("", "")
        usable = state in (Status.OK, Status.ABSTAINED)
        return Parsed(state, answer if usable else None, _once(self.repairs), cause, reason, self.states, self.unmapped)

    def answer(self, found: dict[str, Any]) -> dict[str, Any]:
        """The schema's fields of an object.

        Raises:
            Malformed: one is missing or given twice.
        """
        given = self._by_field(found)
        missing = [name for name, field in self.protocol.fields.items() if field.required and name not in given]
        if missing:
            raise Malformed("missing_field", f"the answer lacks {missing[0]!r}")
        answer: dict[str, Any] = {}
        for name, info in self.protocol.answer.model_fields.items():
            field = self.protocol.fields[name]
            if name not in given:
                answer[name] = info.get_default(call_default_factory=True)
            elif field.closed:
                answer[name] = self._decision(field, given[name])
            else:
                answer[name] = self._text(given[name])
        if self.first is None:
            try:
                self.protocol.answer.model_validate(answer, strict=True)
            except ValidationError as error:
                raise Malformed("schema", error.errors()[0]["msg"]) from error
        return answer

    def _by_field(self, found: dict[str, Any]) -> dict[str, Any]:
        fields = self.protocol.fields
        known = {fold(name): name for name in fields}
        given: dict[str, Any] = {}
        for key, value in found.items():
            name = key if key in fields else known.get(fold(key))
            if name is None:
                self.repairs.append("extra_key")
                continue
            if name in given:
                raise Malformed("duplicate_key", f"{name!r} is given twice, in two spellings")
            if name != key:
                self.repairs.append("key_case")
            given[name] = value
        return given

    def _decision(self, field: Field, value: Any) -> Any:
        """A closed field's value, or None where its state says why there is none."""
        try:
            read = self._value(field, value)
            self.states[field.name] = Status.ABSTAINED if self.protocol.withholds(field.name, read) else Status.OK
            return read
        except Malformed as error:
            self.states[field.name] = Status.INVALID
            if error.cause == "unknown_label":
                self.states[field.name] = Status.UNMAPPED
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                self.unmapped[field.name] = storable(text[:LONGEST_LABEL])
            self.first = self.first or error
            return None

    def _value(self, field: Field, value: Any) -> Any:
        if field.kind == "labels":
            if not isinstance(value, list):
                raise Malformed("wrong_type", f"{field.name!r} is not a list")
            labels = [self._label(field, member) for member in value]
            withheld = [label in self.protocol.abstains.get(field.name, ()) for label in labels]
            if any(withheld) and not all(withheld):
                raise Malformed("contradiction", f"{field.name!r} holds a label and its abstention")
            return labels
        if field.kind == "integer":
            return self._integer(field, value)
        if field.kind == "boolean" and isinstance(value, bool):
            return value
        return self._label(field, value)

    def _text(self, value: Any) -> str:
        if isinstance(value, str):
            return storable(value)
        self.repairs.append("text_not_string")
        return storable(json.dumps(value, ensure_ascii=False))

    def _label(self, field: Field, value: Any) -> Any:
        if value is not None and not isinstance(value, str):
            raise Malformed("wrong_type", f"{field.name!r} holds {_shown(value)} where a label belongs")
        found = self.protocol.spellings[field.name].find(value)
        if found is None and field.kind == "boolean" and value is not None and fold(value) in ("true", "false"):
            found = (fold(value) == "true", "boolean_as_string")
        if found is None:
            raise Malformed("unknown_label", f"{field.name!r} holds {_shown(value)}, which is not one of its labels")
        if found[1]:
            self.repairs.append(found[1])
        return found[0]

    def _integer(self, field: Field, value: Any) -> Any:
        if isinstance(value, str):
            digits = _INTEGER.fullmatch(value)
            if not digits:
                return self._label(field, value)
            value = int(digits[1])
            self.repairs.append("number_as_string")
        elif isinstance(value, float) and value.is_integer():
            value = int(value)
            self.repairs.append("float_for_integer")
        if value is None and (found := self.protocol.spellings[field.name].find(None)):
            return found[0]
        if isinstance(value, bool) or not isinstance(value, int):
            raise Malformed("wrong_type", f"{field.name!r} holds {_shown(value)} where a whole number belongs")
        if value not in field.labels:
            raise Malformed("out_of_range", f"{field.name!r} holds {_shown(value)}, which is out of its range")
        return value


def best(states: Iterable[Status]) -> Status:
    """The state of a whole by those of its closed fields: the best of them; ok where there is none."""
    found = set(states)
    return next((state for state in _BEST_FIRST if state in found), Status.OK)


def _shown(value: Any) -> str:
    """A value in at most 60 characters."""
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**30 else "a huge number"
    return text if len(text) <= 60 else text[:57] + "..."


def _once(repairs: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(repairs))
