"""A protocol: prompts, a closed answer schema, and what abstention means. Data only; nothing here asks anybody anything.

A protocol is two or three files side by side in ``benchmarks/<bench>/protocols/``: ``<name>.py`` defines ``create() ->
Protocol``, ``<name>.md`` holds the prompt as a Jinja2 template, and ``<name>.yaml`` its sets of labels, where they are data
(:mod:`protoscore.asking.label_sets`). ``<name>.<variant>.md`` are other wordings of the prompt.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import pkgutil
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module, util
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from pydantic import BaseModel

from protoscore import catalog
from protoscore.asking.fields import Field, Label, fields_of
from protoscore.asking.label_sets import Aliases, LabelSet, labels_of_item, read_label_set
from protoscore.asking.labels import Spelling
from protoscore.asking.prompts import render
from protoscore.errors import ConfigError, ProtoscoreError, UnknownName


class Alternatives(NamedTuple):
    """Two things that are compared, each question asked in both orders. An answer that changes with the order is a tie.

    The first two labels of ``field`` say which one is preferred: the one shown first, or the one shown second. A verdict holds
    which of the *item's* two that is. A third label may abstain.
    """

    field: str
    images: bool = True  # the second half of the pictures changes places with the first
    swaps: tuple[str | tuple[str, str], ...] = ()  # fields with a list of two, or pairs of fields, that change places

    def swapped(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """The item's fields with its alternatives in the other order."""
        other = dict(item)
        for name in self.swaps:
            if isinstance(name, str):
                other[name] = list(item[name])[::-1]
            else:
                other |= {name[0]: item[name[1]], name[1]: item[name[0]]}
        return other


