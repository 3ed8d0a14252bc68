"""What is typed as ``NAME=VALUE`` on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from protoscore.errors import ConfigError


def pairs(texts: Iterable[str], what: str) -> dict[str, str]:
    """``["a=b"]`` as ``{"a": "b"}``.

    Raises:
        ConfigError: one has no "=", or a name is given twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or name in found:
            raise ConfigError(f"{what} {text!r}: write NAME=VALUE, each name once")
        found[name] = value
    return found


def typed(texts: Iterable[str], what: str) -> dict[str, Any]:
    """As :func:`pairs`, with numbers and booleans as such. A value that is a list or a mapping stays text."""
    read = {}
    for name, value in pairs(texts, what).items():
        try:
            parsed = yaml.safe_load(value)
        except yaml.YAMLError:
            parsed = value
        read[name] = parsed if isinstance(parsed, (int, float, bool)) else value
    return read


def listed(texts: Iterable[str], what: str) -> dict[str, tuple[str, ...]]:
    """``["a=b,c"]`` as ``{"a": ("b", "c")}``."""
    return {name: tuple(part.strip() for part in value.split(",")) for name, value in pairs(texts, what).items()}
