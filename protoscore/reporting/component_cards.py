"""What there is of each kind, for people: a list with a sentence each, and the whole of one."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any, Literal, get_args, get_origin

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from protoscore.asking.protocol import load_protocol, protocol_names
from protoscore.catalog import added, module, names, options_of


def print_components(kind: str, name: str | None = None, console: Console | None = None) -> None:
    """Every component of a kind, or one with its description and its options; nothing is loaded.

    Raises:
        UnknownName: there is none of that name.
    """
    console = console or Console()
    if name:
        _print(console, name, inspect.getdoc(module(kind, name)) or "", _options(kind, name))
        return
    for each in sorted({*names(kind), *added(kind)}):
        if hasattr(found := module(kind, each), "create"):  # a benchmark's folder may hold just protocols so far
            _print(console, each, _first_sentences(found), _options(kind, each))


def print_protocols(name: str | None = None, console: Console | None = None) -> None:
    """Every protocol with what it asks for, or one with its labels, its wordings and its prompt.

    Raises:
        UnknownName: there is none of that name.
    """
    console = console or Console()
    for each in [name] if name else protocol_names():
        protocol = load_protocol(each)
        fields = {field: "text" if not f.closed else _labels(f.labels) for field, f in protocol.fields.items()}
        taken = {field: f"the item's own, from its field {column!r}" for field, column in protocol.from_item.items()}
        lines = [f"{field}: {labels}" for field, labels in (fields | taken).items()]
        lines += [f"other wordings: {', '.join(protocol.variants)}"] if protocol.variants else []
        _print(console, protocol.name, protocol.prompt if name else "", lines)


def _print(console: Console, name: str, text: str, lines: list[str]) -> None:
    console.print(Text(name, style="bold"))
    for part, style in ((text.strip(), ""), ("\n".join(lines), "dim")):
        if part:
            console.print(Padding(Text(part, style=style), (0, 0, 0, 2), expand=False))
    console.print()


def _first_sentences(found: ModuleType) -> str:
    return (inspect.getdoc(found) or "").split("\n\n")[0].replace("\n", " ").replace("``", "")


def _options(kind: str, name: str) -> list[str]:
    known = options_of(kind, name).types
    return ["options, by -o: " + " ".join(f"{option}={_type(hint)}" for option, hint in known.items())] if known else []


def _type(hint: Any) -> str:
    """What an option takes, as a command line shows it."""
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    if get_origin(hint) is Literal:
        return "|".join(map(str, kinds))
    if kinds:  # "or nothing" goes without saying
        return "|".join(dict.fromkeys(map(_type, kinds)))
    return {int: "N", float: "NUMBER", bool: "true|false"}.get(hint, "TEXT")


def _labels(labels: tuple[Any, ...]) -> str:
    grades = all(isinstance(label, int) for label in labels) and len(labels) > 2
    return f"{labels[0]} to {labels[-1]}" if grades else " | ".join(map(str, labels))
