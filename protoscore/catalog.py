"""Components by name: the file name is the name. No registry to edit, nothing imported before it is asked for.

A component module defines ``create(**options)``; what it offers is in its kind's ``__init__``. ``kind:argument`` hands the
argument to ``create`` as its ``source`` (a folder, a Hub id), as in ``protoscore:runs/mine``. Another installed package adds
one with an entry point of the group ``protoscore.<kind>`` that names such a module; a scorer's module may define just
``score(images, texts)``. A scorer may also be the path of such a file, ``./my_metric.py``.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from protoscore.errors import ConfigError, UnknownName


def names(kind: str) -> list[str]:
    """The components of a kind that come with the package, e.g. ``names("scorers")``."""
    package = import_module(f"protoscore.{kind}")
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
        raise UnknownName(kind.rstrip("s").replace("_", " "), name, [*names(kind), *others])
    try:
        return import_module(others[name].module)
    except Exception as error:
        raise ConfigError(f"{name!r} is installed but cannot be imported ({error}); ask its authors") from error


def load(kind: str, spec: str, **options: Any) -> Any:
    """Make the component that ``spec`` (``name``, ``name:source`` or, for a scorer, ``file.py``) stands for.

    Raises:
        UnknownName: no component of that kind has the name; the closest one is suggested.
        MissingExtra: its libraries are not installed; the message is the pip line.
        ConfigError: a file or an installed module is no component.
    """
    if kind == "scorers" and spec.endswith(".py"):
        from protoscore.scorers._custom import load_file

        return load_file(Path(spec))
    name, _, source = spec.partition(":")
    found = module(kind, name)
    if kind == "scorers" and not hasattr(found, "create"):
        from protoscore.scorers._custom import OwnMetric

        return OwnMetric(found, name)
    return found.create(**({"source": source} if source else {}), **options)
