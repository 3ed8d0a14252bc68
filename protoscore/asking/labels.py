"""How a label may be spelled: exactly, in another case, or by a documented alias. Nothing is matched by likeness."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from protoscore.errors import ConfigError

# Byte order mark, zero-width characters, soft hyphen, and the marks of writing direction.
INVISIBLE = re.compile("[\ufeff\u200b-\u200f\u2060\u00ad\u061c\u202a-\u202e\u2066-\u2069]")
_GAPS = re.compile("[\\s_\\-\u2010-\u2015\u2212\u2043\ufe58\ufe63\uff0d]+")  # spaces, and every dash that stands for a hyphen
_SLASH = re.compile(r" ?/ ?")
_APOSTROPHE = re.compile("[\u2018\u2019\u02bc\uff07]")


def fold(text: str) -> str:
    """What two spellings that differ in case, spaces, underscores, hyphens, apostrophes or invisible marks have in common."""
    return _known(text) if len(text) < 100 else _folded(text)


def _folded(text: str) -> str:
    text = _APOSTROPHE.sub("'", text)
    return _SLASH.sub("/", _GAPS.sub(" ", INVISIBLE.sub("", text))).strip().casefold()


_known = lru_cache(4096)(_folded)  # the same few keys and labels stand in every reply


class Spelling:
    """The labels of one field, findable by folded spelling and alias. The alias None is JSON's null.

    Raises:
        ConfigError: a spelling could mean two labels, or an alias leads to no label.
    """

    def __init__(self, where: str, labels: tuple, aliases: Mapping[str | None, object]):
        self.labels = {label for label in labels if isinstance(label, str)}
        self.null = aliases.get(None)
        self._folded: dict[str, object] = {}
        self._aliases: dict[str, object] = {}
        for label in self.labels:
            if self._folded.setdefault(fold(label), label) != label:
                raise ConfigError(f"{where}: two labels are spelled {fold(label)!r} but for case and spaces")
        for spelling, meant in aliases.items():
            if meant not in labels:
                raise ConfigError(f"{where}: the alias {spelling!r} leads to {meant!r}, which is not one of its labels")
            if spelling is None:
                continue
            known = self._folded.get(fold(spelling), self._aliases.setdefault(fold(spelling), meant))
            if known != meant:
                raise ConfigError(f"{where}: the spelling {spelling!r} could mean {known!r} and {meant!r}")

    def find(self, text: str | None) -> tuple[object, str] | None:
        """The label that ``text`` stands for and the repair that this takes ("" for none); None when it is unknown."""
        if text is None:
            return None if self.null is None else (self.null, "label_alias")
        if text in self.labels:
            return text, ""
        if fold(text) in self._folded:
            return self._folded[fold(text)], "label_case"
        if fold(text) in self._aliases:
            return self._aliases[fold(text)], "label_alias"
        return None
