"""A protocol: prompts, a closed answer schema, and what abstention means. Data only; nothing here asks anybody anything.

A protocol is two files side by side in ``benchmarks/<bench>/protocols/``: ``<name>.py`` defines ``create() -> Protocol``, and
``<name>.md`` holds the prompt as a Jinja2 template. ``<name>.<variant>.md`` are other wordings of it.
"""

from __future__ import annotations

import hashlib
import json
import pkgutil
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module, util
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import annotated_types
from jinja2 import StrictUndefined, Template, TemplateError
from jinja2.sandbox import SandboxedEnvironment
from pydantic import BaseModel

from protoscore.asking.labels import Spelling
from protoscore.errors import ConfigError, UnknownName

Label = str | int | bool
WIDEST = 101  # a bounded integer with more values than this is no rubric


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


@dataclass(frozen=True)
class Protocol:
    """What is asked and how its answer is read.

    Attributes:
        name: "<bench>/<file name>", e.g. "fairjudge/attributes".
        prompt: Jinja2 text. It may use ``item.<field>``, ``labels.<field>`` (the labels in the order of this question),
            ``schema`` (compact JSON schema), ``shape`` (the answer's keys with their labels) and the filter ``quoted`` (text
            as a JSON string: use it for every text that is data).
        answer: pydantic model whose fields are closed (``Literal``, ``bool``, a bounded ``int``, a list of ``Literal``) or
            plain ``str``, which is free text.
        abstains: field -> labels by which a judge withholds its decision, e.g. ``{"gender": ("unspecified",)}``.
        aliases: field -> {other spelling: label}. A spelling that is none of labels and aliases makes an answer invalid.
        variants: other wordings of ``prompt``, by name.

    Raises:
        ConfigError: a field is neither closed nor text, or a spelling could mean two labels.
    """

    name: str
    prompt: str
    answer: type[BaseModel]
    abstains: Mapping[str, tuple[Label, ...]] = field(default_factory=dict)
    aliases: Mapping[str, Mapping[str, Label]] = field(default_factory=dict)
    variants: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, names in (("abstains", self.abstains), ("aliases", self.aliases)):
            for name in names:
                if name not in self.fields or not self.fields[name].closed:
                    raise ConfigError(f"protocol {self.name}: {what} names {name!r}, which is no closed field of its answer")
        for name, labels in self.abstains.items():
            unknown = [label for label in labels if label not in self.fields[name].labels]
            if unknown:
                raise ConfigError(f"protocol {self.name}: {name} cannot abstain by {unknown[0]!r}, it is none of its labels")
        self.spellings  # noqa: B018 - refuses what is ambiguous

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """The answer's fields in order."""
        return {name: _field(self.name, name, info) for name, info in self.answer.model_fields.items()}

    @property
    def decisions(self) -> tuple[str, ...]:
        """The closed fields: all that a number may be made of."""
        return tuple(name for name, f in self.fields.items() if f.closed)

    @cached_property
    def spellings(self) -> Mapping[str, Spelling]:
        """How the labels of each closed field may be spelled."""
        return {
            name: Spelling(f"protocol {self.name}, field {name}", f.labels, self.aliases.get(name, {}))
            for name, f in self.fields.items()
            if f.closed
        }

    @cached_property
    def version(self) -> str:
        """Name of everything that decides what is asked and how a reply is read: prompts, schema, abstention, aliases."""
        parts = [
            self.prompt, dict(self.variants), self.answer.model_json_schema(),
            {k: list(v) for k, v in self.abstains.items()}, {k: dict(v) for k, v in self.aliases.items()},
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    def abstained(self, answer: Mapping[str, Any]) -> tuple[str, ...]:
        """The fields of an answer that withhold a decision. An empty list of labels withholds one too."""
        return tuple(
            name for name in self.decisions
            if (answer.get(name) in self.abstains.get(name, ()) if not isinstance(answer.get(name), list)
                else all(label in self.abstains.get(name, ()) for label in answer[name]))
        )  # fmt: skip

    def schema(self, labels: Mapping[str, Iterable[Label]] | None = None) -> dict[str, Any]:
        """JSON schema of an answer, flat and closed, with the labels in the given order."""
        ordered = self.labels(labels)
        properties = {name: _property(f, ordered.get(name, ())) for name, f in self.fields.items()}
        required = [name for name, f in self.fields.items() if f.required]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def labels(self, order: Mapping[str, Iterable[Label]] | None = None) -> dict[str, tuple[Label, ...]]:
        """The labels of every closed field: as given, or in the order of the schema."""
        return {name: tuple((order or {}).get(name, f.labels)) for name, f in self.fields.items() if f.closed}

    def render(self, item: Mapping[str, Any], variant: str = "", labels: Mapping[str, Iterable[Label]] | None = None) -> str:
        """The prompt for one item.

        Raises:
            ConfigError: the prompt needs a field that the item lacks.
            UnknownName: there is no such variant.
        """
        if variant and variant not in self.variants:
            raise UnknownName(f"variant of {self.name}", variant, self.variants)
        ordered = self.labels(labels)
        text = self.variants[variant] if variant else self.prompt
        try:
            return _template(text).render(
                item=dict(item), labels=ordered, schema=json.dumps(self.schema(ordered), ensure_ascii=False),
                shape=self._shape(ordered),
            ).strip()  # fmt: skip
        except TemplateError as error:
            raise ConfigError(
                f"prompt of {self.name}: {error}; the items have: {', '.join(sorted(item)) or 'no fields'}; "
                "name a column with --field FIELD=COLUMN"
            ) from error

    def _shape(self, labels: Mapping[str, tuple[Label, ...]]) -> str:
        shown = {name: " | ".join(map(_quoted_label, labels[name])) if f.closed else '"..."' for name, f in self.fields.items()}
        lists = {name: f"[{text}, ...]" for name, text in shown.items() if self.fields[name].kind == "labels"}
        return "{" + ", ".join(f'"{name}": {text}' for name, text in (shown | lists).items()) + "}"


def _quoted(value: object) -> str:
    """A prompt's filter: text as a JSON string, so that quotes and line ends inside it cannot look like the prompt's own."""
    return json.dumps(str(value), ensure_ascii=False)


def _quoted_label(label: Label) -> str:
    return json.dumps(label, ensure_ascii=False)


_JINJA = SandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
_JINJA.filters["quoted"] = _quoted


@cache
def _template(text: str) -> Template:
    return _JINJA.from_string(text)


def read_protocol(
    module_file: str, answer: type[BaseModel], abstains: Mapping[str, tuple[Label, ...]] | None = None,
    aliases: Mapping[str, Mapping[str, Label]] | None = None,
) -> Protocol:  # fmt: skip
    """The protocol whose prompts lie beside the module that defines it (call it with ``__file__``)."""
    path = Path(module_file)
    name = f"{path.parent.parent.name}/{path.stem}" if path.parent.name == "protocols" else path.stem
    prompt = path.with_suffix(".md")
    if not prompt.is_file():
        raise ConfigError(f"{path} has no prompt: write {prompt.name} beside it")
    variants = {p.name[len(path.stem) + 1 : -3]: p.read_text(encoding="utf-8") for p in path.parent.glob(f"{path.stem}.*.md")}
    return Protocol(
        name, prompt.read_text(encoding="utf-8"), answer, abstains or {}, aliases or {}, dict(sorted(variants.items()))
    )


def protocol_names() -> list[str]:
    """Every protocol of every benchmark, as ``<bench>/<name>``."""
    import protoscore.benchmarks

    root = Path(protoscore.benchmarks.__path__[0])
    return sorted(
        f"{folder.parent.name}/{module.name}"
        for folder in root.glob("*/protocols")
        for module in pkgutil.iter_modules([str(folder)])
        if not module.name.startswith("_")
    )


def load_protocol(name: str) -> Protocol:
    """A protocol by name, or your own by the path of its ``.py`` file.

    Raises:
        UnknownName: no such protocol; the closest one is suggested.
        ConfigError: the file defines none.
    """
    if name.endswith(".py"):
        path = Path(name)
        spec = util.spec_from_file_location(f"protoscore_protocol_{path.stem}", path)
        if not path.is_file() or spec is None or spec.loader is None:
            raise ConfigError(f"{name} is no file; give the path of a protocol's .py file, or one of: {protocol_names()}")
        module = util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        if name not in protocol_names():
            raise UnknownName("protocol", name, protocol_names())
        bench, _, stem = name.partition("/")
        module = import_module(f"protoscore.benchmarks.{bench}.protocols.{stem}")
    if not hasattr(module, "create"):
        raise ConfigError(f"{name} defines no create() that returns a Protocol")
    return module.create()


def _field(protocol: str, name: str, info: Any) -> Field:
    """The kind and labels of a pydantic field. A closed field has no default: a default would be an answer that nobody gave."""
    kind = info.annotation
    if get_origin(kind) in (Union, types.UnionType):  # an optional free text
        kind = next((part for part in get_args(kind) if part is not type(None)), kind)
    if kind is str:
        return Field(name, "text", (), info.is_required())
    if info.is_required():
        if get_origin(kind) is list and get_args(kind):
            if _literals(get_args(kind)[0]) is str:
                return Field(name, "labels", get_args(get_args(kind)[0]))
        elif _literals(kind) is str:
            return Field(name, "label", get_args(kind))
        elif _literals(kind) is int:
            return Field(name, "integer", get_args(kind))
        elif kind is bool:
            return Field(name, "boolean", (True, False))
        elif kind is int:
            low, high = _bounds(info.metadata)
            if 0 <= high - low < WIDEST:
                return Field(name, "integer", tuple(range(low, high + 1)))
    raise ConfigError(
        f"protocol {protocol}: field {name!r} must be str (free text), or closed and without a default: a Literal of strings "
        "or of integers, bool, an int with ge and le, or a list of Literal strings"
    )


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


def _property(f: Field, labels: tuple[Label, ...]) -> dict[str, Any]:
    if f.kind == "text":
        return {"type": "string"}
    if f.kind == "boolean":
        return {"type": "boolean"}
    if f.kind == "integer":
        return {"type": "integer", "enum": list(f.labels)}  # the order of numbers is their meaning: never shuffled
    return {"enum": list(labels)} if f.kind == "label" else {"type": "array", "items": {"enum": list(labels)}}
