"""The one JSON object in a reply: strict JSON first, then a short list of repairs, each recorded by name.

Repairs (anything else is malformed):

====================== ==================================================================================
invisible_characters   a byte order mark, zero-width characters or soft hyphens are taken out
reasoning_block        reasoning before the answer is taken out (:mod:`protoscore.asking.reasoning`)
code_fence             the object stands between Markdown fences
prose                  other text stands before or after the one object
repeated_object        the same object is given twice
single_quotes          strings in single quotes
trailing_comma         a comma after the last member
python_literal         ``True``, ``False``, ``None``
control_character      a raw line end or tab inside a string
====================== ==================================================================================

An opening brace that starts no readable object makes the whole reply malformed, wherever it stands: an inner object of a
broken one must never be taken for the answer.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple

from protoscore.asking.labels import INVISIBLE

DEEPEST = 16  # levels of nesting; answers are flat
_FENCE = re.compile(r"```[ \t]*\w*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,29})(?:\.\d{1,30})?(?:[eE][+-]?\d{1,4})?(?![\w.])", re.ASCII)
_WORD = re.compile(r"-?[A-Za-z]+")
_PLAIN = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")}
_CONTROL = re.compile(r"[\x00-\x1f]")
_ESCAPES = {'"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"true": True, "false": False, "null": None}
_PYTHON = {"True": True, "False": False, "None": None}
_NOT_FINITE = ("NaN", "nan", "Infinity", "inf", "-Infinity", "-inf")


class Malformed(Exception):
    """Why a reply is not an answer: a short stable ``cause`` to count by, and a detail for people."""

    def __init__(self, cause: str, detail: str):
        super().__init__(detail)
        self.cause = cause


class Found(NamedTuple):
    """The one object of a text, the repairs that reading it took, and the words around it."""

    object: dict[str, Any]
    repairs: list[str]
    before: str = ""
    after: str = ""


def read_strict(text: str) -> Found | None:
    """``text`` where it is one strict JSON object, perhaps with invisible characters around it; else None.

    Raises:
        Malformed: it is JSON, and not such an object.
    """
    found = _strict(text)
    if found is not None:
        return Found(found, [])
    clean = INVISIBLE.sub("", text)
    found = _strict(clean) if clean != text else None
    return None if found is None else Found(found, ["invisible_characters"])


def end_of_object(text: str, start: int) -> int:
    """The place behind the object that begins at ``start``; 0 when none can be read there."""
    try:
        return _LenientReader(text).object(start, 0)[1]
    except Malformed:
        return 0


def _strict(text: str) -> dict[str, Any] | None:
    """``text`` as strict JSON; None when it is not."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)
    except RecursionError as error:
        raise Malformed("too_deep", f"nested more than {DEEPEST} levels") from error
    except ValueError:
        return None
    if not isinstance(value, dict):
        raise Malformed("not_an_object", f"the reply is a JSON {type(value).__name__} and no object")
    return value


def read_among(text: str) -> Found:
    """The one object among prose and fences.

    Raises:
        Malformed: there is no object, a broken one, or two different ones.
    """
    clean = INVISIBLE.sub("", text)
    start = clean.find("{")
    if start < 0:
        raise Malformed("no_object" if clean.strip() else "empty", "no JSON object in the reply")
    if clean[:start].rstrip().endswith("["):
        raise Malformed("not_an_object", "the reply is a list and no object")
    reader = _LenientReader(clean)
    found, end = reader.object(start, 0)
    after, again = "", clean.find("{", end)
    while again >= 0:
        other, stop = reader.object(again, 0)
        if json.dumps(other, sort_keys=True) != json.dumps(found, sort_keys=True):
            raise Malformed("two_objects", "the reply holds two different objects")
        reader.repairs.add("repeated_object")
        after, end = after + clean[end:again], stop
        again = clean.find("{", end)
    before, after = clean[:start], after + clean[end:]
    repairs = ["invisible_characters"] if clean != text else []
    if _FENCE.search(before + after):
        repairs.append("code_fence")
    before, after = _FENCE.sub("", before), _FENCE.sub("", after)
    if (before + after).strip():
        repairs.append("prose")
    return Found(found, repairs + sorted(reader.repairs), before, after)


