"""Tables for a terminal. Every text in them is plain: markup in a name is shown and not obeyed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from rich import box
from rich.table import Table as TerminalTable
from rich.text import Text

from protoscore.reporting.results import ALL, Results

__all__ = ["TerminalTable", "results_table", "terminal_table"]


def terminal_table(
    headings: Sequence[str], rows: Iterable[Sequence[str | Text]], left: Collection[str] = (), title: str | None = None
) -> TerminalTable:
    """A narrow table; columns are right-aligned but for those named in ``left``."""
    table = TerminalTable(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return table


def results_table(results: Results) -> TerminalTable:
    """The estimates of everything under the name of each scorer or model: interval, n, and how many were left out."""
    rows: list[Sequence[str | Text]] = []
    for name, groups in results.estimates.items():
        rows.append((Text(name, style="bold"), "", "", ""))
        whole = groups.get(ALL) or next(iter(groups.values()), {})
        rows += [(f"  {q.replace('_', ' ')}", f"{e}", f"{e.n:,}", f"{e.left_out:,}") for q, e in whole.items()]
    headings = ("", "estimate", "n", "left out")
    return terminal_table(headings, rows, ("",), f"{results.benchmark or 'Estimates'}, 95 % intervals")
