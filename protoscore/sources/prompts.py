"""A list of prompts as pictures that are wanted: any text file or table that a list of pictures could come with."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from protoscore.errors import DatasetError
from protoscore.sources.pairing import TEXT, read_lines


class Named(NamedTuple):
    """A prompt under the name that its pictures go by."""

    id: str
    text: str


def read_prompts(path: Path) -> list[Named]:
    """The prompts of a ``.txt`` (one per line) or of a table with a column ``prompt`` or ``text`` and perhaps ``id``.

    Raises:
        DatasetError: the file is not such a list, a prompt is empty, or an id is there twice.
    """
    lines = read_lines(path, "the list of prompts", TEXT, paired=False)
    found = [Named(line.id or f"{number:06d}", line.text) for number, line in enumerate(lines)]
    if empty := [one.id for one in found if not one.text]:
        raise DatasetError(f"{path}: the prompt {empty[0]!r} is empty; take the line away or write its text")
    if twice := [name for name, count in Counter(one.id for one in found).items() if count > 1]:
        raise DatasetError(f"{path}: two prompts have the id {twice[0]!r}; each needs one of its own")
    return found
