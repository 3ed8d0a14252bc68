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

import csv
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from protoscore.errors import DatasetError
from protoscore.schema import content_id
from protoscore.sources.rows import Row, files_fingerprint

FILE = ("file", "file_name", "filename", "image", "image_path", "path")
TEXT = ("prompt", "text", "caption")
ID = ("id", "prompt_id", "key")
PICTURES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff"})
TABLES = frozenset({".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet"})


class Prompt(NamedTuple):
    """One line of a table of prompts; what the table has no column for is empty."""

    id: str
    text: str
    file: str


class Pair(NamedTuple):
    """A picture and the prompt that it is scored under."""

    id: str  # of the prompt: its own, or one made from its text
    prompt: str
    image: str  # relative to the root, as shown in tables
    path: Path


class Pairing(NamedTuple):
    """Every pair in order, the rule that made them, and pictures of the folder that no line names."""

    pairs: list[Pair]
    rule: str
    unused: list[str]


def pair_up(images: Path, prompts: Path | None = None) -> Pairing:
    """Decide which prompt belongs to which picture, by the rules of this module.

    Raises:
        DatasetError: something is left over, missing, ambiguous or outside the folder; it is named, with three examples.
    """
    root = images if images.is_dir() else images.parent
    listed = [] if images.is_dir() else _read(images, "--images", alone=FILE)
    if prompts is None:
        if not listed or not all(line.text for line in listed):
            raise DatasetError(f"{images} comes without prompts; give --prompts with a CSV, JSON Lines or Parquet file")
        lines = listed
    else:
        lines = _read(prompts, "--prompts", alone=TEXT)
    _refuse([f"line {n}" for n, p in enumerate(lines, 1) if not p.text], "{} empty prompt(s) in " + str(prompts or images))
    files = dict(_listed(root, [line.file for line in listed]).values()) if listed else _found(root)
    if not files:
        raise DatasetError(f"{images} holds no pictures ({', '.join(sorted(PICTURES))})")
    if any(line.file for line in lines):
        _refuse([line.text for line in lines if not line.file], "{} prompt(s) have no file, and others have")
        return _by_file(root, lines, files)
    if len(lines) == 1 or len(files) == 1:
        rule = "one prompt for every picture" if len(lines) == 1 else "every prompt for one picture"
        pairs = [_pair(line, name, path) for name, path in files.items() for line in lines]
    elif all(line.id for line in lines):
        rule, pairs = _by_id(lines, files)
    elif len(lines) == len(files):
        rule, pairs = "one to one, in order", [_pair(line, *file) for line, file in zip(lines, files.items(), strict=True)]
    else:
        raise DatasetError(
            f"{len(files)} pictures and {len(lines)} prompts cannot be paired: give the prompts a column 'file', or 'id' with "
            f"a folder per id; the pictures begin with {_examples(files)}"
        )
    return Pairing(_distinct(pairs), rule, [])


class OwnImages:
    """The pairs of :func:`pair_up` as :class:`protoscore.sources.rows.Rows`; a picture is read when its row is reached.

    Args:
        limit: pairs to stop after.

    Raises:
        DatasetError: as :func:`pair_up`.
    """

    columns: Sequence[str] = ("prompt_id", "prompt", "image")
    scenes: bool | None = None
    parent: Path | None = None

    def __init__(self, images: Path, prompts: Path | None = None, limit: int | None = None):
        found = pair_up(images, prompts)
        self.rule, self.unused = found.rule, found.unused
        self._pairs = found.pairs[:limit]
        self.source = str(images)
        what = content_id(*(part for pair in self._pairs for part in pair[:3]), length=24)
        self.parameters: dict[str, Any] = {"prompts": str(prompts or images), "rule": self.rule, "pairs": what}

    def __len__(self) -> int:
        return len(self._pairs)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        for pair in self._pairs[start:stop]:
            try:
                data = pair.path.read_bytes()
            except OSError:  # gone or forbidden since it was listed: the row ends in a state, as without a picture
                data = b""
            fields = {"prompt_id": pair.id, "prompt": pair.prompt, "image": pair.image, "text": pair.prompt}
            yield Row(content_id(pair.id, pair.prompt, pair.image), (data,), fields)

    def fingerprint(self) -> str | None:
        try:
            return files_fingerprint(dict.fromkeys(pair.path for pair in self._pairs), self.parameters)
        except OSError:
            return None


def _pair(line: Prompt, name: str, path: Path) -> Pair:
    return Pair(line.id or content_id("prompt", line.text), line.text, name, path)


def _by_file(root: Path, lines: list[Prompt], files: dict[str, Path]) -> Pairing:
    named = _listed(root, (line.file for line in lines))
    pairs = _distinct([_pair(line, *named[line.file]) for line in lines])
    return Pairing(pairs, "by file name", sorted(files.keys() - {name for name, _ in named.values()}, key=natural))


