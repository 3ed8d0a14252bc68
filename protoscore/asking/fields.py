"""The fields of an answer: closed sets, which become decisions and numbers, and free text, which is kept for audit."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel

from protoscore.errors import ConfigError

Label = str | int | bool
WIDEST = 101  # a bounded integer with more values than this is not a rubric
CLOSED = "labels in data"
OneOf = Annotated[str, CLOSED]  # a field whose labels stand in a YAML file beside the prompt, or in the item
SomeOf = list[OneOf]  # any number of them


@dataclass(frozen=True)
class Field:
    """One field of an answer. ``labels`` is its closed set, in the order of the schema; empty for free text.

    Free text (a rationale, the evidence) is kept for audit. Only closed fields are decisions, and only they reach a number.
    """

    name: str
    kind: Literal["label", "integer", "boolean", "labels", "text"]
    labels: tuple[Label, ...] = ()
    required: bool = True

    @property
    def closed(self) -> bool:
        return self.kind != "text"

    def schema(self, labels: tuple[Label, ...]) -> dict[str, Any]:
        """Its JSON schema, with the labels in the order given."""
        if self.kind == "text":
            return {"type": "string"}
        if self.kind == "boolean":
            return {"type": "boolean"}
        if self.kind == "integer":
            return {"type": "integer", "enum": list(self.labels)}  # the order of numbers is their meaning: never shuffled
        return {"enum": list(labels)} if self.kind == "label" else {"type": "array", "items": {"enum": list(labels)}}


def fields_of(protocol: str, answer: type[BaseModel], sets: Mapping[str, tuple[str, ...]]) -> dict[str, Field]:
    """The fields of a pydantic model, with the labels of ``sets`` where the model has none.

    Raises:
        ConfigError: a field is neither closed nor text, or has a default, which would be an answer that nobody gave; or there
            is no field, or a set for a field that is not marked :data:`OneOf`.
    """
    if not (isinstance(answer, type) and issubclass(answer, BaseModel) and answer.model_fields):
        raise ConfigError(f"protocol {protocol}: its answer must be a pydantic model with at least one field")
    found = {name: _field(protocol, name, info, sets.get(name)) for name, info in answer.model_fields.items()}
    for name in sets:
        if name not in found:
            raise ConfigError(f"protocol {protocol}: there are labels for {name!r}, which is not a field of its answer")
    return found


def _field(protocol: str, name: str, info: Any, labels: tuple[str, ...] | None) -> Field:
    kind = info.annotation
    if get_origin(kind) in (Union, types.UnionType):  # an optional free text
        kind = next((part for part in get_args(kind) if part is not type(None)), kind)
    if info.is_required() and (CLOSED in info.metadata or kind == SomeOf):
        if labels is None:
            raise ConfigError(f"protocol {protocol}: field {name!r} has no labels; write them into a .yaml beside its prompt")
        return Field(name, "label" if kind is str else "labels", labels)
    if labels is not None:
        raise ConfigError(
            f"protocol {protocol}: field {name!r} has labels in data; declare it as OneOf or SomeOf, without default"
        )
    if kind is str:
        return Field(name, "text", (), info.is_required())
    if info.is_required() and (found := _closed(name, kind, info.metadata)):
        return found
    raise ConfigError(
        f"protocol {protocol}: field {name!r} must be str (free text), or closed and without a default: a Literal of strings "
        "or of integers, bool, an int with ge and le, a list of Literal strings, OneOf or SomeOf"
    )


def _closed(name: str, kind: Any, metadata: Iterable[Any]) -> Field | None:
    if get_origin(kind) is list and get_args(kind):
        return Field(name, "labels", get_args(get_args(kind)[0])) if _literals(get_args(kind)[0]) is str else None
    if _literals(kind) is str:
        return Field(name, "label", get_args(kind))
    if _literals(kind) is int:
        return Field(name, "integer", get_args(kind))
    if kind is bool:
        return Field(name, "boolean", (True, False))
    low, high = _bounds(metadata) if kind is int else (0, -1)
    return Field(name, "integer", tuple(range(low, high + 1))) if 0 <= high - low < WIDEST else None


def _literals(kind: Any) -> type | None:
    """The one type of a Literal's values."""
    found = {type(value) for value in get_args(kind)} if get_origin(kind) is Literal else set()
    return found.pop() if len(found) == 1 else None


def _bounds(metadata: Iterable[Any]) -> tuple[int, int]:
    low, high = 0, -1
    for mark in metadata:
        if isinstance(mark, annotated_types.Ge):
            low = int(mark.ge)  # type: ignore[call-overload]
        if isinstance(mark, annotated_types.Le):
            high = int(mark.le)  # type: ignore[call-overload]
    return low, high
