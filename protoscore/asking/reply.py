"""From a judge's reply to a verdict: a state, an answer from the closed schema, and every repair by name. Never a guess.

States: ``ok``; ``abstained`` (every closed field withholds its decision); ``refused`` (the server filtered the content, or
the reply holds no object and says in its first words that the judge will not answer); ``invalid`` (anything else that is no
answer). A rationale is kept and read by nobody here.

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
====================== ==================================================================================
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from pydantic import ValidationError

from protoscore.asking.labels import fold
from protoscore.asking.lenient_json import Malformed, read_object
from protoscore.asking.protocol import Field, Protocol
from protoscore.schema import Status

LONGEST = 100_000  # characters of a reply that are kept; a longer one is invalid

# A refusal opens with one of these; a reply with an object in it is never read as one.
_OPENINGS = (
    r"(?:i'?m |i am )?(?:very |so |really )?sorry\b",
    r"(?:unfortunately|apologies|as an ai)\b.{0,80}?\b(?:can(?:'?t|not)|unable|not able)\b",
    r"(?:i|we)(?:'m| am| are|'re)? (?:can(?:'?t|not)|won'?t|will not|unable to|not able to|not comfortable)\b",
    r"i (?:must |have to )?(?:decline|refuse)\b",
)
_REFUSAL = re.compile(rf"\W*(?:{'|'.join(_OPENINGS)})", re.IGNORECASE | re.DOTALL)
_INTEGER = re.compile(r"\s*([+-]?\d{1,9})(?:\.0{1,9})?\s*", re.ASCII)


class Parsed(NamedTuple):
    """What a reply amounts to. ``answer`` is set for ``ok`` and ``abstained`` only."""

    state: Status
    answer: dict[str, Any] | None = None
    repairs: tuple[str, ...] = ()
    cause: str = ""  # short and stable, to count by
    reason: str = ""
    abstained: tuple[str, ...] = ()  # closed fields that withhold a decision, also of an ok answer


def parse(protocol: Protocol, text: str, finish_reason: str = "") -> Parsed:
    """Read a complete reply. Every string ends in a state; no string raises."""
    if finish_reason == "content_filter":
        return Parsed(Status.REFUSED, cause="content_filter", reason="the server filtered the content")
    if len(text) > LONGEST:
        return Parsed(Status.INVALID, cause="too_long", reason=f"the reply has more than {LONGEST} characters")
    if finish_reason == "length":
        return Parsed(Status.INVALID, cause="cut_off", reason="the reply ended at the token limit")
    if "{" not in text and _REFUSAL.match(text.replace("\u2019", "'")):
        return Parsed(Status.REFUSED, cause="refusal_text", reason="the judge said that it will not answer")
    repairs: list[str] = []
    try:
        found, repairs = read_object(text)
        answer = _answer(protocol, found, repairs)
    except Malformed as error:
        return Parsed(Status.INVALID, None, _once(repairs), error.cause, storable(str(error)))
    withheld = protocol.abstained(answer)
    closed = protocol.decisions
    state = Status.ABSTAINED if closed and len(withheld) == len(closed) else Status.OK
    return Parsed(state, answer, _once(repairs), abstained=withheld)


def storable(text: str) -> str:
    """``text`` without lone surrogates, which neither SQLite nor Parquet can hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _answer(protocol: Protocol, found: dict[str, Any], repairs: list[str]) -> dict[str, Any]:
    """The schema's fields of an object.

    Raises:
        Malformed: one is missing, given twice, or holds what the schema does not know.
    """
    given = _by_field(protocol, found, repairs)
    answer: dict[str, Any] = {}
    for name, field in protocol.fields.items():
        if name in given:
            answer[name] = _value(protocol, field, given[name], repairs)
        elif field.required:
            raise Malformed("missing_field", f"the answer lacks {name!r}")
    try:
        return protocol.answer.model_validate(answer, strict=True).model_dump()
    except ValidationError as error:
        raise Malformed("schema", error.errors()[0]["msg"]) from error


def _by_field(protocol: Protocol, found: dict[str, Any], repairs: list[str]) -> dict[str, Any]:
    known = {fold(name): name for name in protocol.fields}
    given: dict[str, Any] = {}
    for key, value in found.items():
        name = key if key in protocol.fields else known.get(fold(key))
        if name is None:
            repairs.append("extra_key")
            continue
        if name in given:
            raise Malformed("duplicate_key", f"{name!r} is given twice, in two spellings")
        if name != key:
            repairs.append("key_case")
        given[name] = value
    return given


def _value(protocol: Protocol, field: Field, value: Any, repairs: list[str]) -> Any:
    if field.kind == "text":
        return _text(value, repairs)
    if field.kind == "labels":
        if not isinstance(value, list):
            raise Malformed("wrong_type", f"{field.name!r} is no list")
        return [_label(protocol, field, member, repairs) for member in value]
    if field.kind == "integer":
        return _integer(protocol, field, value, repairs)
    if field.kind == "boolean" and isinstance(value, bool):
        return value
    return _label(protocol, field, value, repairs)


def _text(value: Any, repairs: list[str]) -> str:
    if isinstance(value, str):
        return storable(value)
    repairs.append("text_not_string")
    return storable(json.dumps(value, ensure_ascii=False))


def _label(protocol: Protocol, field: Field, value: Any, repairs: list[str]) -> Any:
    if not isinstance(value, str):
        raise Malformed("wrong_type", f"{field.name!r} holds {_shown(value)}, and a label is due")
    found = protocol.spellings[field.name].find(value)
    if found is None and field.kind == "boolean" and fold(value) in ("true", "false"):
        found = (fold(value) == "true", "boolean_as_string")
    if found is None:
        raise Malformed("unknown_label", f"{field.name!r} holds {_shown(value)}, which is none of its labels")
    if found[1]:
        repairs.append(found[1])
    return found[0]


def _integer(protocol: Protocol, field: Field, value: Any, repairs: list[str]) -> Any:
    if isinstance(value, str):
        digits = _INTEGER.fullmatch(value)
        if not digits:
            return _label(protocol, field, value, repairs)
        value = int(digits[1])
        repairs.append("number_as_string")
    elif isinstance(value, float) and value.is_integer():
        value = int(value)
        repairs.append("float_for_integer")
    if isinstance(value, bool) or not isinstance(value, int):
        raise Malformed("wrong_type", f"{field.name!r} holds {_shown(value)}, and a whole number is due")
    if value not in field.labels:
        raise Malformed("out_of_range", f"{field.name!r} holds {_shown(value)}, which is out of its range")
    return value


def _shown(value: Any) -> str:
    """A value in at most 60 characters."""
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**30 else "a huge number"
    return text if len(text) <= 60 else text[:57] + "..."


def _once(repairs: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(repairs))