@dataclass(frozen=True)
class Protocol:
    """What is asked and how its answer is read.

    Attributes:
        name: "<bench>/<file name>", e.g. "fairjudge/attributes", and ":<set>" for labels other than the first set.
        prompt: Jinja2 text. It may use ``item.<field>``, ``labels.<field>`` (the labels in the order of this question),
            ``schema`` (compact JSON schema), ``shape`` (the answer's keys with their labels) and the filter ``quoted`` (text
            as a JSON string: use it for every text that is data).
        answer: pydantic model whose fields are closed (``Literal``, ``bool``, a bounded ``int``, a list of ``Literal``,
            ``OneOf`` or ``SomeOf``) or plain ``str``, which is free text. Its order is the order of the schema.
        abstains: field -> labels by which a judge withholds its decision, e.g. ``{"gender": ("unspecified",)}``.
        aliases: field -> {other spelling: label}; the spelling None is JSON's null. What is neither label nor alias leaves
            its field unmapped.
        variants: other wordings of ``prompt``, by name.
        sets: field -> labels, of fields that the model declares as ``OneOf`` or ``SomeOf``.
        from_item: field -> the item's field that holds its labels. Such a protocol is closed by :meth:`of`.
        alternatives: what is shown in both orders, where two things are compared.

    Raises:
        ConfigError: a field is neither closed nor text, or a spelling could mean two labels.
    """

    name: str
    prompt: str
    answer: type[BaseModel]
    abstains: Mapping[str, tuple[Label, ...]] = field(default_factory=dict)
    aliases: Mapping[str, Aliases] = field(default_factory=dict)
    variants: Mapping[str, str] = field(default_factory=dict)
    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    from_item: Mapping[str, str] = field(default_factory=dict)
    alternatives: Alternatives | None = None

    def __post_init__(self) -> None:
        for what, names in (("abstains", self.abstains), ("aliases", self.aliases)):
            for name in names:
                if name not in self.fields or not self.fields[name].closed:
                    raise ConfigError(f"protocol {self.name}: {what} names {name!r}, which is not a closed field of its answer")
        for name, labels in self.abstains.items():
            unknown = [label for label in labels if label not in self.fields[name].labels and name not in self.from_item]
            if unknown:
                raise ConfigError(
                    f"protocol {self.name}: {name} cannot abstain by {unknown[0]!r}, which is not one of its labels"
                )
        if self.alternatives and len(self.fields[self.alternatives.field].labels) < 2:
            raise ConfigError(f"protocol {self.name}: {self.alternatives.field!r} needs a label for each of two alternatives")
        self.spellings  # noqa: B018 - refuses what is ambiguous

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """The answer's fields in order."""
        return fields_of(self.name, self.answer, {**dict.fromkeys(self.from_item, ()), **self.sets})

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
            if f.closed and name not in self.from_item
        }

    @cached_property
    def version(self) -> str:
        """Name of everything that decides what is asked and how a reply is read."""
        parts = [
            self.prompt, dict(self.variants), self.answer.model_json_schema(),
            {k: list(v) for k, v in self.abstains.items()},
            {k: sorted([str(spelling), label] for spelling, label in v.items()) for k, v in self.aliases.items()},
            {k: list(v) for k, v in self.sets.items()}, dict(self.from_item), self.alternatives,
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    def of(self, item: Mapping[str, Any]) -> Protocol:
        """The protocol with the labels that ``item`` holds; itself where it holds none.

        Raises:
            DatasetError: the item lacks them.
        """
        if not self.from_item:
            return self
        sets, abstains, aliases = dict(self.sets), dict(self.abstains), dict(self.aliases)
        for name, column in self.from_item.items():
            where = f"the field {column!r} of an item, from which {self.name} takes the labels of {name},"
            sets[name], abstains[name], aliases[name] = labels_of_item(
                where, item.get(column), self.abstains.get(name, ()), self.aliases.get(name, {})
            )
        return replace(self, sets=sets, abstains=abstains, aliases=aliases, from_item={})

    def withholds(self, name: str, value: Any) -> bool:
        """Whether a field's value withholds its decision. An empty list of labels withholds one too."""
        abstentions = self.abstains.get(name, ())
        return all(label in abstentions for label in value) if isinstance(value, list) else value in abstentions

    def described(self) -> dict[str, Any]:
        """Its closed fields as plain values, for whoever reads the answers later and has no protocol at hand."""
        return {
            name: {
                "kind": self.fields[name].kind, "labels": list(self.fields[name].labels),
                "abstains": list(self.abstains.get(name, ())),
                "aliases": {spelling: label for spelling, label in self.aliases.get(name, {}).items() if spelling},
            }
            for name in self.decisions
        }  # fmt: skip

    def schema(self, labels: Mapping[str, Iterable[Label]] | None = None) -> dict[str, Any]:
        """JSON schema of an answer, flat and closed, with the labels in the given order."""
        ordered = self.labels(labels)
        properties = {name: f.schema(ordered.get(name, ())) for name, f in self.fields.items()}
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
        schema = json.dumps(self.schema(ordered), ensure_ascii=False)
        return render(self.name, text, item, labels=ordered, schema=schema, shape=self._shape(ordered))

    def _shape(self, labels: Mapping[str, tuple[Label, ...]]) -> str:
        shown = {name: " | ".join(map(_quoted_label, labels[name])) if f.closed else '"..."' for name, f in self.fields.items()}
        lists = {name: f"[{text}, ...]" for name, text in shown.items() if self.fields[name].kind == "labels"}
        return "{" + ", ".join(f'"{name}": {text}' for name, text in (shown | lists).items()) + "}"


def _quoted_label(label: Label) -> str:
    return json.dumps(label, ensure_ascii=False)


def read_protocol(
    module_file: str, answer: type[BaseModel], abstains: Mapping[str, tuple[Label, ...]] | None = None,
    aliases: Mapping[str, Aliases] | None = None, labels: str = "", alternatives: Alternatives | None = None,
) -> Protocol:  # fmt: skip
    """The protocol whose prompts lie beside the module that defines it (call it with ``__file__``).

    Args:
        labels: name of a set in the ``.yaml`` beside it; the first one where it is empty.
    """
    path = Path(module_file)
    name = f"{path.parent.parent.name}/{path.stem}" if path.parent.name == "protocols" else path.stem
    prompt, data = path.with_suffix(".md"), path.with_suffix(".yaml")
    if not prompt.is_file():
        raise ConfigError(f"{path} has no prompt: write {prompt.name} beside it")
    if labels and not data.is_file():
        raise ConfigError(f"{name} has no sets of labels to choose from: {data.name} is not beside it")
    found = read_label_set(data, labels) if data.is_file() else LabelSet()
    variants = {p.name[len(path.stem) + 1 : -3]: p.read_text(encoding="utf-8") for p in path.parent.glob(f"{path.stem}.*.md")}
    return Protocol(
        f"{name}:{found.name}" if found.name else name, prompt.read_text(encoding="utf-8"), answer,
        {**found.abstains, **(abstains or {})}, {**found.aliases, **(aliases or {})}, dict(sorted(variants.items())),
        found.labels, found.from_item, alternatives,
    )  # fmt: skip


def protocol_names() -> list[str]:
    """Every protocol of every benchmark, as ``<bench>/<name>``; those of other installed packages too."""
    return sorted(
        f"{bench}/{module.name}"
        for bench, package in _packages().items()
        for module in pkgutil.iter_modules(package.__path__)
        if not module.name.startswith("_")
    )


def _packages() -> dict[str, ModuleType]:
    """Benchmark -> the package of its protocols, where it has one."""
    homes = {name: f"protoscore.benchmarks.{name}" for name in catalog.names("benchmarks")}
    homes |= {name: entry.module for name, entry in catalog.added("benchmarks").items()}
    found = {}
    for bench, home in homes.items():
        with suppress(ModuleNotFoundError):  # a benchmark in one file, or without protocols
            if util.find_spec(f"{home}.protocols"):
                found[bench] = import_module(f"{home}.protocols")
    return found


def load_protocol(spec: str, **options: Any) -> Protocol:
    """A protocol by name, or your own by the path of its ``.py`` file; ``NAME:SET`` asks for another set of labels.

    Args:
        options: of the protocol's ``create``.

    Raises:
        UnknownName: no such protocol; the closest one is suggested.
        ConfigError: the file defines none, or takes no such option.
    """
    name, _, labels = spec.partition(".py:" if ".py:" in spec else ":")
    name += ".py" if ".py:" in spec else ""
    options |= {"labels": labels} if labels else {}
    module = _own_module(Path(name)) if name.endswith(".py") else _module(name)
    create = getattr(module, "create", None)
    if not callable(create):
        raise ConfigError(f"{name} defines no create() that returns a Protocol")
    taken = inspect.signature(create).parameters
    for option in options:
        if option not in taken:
            raise ConfigError(f"protocol {name} takes no option {option!r}; it takes: {', '.join(taken) or 'none'}")
    try:
        protocol = create(**options)
        protocol.fields  # noqa: B018 - a model without fields says so
    except ProtoscoreError:
        raise
    except (Exception, SystemExit) as error:  # somebody's own code
        raise ConfigError(
            f"{name} cannot be used ({type(error).__name__}: {error}); its create() must return a Protocol"
        ) from error
    return protocol


def _module(name: str) -> ModuleType:
    if name not in protocol_names():
        raise UnknownName("protocol", name, protocol_names())
    bench, _, stem = name.partition("/")
    return import_module(f"{_packages()[bench].__name__}.{stem}")


def _own_module(path: Path) -> ModuleType:
    spec = util.spec_from_file_location(f"protoscore_protocol_{path.stem}", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise ConfigError(f"{path} is not a file; give the path of a protocol's .py file, or one of: {protocol_names()}")
    module = sys.modules[spec.name] = util.module_from_spec(spec)  # where pydantic looks up annotations that are text
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # somebody's own code
        raise ConfigError(
            f"{path} cannot be read as Python ({type(error).__name__}: {error}); mend it and try again"
        ) from error
    return module
