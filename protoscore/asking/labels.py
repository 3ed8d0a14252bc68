"""How a label may be spelled: exactly, in another case, or by a documented alias. Nothing is matched by likeness."""

from __future__ import annotations

import re
from collections.abc import Mapping

from protoscore.errors import ConfigError

INVISIBLE = re.compile("[\ufeff\u200b-\u200d\u2060\u00ad]")  # byte order mark, zero-width characters, soft hyphen
_GAPS = re.compile(r"[\s_\-]+")


def fold(text: str) -> str:
    """What two spellings that differ in case, spaces, underscores or hyphens have in common."""
    return _GAPS.sub(" ", INVISIBLE.sub("", text)).strip().casefold()


class Spelling:
    """The labels of one field, findable by folded spelling and alias.

    Raises:
        ConfigError: a spelling could mean two labels, or an alias leads to no label.
    """

    def __init__(self, where: str, labels: tuple, aliases: Mapping[str, object]):
        self.labels = {label for label in labels if isinstance(label, str)}
        self._folded: dict[str, object] = {}
        self._aliases: dict[str, object] = {}
        for label in self.labels:
            if self._folded.setdefault(fold(label), label) != label:
                raise ConfigError(f"{where}: two labels are spelled {fold(label)!r} but for case and spaces")
        for spelling, meant in aliases.items():
            if meant not in labels:
                raise ConfigError(f"{where}: the alias {spelling!r} leads to {meant!r}, which is no label")
            known = self._folded.get(fold(spelling), self._aliases.setdefault(fold(spelling), meant))
            if known != meant:
                raise ConfigError(f"{where}: the spelling {spelling!r} could mean {known!r} and {meant!r}")

    def find(self, text: str) -> tuple[object, str] | None:
        """The label that ``text`` stands for and the repair that this takes ("" for none); None when it is unknown."""
        if text in self.labels:
            return text, ""
        if fold(text) in self._folded:
            return self._folded[fold(text)], "label_case"
        if fold(text) in self._aliases:
            return self._aliases[fold(text)], "label_alias"
        return None
