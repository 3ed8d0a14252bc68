"""Components by name: the file name is the name. No registry to edit, nothing imported before it is asked for.

A component module defines ``create(**options)``; what it offers is in its kind's ``__init__``. ``kind:argument`` hands the
argument to ``create`` as its ``source`` (a folder, a Hub id), as in ``protoscore:runs/mine``.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any

from protoscore.errors import UnknownName


def names(kind: str) -> list[str]:
    """The components of a kind, e.g. ``names("scorers")``."""
    package = import_module(f"protoscore.{kind}")
    return sorted(m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_"))


def load(kind: str, spec: str, **options: Any) -> Any:
    """Make the component that ``spec`` (``name`` or ``name:source``) stands for.

    Raises:
        UnknownName: no component of that kind has the name; the closest one is suggested.
        MissingExtra: its libraries are not installed; the message is the pip line.
    """
    name, _, source = spec.partition(":")
    if name not in names(kind):
        raise UnknownName(kind.rstrip("s").replace("_", " "), name, names(kind))
    module = import_module(f"protoscore.{kind}.{name}")
    return module.create(**({"source": source} if source else {}), **options)
