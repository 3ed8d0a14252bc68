"""The progress bar of a judging run, with what it has cost so far."""

from __future__ import annotations

from types import TracebackType

from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from protoscore.asking.ledger import Ledger


class Progress:
    """Questions that ended, and the calls, tokens and cost of the run."""

    def __init__(self, name: str, ledger: Ledger, total: int | None = None):
        self._ledger = ledger
        self._bar = Bar(
            TextColumn("{task.description:<24.24}"), BarColumn(), TextColumn("{task.fields[spent]}"), TimeElapsedColumn()
        )
        self._task = self._bar.add_task(name, total=total, spent="")
        self._done = 0

    def advance(self, count: int) -> None:
        self._done += count
        spent = self._ledger.spent
        money = f", cost {spent.cost:.4f}" if spent.cost else ""
        tokens = f", {spent.tokens:,} tokens" if spent.tokens else ""
        self._bar.update(self._task, advance=count, spent=f"{self._done} done, {spent.calls} calls{tokens}{money}")

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.stop()