class _LenientReader:
    """Reads JSON that may have single quotes, trailing commas, Python's literals and raw control characters."""

    def __init__(self, text: str):
        self.text = text
        self.repairs: set[str] = set()

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        if depth > DEEPEST:
            raise Malformed("too_deep", f"nested more than {DEEPEST} levels")
        first = self.text[at : at + 1]
        if first == "{":
            return self.object(at, depth)
        if first == "[":
            return self.array(at, depth)
        if first in ('"', "'"):
            return self.string(at)
        number = _NUMBER.match(self.text, at)
        if number:
            digits = number.group()
            return (_finite(digits) if re.search("[.eE]", digits) else int(digits)), number.end()
        return self.word(at)

    def object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        pairs: list[tuple[str, Any]] = []
        at = self.skip(at + 1)
        while self.text[at : at + 1] != "}":
            if self.text[at : at + 1] not in ('"', "'"):
                raise self.broken(at, "a key in quotes")
            key, at = self.string(at)
            at = self.skip(at)
            if self.text[at : at + 1] != ":":
                raise self.broken(at, "':'")
            value, at = self.value(self.skip(at + 1), depth + 1)
            pairs.append((key, value))
            at = self.comma(at, "}")
        return _unique(pairs), at + 1

    def array(self, at: int, depth: int) -> tuple[list[Any], int]:
        values = []
        at = self.skip(at + 1)
        while self.text[at : at + 1] != "]":
            value, at = self.value(at, depth + 1)
            values.append(value)
            at = self.comma(at, "]")
        return values, at + 1

    def comma(self, at: int, closing: str) -> int:
        """The place after a member's comma, or of the closing mark."""
        at = self.skip(at)
        if self.text[at : at + 1] == ",":
            at = self.skip(at + 1)
            if self.text[at : at + 1] == closing:
                self.repairs.add("trailing_comma")
            return at
        if self.text[at : at + 1] != closing:
            raise self.broken(at, f"',' or '{closing}'")
        return at

    def string(self, at: int) -> tuple[str, int]:
        quote, parts, at = self.text[at], [], at + 1
        if quote == "'":
            self.repairs.add("single_quotes")
        while True:
            plain = _PLAIN[quote].match(self.text, at)
            assert plain is not None  # it matches the empty string too
            parts.append(plain.group())
            at = plain.end()
            mark = self.text[at : at + 1]
            if mark == quote:
                break
            piece, at = self.escape(at, quote)
            parts.append(piece)
        text = "".join(parts)
        if any(_CONTROL.search(part) for part in parts[::2]):
            self.repairs.add("control_character")
        return text, at + 1

    def escape(self, at: int, quote: str) -> tuple[str, int]:
        mark = self.text[at + 1 : at + 2]
        if mark == "u" and re.fullmatch("[0-9a-fA-F]{4}", self.text[at + 2 : at + 6]):
            return chr(int(self.text[at + 2 : at + 6], 16)), at + 6
        if mark not in _ESCAPES or (mark == "'" and quote == '"'):
            raise self.broken(at, "the end of a string" if not mark else "a known escape")
        return _ESCAPES[mark], at + 2

    def word(self, at: int) -> tuple[Any, int]:
        word = _WORD.match(self.text, at)
        name = word.group() if word else ""
        if name in _WORDS:
            return _WORDS[name], at + len(name)
        if name in _PYTHON:
            self.repairs.add("python_literal")
            return _PYTHON[name], at + len(name)
        if name in _NOT_FINITE:
            _refuse(name)
        raise self.broken(at, "a value")

    def skip(self, at: int) -> int:
        while self.text[at : at + 1] in (" ", "\t", "\r", "\n"):
            at += 1
        return at

    def broken(self, at: int, expected: str) -> Malformed:
        seen = repr(self.text[at : at + 12]) if at < len(self.text) else "the end"
        return Malformed("broken_object", f"expected {expected} at character {at}, found {seen}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise Malformed("duplicate_key", "a key is given twice")
    return result


def _refuse(constant: str) -> Any:
    raise Malformed("not_finite", f"{constant} is not a number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise Malformed("not_finite", f"{digits[:20]} is too large for a number")
    return value