def _by_id(lines: list[Prompt], files: dict[str, Path]) -> tuple[str, list[Pair]]:
    ids = {line.id: line for line in lines}
    _refuse([i for i, n in Counter(line.id for line in lines).items() if n > 1], "{} id(s) stand for several prompts")
    owners = {name: _owner(name, ids) for name in files}
    _refuse(
        [name for name, owner in owners.items() if owner is None],
        "{} picture(s) belong to no prompt id: name a folder or the file after the id, or give the prompts a column 'file'",
    )
    _refuse(sorted(ids.keys() - {owner for owner in owners.values() if owner}, key=natural), "{} prompt id(s) have no picture")
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
    twice = [f"{p.image} under {p.prompt}" for p, n in Counter(pairs).items() if n > 1]
    _refuse(twice, "{} pair(s) of a picture and a prompt are given twice")
    return pairs


def natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key that puts ``2.png`` before ``10.png``."""
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]


def _found(root: Path) -> dict[str, Path]:
    """Pictures below ``root`` by name, in natural order; hidden files are left alone."""
    found = {}
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if not name.startswith(".")]
        for name in names:
            path = Path(folder, name)
            if path.suffix.lower() in PICTURES and not name.startswith(".") and path.is_file():
                found[_shown(path.relative_to(root).as_posix())] = path
    outside = [name for name, path in found.items() if not path.resolve().is_relative_to(root.resolve())]
    _refuse(outside, "{} picture(s) are links to outside of " + str(root))
    return {name: found[name] for name in sorted(found, key=natural)}


def _listed(root: Path, names: Iterable[str]) -> dict[str, tuple[str, Path]]:
    """Each name of a list with the file's shown name and place; each file must exist inside ``root``."""
    base, found, missing, outside = root.resolve(), {}, [], []
    for name in dict.fromkeys(names):
        try:
            path = (root / name).resolve()
            there = path.is_file()
        except (OSError, ValueError):  # a NUL byte, a name too long
            path, there = base, False
        if not path.is_relative_to(base):
            outside.append(name)
        elif not there:
            missing.append(name)
        else:
            found[name] = (_shown(path.relative_to(base).as_posix()), path)
    _refuse(outside, "{} file name(s) lead outside of " + f"{root}; a list may name files below its own folder only")
    _refuse(missing, "{} named file(s) are not in " + str(root))
    return found


def _shown(name: str) -> str:
    """A file name as valid text; bytes that are no UTF-8 are written as escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _refuse(found: Sequence[str], message: str) -> None:
    if found:
        raise DatasetError(f"{message.format(len(found))}: {_examples(found)}")


def _examples(names: Iterable[str]) -> str:
    some = list(names)
    return ", ".join(repr(name) for name in some[:3]) + (" ..." if len(some) > 3 else "")


def _read(path: Path, option: str, alone: tuple[str, ...]) -> list[Prompt]:
    """The lines of a table, or of a text file, whose lines are what ``alone`` names."""
    if not path.is_file():
        raise DatasetError(f"{option} {path} does not exist")
    suffix = path.suffix.lower()
    try:
        if suffix == ".txt":
            lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
            found = [Prompt("", line, "") if alone is TEXT else Prompt("", "", line) for line in lines]
        elif suffix in TABLES:
            found = _columns(_READERS[suffix](path), path, alone)
        else:
            raise DatasetError(f"{option} {path}: give a .txt, .csv, .tsv, .json, .jsonl or .parquet file")
    except (OSError, ValueError, csv.Error) as error:  # pyarrow's and json's errors are ValueErrors
        raise DatasetError(f"{option} {path} cannot be read as {suffix[1:]} ({str(error).splitlines()[0]})") from error
    if not found:
        raise DatasetError(f"{option} {path} has no lines")
    return found


def _columns(rows: Iterable[dict[str, Any]], path: Path, needed: tuple[str, ...]) -> list[Prompt]:
    found, chosen = [], None
    for row in rows:
        if not isinstance(row, dict):
            raise DatasetError(f"{path}: each entry must be an object with a key 'prompt'")
        if chosen is None:
            by_name = {str(key).strip().lower(): key for key in row}
            chosen = [next((by_name[name] for name in names if name in by_name), None) for names in (ID, TEXT, FILE)]
            if chosen[(ID, TEXT, FILE).index(needed)] is None:
                raise DatasetError(f"{path} has the columns {', '.join(map(repr, by_name))}; one must be {' or '.join(needed)}")
        values = [row.get(column) if column is not None else None for column in chosen]
        if not all(value is None or isinstance(value, str | int | float) for value in values):
            raise DatasetError(f"{path}: ids, prompts and files must be text; a list or an embedded picture is none")
        found.append(Prompt(*("" if value is None else str(value).strip() for value in values)))
    return found


def _csv(path: Path, delimiter: str = ",") -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as handle:
        yield from csv.DictReader(handle, delimiter=delimiter)


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig") as handle:
        yield from (json.loads(line) for line in handle if line.strip())


def _json(path: Path) -> list[dict[str, Any]]:
    body = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(body, list):
        raise ValueError("the outermost value must be a list")
    return body


def _parquet(path: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    names = pq.read_schema(path).names
    wanted = [name for name in names if name.strip().lower() in {*FILE, *TEXT, *ID}]
    return pq.read_table(path, columns=wanted).to_pylist() if wanted else [dict.fromkeys(names)]


_READERS: dict[str, Callable[[Path], Iterable[dict[str, Any]]]] = {
    ".csv": _csv, ".tsv": lambda path: _csv(path, "\t"), ".parquet": _parquet,
    ".json": _json, ".jsonl": _json_lines, ".ndjson": _json_lines,
}  # fmt: skip
