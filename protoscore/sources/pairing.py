"""A team's own pictures and prompts as rows to score: which prompt belongs to which file, by stated rules.

The first rule that fits is taken, and what does not fit is refused by name before anything is scored:

1. the prompts have a column of files (``file``, ``file_name``, ``filename``, ``image``, ``image_path`` or ``path``): each line
   pairs that picture with that prompt. A file may stand in many lines, and a prompt too. Names are relative to the pictures.
2. one prompt: every picture is scored under it.
3. one picture: it is scored under every prompt.
4. the prompts have a column ``id``, ``prompt_id`` or ``key``: a picture belongs to the id that its folder is named after
   (``42/any.png``), or else its file (``42.png``, ``42_0.png``, ``42-1.png``).
5. as many prompts as pictures: one to one, pictures in natural order of their names (2 before 10), or in that of the list.

Prompts are a CSV, TSV, JSON (a list), JSON Lines or Parquet file with a column ``prompt``, ``text`` or ``caption``, or a text
file with one prompt a line. Pictures are a folder, searched with its subfolders, or a list of files: a text file with one name
a line, or a table with a column of files. A list that has prompts as well needs no other file. Names are relative to the list.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from protoscore.errors import DatasetError
from protoscore.schema import content_id
from protoscore.sources.pictures import (
    Below,
    examples,
    is_picture_name,
    named_inside,
    natural,
    pictures_below,
    refuse,
    suffixes,
)
from protoscore.sources.rows import Row, files_fingerprint
from protoscore.sources.tables import VALUE, Line, read_table, text_of

FILE = ("file", "file_name", "filename", "image", "image_path", "path")
TEXT = ("prompt", "text", "caption")
ID = ("id", "prompt_id", "key")
OPTIONS = {TEXT: "--prompt-column", FILE: "--file-column", ID: "--id"}
Columns = Mapping[tuple[str, ...], str]  # kind of column -> the one that the user names


class Prompt(NamedTuple):
    """One line of a table of prompts; what the table has no column for is empty."""

    id: str
    text: str
    file: str
    more: Mapping[str, Any] = {}  # its other columns


class Pair(NamedTuple):
    """A picture and the prompt that it is scored under."""

    id: str  # of the prompt: its own, or one made from its text
    prompt: str
    image: str  # relative to the root, as shown in tables
    path: Path
    more: Mapping[str, Any] = {}  # what else the table says of the prompt


class Pairing(NamedTuple):
    """Every pair in order, the rule that made them, pictures of the folder that no line names, and what is to be told."""

    pairs: list[Pair]
    rule: str
    unused: list[str] = []
    notes: list[str] = []


def pair_up(images: Path, prompts: Path | None = None, columns: Columns | None = None, untold: bool = False) -> Pairing:
    """Decide which prompt belongs to which picture, by the rules of this module.

    Args:
        untold: pictures without prompts are taken as they are.

    Raises:
        DatasetError: something is left over, missing, ambiguous or outside the folder; it is named, with three examples.
    """
    root = images if images.is_dir() else images.parent
    listed = [] if images.is_dir() else read_lines(images, "--images", FILE, columns)
    untold = untold and prompts is None and not any(line.text for line in listed)
    if untold:
        lines = listed or [Prompt("", "", "")]
    elif prompts is None:
        if not any(line.text for line in listed):
            raise DatasetError(f"{images} comes without prompts; give --prompts with a CSV, JSON Lines or Parquet file")
        lines = listed
    else:
        lines = read_lines(prompts, "--prompts", TEXT, columns)
    if not untold and not any(line.text for line in lines):
        raise DatasetError(f"{prompts or images}: all {len(lines)} prompts are empty")
    below = Below(dict(named_inside(root, [line.file for line in listed]).values()), []) if listed else pictures_below(root)
    files, notes = below.pictures, below.notes
    if not untold and (empty := sum(not line.text for line in lines)):
        notes.append(f"{empty} of {len(lines)} prompts are empty; their pictures end as 'invalid'")
    if not files:
        raise DatasetError(f"{images} holds no pictures ({', '.join(sorted(suffixes()))})")
    if any(line.file for line in lines):
        refuse([line.text for line in lines if not line.file], "{} prompt(s) have no file, and others have")
        return _by_file(root, lines, files)._replace(notes=notes)
    if len(lines) == 1 or len(files) == 1:
        rule = "no prompts" if untold else "one prompt for every picture" if len(lines) == 1 else "every prompt for one picture"
        pairs = [_pair(line, name, path) for name, path in files.items() for line in lines]
    elif all(line.id for line in lines):
        rule, pairs = _by_id(lines, files)
    elif len(lines) == len(files):
        rule, pairs = "one to one, in order", [_pair(line, *file) for line, file in zip(lines, files.items(), strict=True)]
    else:
        raise DatasetError(
            f"{len(files)} pictures and {len(lines)} prompts cannot be paired: give the prompts a column 'file', or 'id' with "
            f"a folder per id; the pictures begin with {examples(files)}"
        )
    return Pairing(_distinct(pairs), rule, [], notes)


class OwnImages:
    """The pairs of :func:`pair_up` as :class:`protoscore.sources.rows.Rows`; a picture is read when its row is reached.

    Args:
        named: kind of column -> the one that the user names.
        untold: pictures without prompts are taken as they are.

    Raises:
        DatasetError: as :func:`pair_up`.
    """

    columns: Sequence[str] = ("prompt_id", "prompt", "image")
    scenes: bool | None = None
    parent: Path | None = None

    def __init__(self, images: Path, prompts: Path | None = None, named: Columns | None = None, untold: bool = False):
        pairing = pair_up(images, prompts, named, untold)
        self._pairs, self.notes = pairing.pairs, pairing.notes
        self.source = str(images) if not images.is_absolute() else images.name  # no folder of the user's in a manifest
        what = content_id(*(part for pair in self._pairs for part in pair[:3]), length=24)
        facts = {"rule": pairing.rule, "unused": len(pairing.unused), "pairs": what}
        self.parameters: dict[str, Any] = {"prompts": (prompts or images).name, **facts}

    def __len__(self) -> int:
        return len(self._pairs)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        for pair in self._pairs[start:stop]:
            try:
                data = pair.path.read_bytes()
            except OSError:  # gone or forbidden since it was listed: the row ends in a state, as without a picture
                data = b""
            fields = {**pair.more, "prompt_id": pair.id, "prompt": pair.prompt, "image": pair.image, "text": pair.prompt}
            yield Row(content_id(pair.id, pair.prompt, pair.image), (data,), fields)

    def contents(self) -> str:
        return self.parameters["pairs"]

    def fingerprint(self) -> str | None:
        try:
            return files_fingerprint(dict.fromkeys(pair.path for pair in self._pairs), self.parameters)
        except OSError:
            return None


def _pair(line: Prompt, name: str, path: Path) -> Pair:
    return Pair(line.id or content_id("prompt", line.text), line.text, name, path, line.more)


def _by_file(root: Path, lines: list[Prompt], files: dict[str, Path]) -> Pairing:
    named = named_inside(root, (line.file for line in lines))
    pairs = _distinct([_pair(line, *named[line.file]) for line in lines])
    return Pairing(pairs, "by file name", sorted(files.keys() - {name for name, _ in named.values()}, key=natural))


def _by_id(lines: list[Prompt], files: dict[str, Path]) -> tuple[str, list[Pair]]:
    ids = {line.id: line for line in lines}
    refuse([i for i, n in Counter(line.id for line in lines).items() if n > 1], "{} id(s) stand for several prompts")
    owners = {name: _owner(name, ids) for name in files}
    refuse(
        [name for name, owner in owners.items() if owner is None],
        "{} picture(s) belong to no prompt id: name a folder or the file after the id, or give the prompts a column 'file'",
    )
    refuse(sorted(ids.keys() - {owner for owner in owners.values() if owner}, key=natural), "{} prompt id(s) have no picture")
    pairs = [_pair(ids[owner], name, files[name]) for name, owner in owners.items() if owner is not None]
    by_folder = sum(owner in PurePosixPath(name).parts[:-1] for name, owner in owners.items())
    where = "folders" if by_folder == len(files) else "files" if not by_folder else "folders and files"
    return f"by prompt id, as the {where} are named", pairs


def _owner(name: str, ids: dict[str, Prompt]) -> str | None:
    """The id that a picture belongs to: of the innermost folder named after one, else of the file, with or without a number.

    Folders come first because files in them are usually numbered, and a number may be another prompt's id.
    """
    path = PurePosixPath(name)
    numbered = re.fullmatch(r"(.+)[_-]\d+", path.stem)
    candidates = [*reversed(path.parts[:-1]), path.stem, *([numbered[1]] if numbered else [])]
    return next((candidate for candidate in candidates if candidate in ids), None)


def _distinct(pairs: list[Pair]) -> list[Pair]:
    twice = [f"{image} under {prompt}" for (_, prompt, image), n in Counter(pair[:3] for pair in pairs).items() if n > 1]
    refuse(twice, "{} pair(s) of a picture and a prompt are given twice")
    return pairs


def read_lines(
    path: Path, option: str, alone: tuple[str, ...], columns: Columns | None = None, paired: bool = True
) -> list[Prompt]:
    """The lines of a table; a column of a list that has no header is what ``alone`` names. ``paired``: with pictures."""
    lines = read_table(path, option)
    names = list(dict.fromkeys(str(name) for line in lines for name in line.values))
    if names == [VALUE] and path.suffix.lower() in (".txt", ".json"):
        column: dict[tuple[str, ...], str | None] = {alone: VALUE}
    else:
        column = {kind: _column(names, kind, (columns or {}).get(kind), f"{option} {path}") for kind in (ID, TEXT, FILE)}
        _refuse_headerless(path, names)
        if column[alone] is None:
            raise DatasetError(
                f"{path} has the columns {', '.join(map(repr, names))}; one must be {' or '.join(alone)}, "
                f"or name it with {OPTIONS[alone]} COLUMN{_closest(names, alone)}"
            )
        if column[FILE] is None and paired:
            _refuse_overlooked(path, lines, [name for name in names if name not in column.values()])
    chosen = [column.get(kind) for kind in (ID, TEXT, FILE)]
    read = []
    for line in lines:
        cells = [text_of(line.values.get(name), f"{path}, line {line.number}: {name}") if name else "" for name in chosen]
        read.append(
            Prompt(cells[0], cells[1], cells[2], {name: value for name, value in line.values.items() if name not in chosen})
        )
    return read


def _column(names: list[str], kind: tuple[str, ...], wanted: str | None, where: str) -> str | None:
    """The column that is of a kind: the one that the user names, or the first of the usual names."""
    if wanted is not None and wanted not in names:
        raise DatasetError(f"{where} has no column {wanted!r}; it has: {', '.join(map(repr, names))}")
    by_name = {name.strip().lower(): name for name in reversed(names)}
    return wanted or next((by_name[name] for name in kind if name in by_name), None)


def _refuse_headerless(path: Path, names: list[str]) -> None:
    """A first line that names a picture is data."""
    if any(is_picture_name(name) for name in names):
        raise DatasetError(
            f"{path} begins with {', '.join(map(repr, names))}, so it has no header; write one above: file,prompt"
        )


def _refuse_overlooked(path: Path, lines: list[Line], names: list[str]) -> None:
    """A column of file names under another name would be paired by order, and perhaps wrongly."""
    for name in names:
        values = [line.values.get(name) for line in lines]
        if all(isinstance(value, str) and is_picture_name(value) for value in values):
            raise DatasetError(f"{path}: the column {name!r} names pictures; say so with {OPTIONS[FILE]} {name}")


def _closest(names: list[str], kind: tuple[str, ...]) -> str:
    """A column that looks as if it were meant."""
    known = {TEXT: ("description", "prompts", "texts", "captions", "sentence"), FILE: ("img", "images", "picture", "filepath")}
    meant = next((name for name in names if name.strip().lower() in known.get(kind, ())), None)
    return f" (perhaps {OPTIONS[kind]} {meant})" if meant else ""
