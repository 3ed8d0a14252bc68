"""Which files of a folder are pictures, by one set of rules: suffixes of what is decoded here, links inside the folder only."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from protoscore.errors import DatasetError
from protoscore.sources.decoding import FORMATS


@cache
def suffixes() -> frozenset[str]:
    """The endings of names of pictures that can be decoded here, in lower case."""
    from PIL import Image

    return frozenset(ending for ending, form in Image.registered_extensions().items() if form in FORMATS)


def natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key that puts ``2.png`` before ``10.png``."""
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]


def pictures_below(root: Path) -> dict[str, Path]:
    """Pictures below ``root``, its subfolders among them, by name in natural order; hidden files are left alone.

    Raises:
        DatasetError: one of them is a link that leads out of ``root``.
    """
    pictures = {}
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if not name.startswith(".")]
        for name in names:
            path = Path(folder, name)
            if path.suffix.lower() in suffixes() and not name.startswith(".") and path.is_file():
                pictures[shown_name(path.relative_to(root).as_posix())] = path
    outside = [name for name, path in pictures.items() if not path.resolve().is_relative_to(root.resolve())]
    refuse(outside, "{} picture(s) are links to outside of " + str(root))
    return {name: pictures[name] for name in sorted(pictures, key=natural)}


def named_inside(root: Path, names: Iterable[str]) -> dict[str, tuple[str, Path]]:
    """Each name of a list with the file's shown name and place. Names are relative to ``root``; a path that is absolute, or
    relative to the working folder, is taken where it leads into ``root``. Composed and decomposed accents are the same.

    Raises:
        DatasetError: a file is not there, or lies outside of ``root``.
    """
    base, files, missing, outside = root.resolve(), {}, [], []
    for name in dict.fromkeys(names):
        path = _resolved(root, name)
        if path is not None and path.is_relative_to(base) and path.is_file():
            files[name] = (shown_name(path.relative_to(base).as_posix()), path)
        elif path is not None and not path.is_relative_to(base):
            outside.append(name)
        else:
            missing.append(name)
    refuse(outside, "{} file name(s) lead outside of " + f"{root}; a list may name files below its own folder only")
    refuse(missing, "{} named file(s) are not in " + str(root))
    return files


def _resolved(root: Path, name: str) -> Path | None:
    """Where a name leads: below the folder, or from the working folder into it, in either way of writing accents."""
    spellings = dict.fromkeys([name, unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name)])
    first = None
    for spelling in spellings:
        for place in (root / spelling, Path(spelling)):
            try:
                path = place.resolve()
                first = path if first is None else first
                if path.is_file() and path.is_relative_to(root.resolve()):
                    return path
            except (OSError, ValueError):  # a NUL byte, a name too long
                continue
    return first


def shown_name(name: str) -> str:
    """A file name as valid text; bytes that are not UTF-8 are written as escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def refuse(names: Sequence[str], message: str) -> None:
    """Refuse ``names``, if there are any, with their number in ``message`` and three of them.

    Raises:
        DatasetError: there are some.
    """
    if names:
        raise DatasetError(f"{message.format(len(names))}: {examples(names)}")


def examples(names: Iterable[str]) -> str:
    """The first three of some names."""
    some = list(names)
    return ", ".join(repr(name) for name in some[:3]) + (" ..." if len(some) > 3 else "")
