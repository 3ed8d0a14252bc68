"""Which files of a folder are pictures, by one set of rules: suffixes of what is decoded here, links inside the folder only."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from protoscore.errors import DatasetError
from protoscore.sources.decoding import FORMATS

# Endings of pictures that nobody decodes here (of an AVIF, where Pillow was built without it).
OTHERS = frozenset(".avif .heic .heif .jxl .jp2 .svg .psd .eps .ico .tga .dng .cr2 .nef .arw .exr .hdr .mpo".split())


@cache
def suffixes() -> frozenset[str]:
    """The endings of names of pictures that can be decoded here, in lower case."""
    from PIL import Image

    return frozenset(ending for ending, form in Image.registered_extensions().items() if form in FORMATS)


def is_picture_name(name: str) -> bool:
    """Whether a name ends as a picture's does."""
    return Path(name).suffix.lower() in suffixes() | OTHERS


def natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key that puts ``2.png`` before ``10.png``."""
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]


class Below(NamedTuple):
    """What a folder holds: its pictures by name in natural order, and what looks like one and cannot be taken."""

    pictures: dict[str, Path]
    passed_over: list[str]

    @property
    def notes(self) -> list[str]:
        """What a user has to be told."""
        if not self.passed_over:
            return []
        return [f"{len(self.passed_over)} file(s) that look like pictures cannot be read here: {examples(self.passed_over)}"]


def pictures_below(root: Path) -> Below:
    """Pictures below ``root``, its subfolders among them; hidden files are left alone. Links are followed inside of ``root``.

    Raises:
        DatasetError: a picture or a folder is a link that leads out of ``root``, or a folder cannot be read.
    """
    pictures: dict[str, Path] = {}
    passed_over, outside = [], []
    for path in _files(root, root.resolve(), frozenset()):
        name, ending = shown_name(path.relative_to(root).as_posix()), path.suffix.lower()
        if not path.resolve().is_relative_to(root.resolve()):
            outside += [name] if path.is_dir() or ending in suffixes() else []
        elif ending in suffixes() and path.is_file():
            pictures[name] = path
        elif ending in suffixes() | OTHERS:
            passed_over.append(name)
    refuse(outside, "{} picture(s) or folder(s) are links to outside of " + str(root))
    return Below({name: pictures[name] for name in sorted(pictures, key=natural)}, sorted(passed_over, key=natural))


def _files(folder: Path, base: Path, above: frozenset[Path]) -> Iterator[Path]:
    """What is not a folder, and linked folders that lead outside; a link to a folder that it stands in is not followed."""
    here = above | {folder.resolve()}
    try:
        entries = [path for path in folder.iterdir() if not path.name.startswith(".")]
    except OSError as error:
        raise DatasetError(f"{folder} cannot be read ({error.strerror})") from error
    for path in entries:
        if not path.is_dir() or not path.resolve().is_relative_to(base):
            yield path
        elif path.resolve() not in here:
            yield from _files(path, base, here)


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
