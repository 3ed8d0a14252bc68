"""One reader of tables, for everybody: prompts, lists of pictures, people's answers, scripted replies.

CSV (comma, semicolon or tab, found from the header; UTF-8, else cp1252 of Windows), TSV (tabs, no quoting), JSON (a list of
objects or of strings, or ``{file: prompt}``), JSON Lines, Parquet, and text with one value per line. A line feed ends a line
and nothing else does. What cannot be read rightly is refused with its line, and never guessed.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from protoscore.errors import DatasetError, first_line

VALUE = "value"  # the column of a list that has none: a text file, a JSON list of strings
SEPARATORS = (",", ";", "\t")


class Line(NamedTuple):
    """One row of a table. ``number`` is its line in the file, or its place in a list; from 1."""

    number: int
    values: dict[str, Any]  # as the format has them: text in CSV, anything in JSON and Parquet


def read_table(path: Path, option: str = "") -> list[Line]:
    """Every row of a file.

    Args:
        option: what the user typed it after, for the message.

    Raises:
        DatasetError: it is not there, is none of these formats, is damaged, or could be read in two ways.
    """
    where = f"{option} {path}".strip()
    suffix = path.suffix.lower()
    if not path.is_file():  # a folder, a pipe
        raise DatasetError(f"{where} {'is not a file' if path.exists() else 'does not exist'}; give the path of a table")
    if suffix not in _READERS:
        raise DatasetError(f"{where}: give a file that ends in one of {', '.join(sorted(_READERS))}")
    try:
        lines = list(_READERS[suffix](path))
    except DatasetError as error:
        raise DatasetError(f"{where}: {error}") from error
    except (OSError, ValueError, RecursionError) as error:  # pyarrow's and json's errors are ValueErrors
        raise DatasetError(f"{where} cannot be read as {suffix[1:]} ({first_line(error)})") from error
    if not lines:
        raise DatasetError(f"{where} has no lines")
    return lines


def is_table(path: Path) -> bool:
    """Whether a file's name ends like a table's."""
    return path.suffix.lower() in _READERS


def text_of(value: Any, what: str) -> str:
    """A cell that must be text, an id or a whole number; empty where there is none.

    Raises:
        DatasetError: it is a list, a truth value, a number that is not whole or not finite, or text that no file can hold.
    """
    if value is None:
        return ""
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)  # how spreadsheets and Parquet hand over whole numbers beside empty cells
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise DatasetError(f"{what} must be text, and is {str(value)[:40]!r}")
    text = str(value).strip()
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise DatasetError(f"{what} holds half of a character (a lone surrogate); write the text anew") from None
    return text


def _decoded(path: Path) -> str:
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return data.decode("utf-16")
        if b"\0" in data:
            raise DatasetError("this is not text") from None
        try:
            return data.decode("cp1252")
        except UnicodeDecodeError:  # five of its bytes stand for nothing
            return data.decode("latin-1")


def _lines(text: str) -> list[tuple[int, str]]:
    """Lines by number, without empty ones. Only a line feed ends a line: other separators may stand inside a prompt."""
    return [(n, line.removesuffix("\r")) for n, line in enumerate(text.split("\n"), 1) if line.strip()]


def _text(path: Path) -> Iterator[Line]:
    for number, line in _lines(_decoded(path)):
        yield Line(number, {VALUE: line.strip()})


def _csv(path: Path) -> Iterator[Line]:
    text, first, separator = _decoded(path), 1, None
    if text[:4].lower() == "sep=" and "\n" in text:
        separator, text, first = text[4:5], text.split("\n", 1)[1], 2
    header: list[str] = []
    for number, cells in delimited(text, separator, first):
        if not header:
            header = _header(cells)
        elif len(cells) != len(header):
            raise DatasetError(f"line {number} has {len(cells)} cells, the header has {len(header)}; {_CELLS}")
        else:
            yield Line(number, dict(zip(header, cells, strict=True)))


_CELLS = "a separator inside a cell needs double quotes around the whole cell"


def delimited(text: str, separator: str | None = None, first: int = 1) -> Iterator[tuple[int, list[str]]]:
    """The records of a CSV that are not empty, each with the number of the line that it begins in.

    Args:
        separator: None: the one that the header has most of, outside of quotes.
        first: number of the first line.

    Raises:
        DatasetError: a quote is not closed, or closed within a cell, or a line ends in a lone carriage return.
    """
    if separator is None:
        head = re.sub(r'"[^"]*"', "", text.lstrip("\r\n").split("\n", 1)[0])
        separator = max(SEPARATORS, key=head.count)
    reader = csv.reader(io.StringIO(text), delimiter=separator, strict=True)  # StringIO: a line feed alone ends a line
    number = first
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield number, cells
            number = first + reader.line_num
    except csv.Error as error:
        raise DatasetError(f"line {number} is not CSV ({_MEANING.get(str(error).split(' - ')[0], str(error))})") from None


_MEANING = {
    "unexpected end of data": "a quote is not closed",
    "new-line character seen in unquoted field": "a carriage return without a line feed",
}


def _tsv(path: Path) -> Iterator[Line]:
    header: list[str] = []
    for number, line in _lines(_decoded(path)):
        cells = line.split("\t")
        if not header:
            header = _header(cells)
            continue
        if len(cells) != len(header):
            raise DatasetError(f"line {number} has {len(cells)} cells, the header has {len(header)}")
        half = next((c for c in cells if c.startswith('"') != (c.endswith('"') and len(c) > 1) and c.count('"') % 2), None)
        if half is not None:
            raise DatasetError(f"line {number} has a half-quoted cell ({half[:30]!r}); TSV has no quotes, take them away")
        yield Line(number, dict(zip(header, cells, strict=True)))


def _header(cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    if twice := [name for name in names if names.count(name) > 1]:
        raise DatasetError(f"the header names the column {twice[0]!r} twice")
    return names


def _json(path: Path) -> Iterator[Line]:
    body = _parsed(_decoded(path))
    if isinstance(body, dict) and body and all(isinstance(value, str) for value in body.values()) and _are_files(body):
        body = [{"file": file, "prompt": prompt} for file, prompt in body.items()]
    if not isinstance(body, list):
        raise DatasetError("the outermost value must be a list, or an object of file names with their prompts")
    for number, entry in enumerate(body, 1):
        yield Line(number, {VALUE: entry} if isinstance(entry, str) else _object(entry, f"entry {number}"))


def _are_files(body: dict[str, Any]) -> bool:
    return all(Path(name).suffix for name in body)


def _json_lines(path: Path) -> Iterator[Line]:
    for number, line in _lines(_decoded(path)):
        try:
            yield Line(number, _object(_parsed(line), f"line {number}"))
        except ValueError as error:
            raise DatasetError(f"line {number} is not JSON ({first_line(error)})") from error


def _parsed(text: str) -> Any:
    def refuse(name: str) -> None:
        raise DatasetError(f"{name} is not a value; leave the key out where there is none")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(named := dict(pairs)) < len(pairs):
            raise DatasetError(f"an object names {Counter(key for key, _ in pairs).most_common(1)[0][0]!r} twice")
        return named

    return json.loads(text, parse_constant=refuse, object_pairs_hook=once)


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DatasetError(f'{what} must be an object with named values, as in {{"prompt": "a red cube"}}')
    return value


def _parquet(path: Path) -> Iterator[Line]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        _header(file.schema_arrow.names)
        number = 0
        for batch in file.iter_batches(256):
            for row in batch.to_pylist():
                number += 1
                yield Line(number, row)


_READERS: dict[str, Callable[[Path], Iterator[Line]]] = {
    ".csv": _csv, ".tsv": _tsv, ".parquet": _parquet, ".txt": _text,
    ".json": _json, ".jsonl": _json_lines, ".ndjson": _json_lines,
}  # fmt: skip
