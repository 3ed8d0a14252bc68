"""Reading a table that a stranger pasted or uploaded: every error is one line that names the place."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

from protoscore.errors import DatasetError, ProtoscoreError
from protoscore.sources.tables import delimited

MAX_BYTES = 4_000_000
MAX_ROWS = 50_000
MAX_COLUMNS = 4_100
MAX_CELL = 500  # characters
MAX_NAMES = 200  # different values of a column that is reported value by value


class TableError(ProtoscoreError):
    """A pasted or uploaded table that cannot be used as it is."""


class Column(NamedTuple):
    """A column of the table, which is also the argument of the same name of the metric."""

    name: str
    kind: Literal["number", "integer", "text", "names", "vector"]  # names: text with few values; vector: all other columns
    about: str
    required: bool = True


def read_table(data: bytes, columns: list[Column]) -> dict[str, list[Any]]:
    """The wanted columns of a CSV (comma, semicolon or tab; UTF-8; a header line), an empty cell as None.

    An optional column that the table lacks, and a column that nobody asked for, are left out.

    Raises:
        TableError: too large, no text, not the columns, or a cell that is not what its column holds.
    """
    header, rows = _rows(data)
    named = {column.name for column in columns if column.kind != "vector"}
    out: dict[str, list[Any]] = {}
    for column in columns:
        places = [i for i, name in enumerate(header) if name not in named] if column.kind == "vector" else [
            i for i, name in enumerate(header) if name == column.name]  # fmt: skip
        if not places:
            if column.required:
                raise TableError(
                    f"the table has no column {_quoted(column.name)}; it has {', '.join(map(_quoted, header[:8]))}"
                )
            continue
        cells = [[_cell(row[i], column, header[i], line) for i in places] for line, row in rows]
        out[column.name] = cells if column.kind == "vector" else [cell[0] for cell in cells]
        if column.kind == "names" and len(set(out[column.name])) > MAX_NAMES:
            raise TableError(
                f"{column.name} has {len(set(out[column.name])):,} different values; up to {MAX_NAMES} are reported"
            )
    return out


def _rows(data: bytes) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header and the numbered, non-empty lines."""
    if len(data) > MAX_BYTES:
        raise TableError(f"the table has {len(data) / 1e6:.1f} MB; up to {MAX_BYTES // 1_000_000} MB are read")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TableError("this is not UTF-8 text; save the table as CSV (UTF-8), not as a workbook") from None
    if "\0" in text:
        raise TableError("this is not a text table: it holds NUL characters")
    header: list[str] = []
    rows: list[tuple[int, list[str]]] = []
    try:
        for line, row in delimited(text):
            if not header:
                header = _header(row)
            elif len(row) != len(header):
                raise TableError(f"line {line} has {len(row)} cells, the header has {len(header)}")
            elif len(rows) == MAX_ROWS:
                raise TableError(f"the table has more than {MAX_ROWS:,} rows")
            else:
                rows.append((line, row))
    except DatasetError as error:
        raise TableError(str(error)) from None
    if not rows:
        raise TableError("the table is empty; it needs a header line and at least one row")
    return header, rows


def _header(row: list[str]) -> list[str]:
    names = [name.strip() for name in row]
    if len(names) > MAX_COLUMNS:
        raise TableError(f"the table has {len(names):,} columns; up to {MAX_COLUMNS:,} are read")
    if double := [name for name in names if names.count(name) > 1] if len(set(names)) < len(names) else []:
        raise TableError(f"the column {_quoted(double[0])} occurs twice")
    return names


def _cell(text: str, column: Column, name: str, line: int) -> Any:
    text = text.strip()
    if not text:
        return None
    if len(text) > MAX_CELL:
        raise TableError(f"line {line}: {_quoted(name)} has {len(text):,} characters; up to {MAX_CELL} are read")
    if column.kind in ("text", "names"):
        return text
    try:
        number = float(text)
    except ValueError:
        raise TableError(f"line {line}: {_quoted(name)} is {_quoted(text)}, not a number") from None
    if math.isnan(number):
        return None
    if math.isinf(number) or (column.kind == "integer" and number != int(number)):
        raise TableError(
            f"line {line}: {_quoted(name)} is {_quoted(text)}, not a {'finite' if math.isinf(number) else 'whole'} number"
        )
    return int(number) if column.kind == "integer" else number


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:39] + "…")


def shown(text: object) -> str:
    """A stranger's text, short, and not a formula for whoever copies it into a spreadsheet."""
    plain = "".join(c if c.isprintable() else " " for c in str(text))[:80]
    return f"'{plain}" if plain[:1] in ("=", "+", "-", "@") else plain
