"""Components by name: the file name is the name. No registry to edit, nothing imported before it is asked for.

A component module defines ``create``, with a keyword parameter per option and ``source`` where it takes one; or
``create(source=None, **options) -> Class``, which hands the options to that class. What it gives has a ``name``, a ``revision``
and ``parameters``, and whatever else its kind's ``__init__`` asks for. ``name:source`` is what a user types, as in
``protoscore:runs/mine``. Another installed package adds a component with an entry point of the group ``protoscore.<kind>`` that
names such a module; a scorer's module may define just ``score(images, texts)``, and a scorer may also be the path of such a
file, ``./my_metric.py``.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, cast, get_args, get_type_hints

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

from protoscore.errors import ConfigError, ProtoscoreError, UnknownName, suggestion

KINDS = ("benchmarks", "embedders", "generators", "image_filters", "scorers", "vlms")


def names(kind: str) -> list[str]:
    """The components of a kind that come with the package, e.g. ``names("scorers")``.

    Raises:
        UnknownName: there is no such kind.
    """
    try:
        package = import_module(f"protoscore.{kind}")
    except ModuleNotFoundError as error:
        raise UnknownName("kind of component", kind, KINDS) from error
    return sorted(m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_"))


def added(kind: str) -> dict[str, EntryPoint]:
    """The components of a kind that other installed packages bring."""
    return {entry.name: entry for entry in entry_points(group=f"protoscore.{kind}")}


def module(kind: str, name: str) -> ModuleType:
    """The module of a component; ours goes before another package's of the same name.

    Raises:
        UnknownName: no component of that kind has the name; the closest one is suggested.
    """
    if name in names(kind):
        return import_module(f"protoscore.{kind}.{name}")
    others = added(kind)
    if name not in others:
        raise UnknownName(_one(kind), name, [*names(kind), *others])
    try:
        return import_module(others[name].module)
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{name!r} is installed but cannot be imported ({error}); ask its authors") from error


def load(kind: str, spec: str, **options: Any) -> Any:
    """Make the component that ``spec`` (``name``, ``name:source`` or, for a scorer, ``file.py``) stands for.

    Args:
        options: of the component. Text, as it comes from a command line, is read as what the option is.

    Raises:
        UnknownName: no component of that kind, or no kind, has the name; the closest one is suggested.
        MissingExtra: its libraries are not installed; the message is the pip line.
        ConfigError: it has no such option or takes no source, an option is of the wrong type, it fails while it is made, or a
            file or an installed module is not a component.
    """
    name, create = _find(kind, spec)
    known = _parameters(create)
    _, _, source = spec.partition(":")
    if source and name != spec:
        if "source" not in known.types:
            raise ConfigError(f"{name} takes no source; leave ':{source}' out")
        options["source"] = source
    chosen = {option: _value(name, option, value, known) for option, value in options.items()}
    try:
        return create(**chosen)
    except ProtoscoreError:
        raise
    except (Exception, SystemExit) as error:  # a component may be anybody's code
        reason = (str(error).strip().splitlines() or [""])[0]
        raise ConfigError(f"{_one(kind)} {name!r} could not be made ({type(error).__name__}: {reason})") from error


class KnownOptions(NamedTuple):
    """What a component can be told: each option's type (Any where it is not stated), and whether it hands on what else it is
    given, as a metric does that asks a model."""

    types: dict[str, Any]
    hands_on: bool


def options_of(kind: str, spec: str) -> KnownOptions:
    """The options of a component, beside its source."""
    _, create = _find(kind, spec)
    types, hands_on = _parameters(create)
    return KnownOptions({name: hint for name, hint in types.items() if name != "source"}, hands_on)


def _find(kind: str, spec: str) -> tuple[str, Callable[..., Any]]:
    """The name of a component, and what makes it."""
    custom = _custom(kind)
    if custom and spec.endswith(".py"):
        return spec, lambda: custom.load_file(Path(spec))
    name, _, _ = spec.partition(":")
    found = module(kind, name)
    if custom and not hasattr(found, "create"):
        return name, lambda: custom.adopt(found, name)
    if not callable(getattr(found, "create", None)):
        raise ConfigError(f"{_one(kind)} {name!r} defines no function create; see CONTRIBUTING.md")
    return name, found.create


def _custom(kind: str) -> ModuleType | None:
    """What makes components of a user's own files and plain modules, where a kind takes those: its module ``_custom``."""
    package = import_module(f"protoscore.{kind}") if names(kind) else None
    if package is None or find_spec(f"{package.__name__}._custom") is None:
        return None
    return import_module(f"{package.__name__}._custom")


def _parameters(create: Callable[..., Any]) -> KnownOptions:
    """Of ``create``, or where it has none of its own, of the classes that it hands them to."""
    types: dict[str, Any] = {}
    hands_on = False
    for call in _makers(create):
        parameters = inspect.signature(call).parameters.values()
        hands_on |= any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
        hints = _hints(call)
        types |= {p.name: hints.get(p.name, Any) for p in parameters if p.kind is not p.VAR_KEYWORD}
    return KnownOptions(types, hands_on)


def _makers(create: Callable[..., Any]) -> list[Callable[..., Any]]:
    parameters = inspect.signature(create).parameters
    handed = any(p.kind is p.VAR_KEYWORD for p in parameters.values()) and parameters.keys() <= {"source", "options"}
    given = _hints(create).get("return") if handed else None
    return [kind for kind in (get_args(given) or (given,)) if isinstance(kind, type)] or [create]


def _hints(call: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(cast(Any, call).__init__ if isinstance(call, type) else call)
    except (NameError, TypeError, AttributeError):  # names that exist for type checkers only
        return {}


def _value(name: str, option: str, value: Any, known: KnownOptions) -> Any:
    """An option's value as the type that it is declared with."""
    if option not in known.types:
        if known.hands_on:
            return value
        others = known.types.keys() - {"source"}
        raise ConfigError(f"{name} has no option {option!r}; {suggestion(option, others) if others else 'it takes none'}")
    try:
        kind = TypeAdapter(known.types[option], config=ConfigDict(arbitrary_types_allowed=True, coerce_numbers_to_str=True))
        return kind.validate_python(value)
    except PydanticUserError:  # a type that it cannot check
        return value
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        raise ConfigError(f"{name}: option {option}={value!r}: {problem[0].lower()}{problem[1:]}") from error


def _one(kind: str) -> str:
    return kind.rpartition(".")[2].removesuffix("s").replace("_", " ")
