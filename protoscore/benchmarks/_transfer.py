"""Benchmarks made by others that a metric is checked on (paper, section 15, Table 11). One file each; ``create(source=None)``
returns a :class:`Benchmark`: rows to score, and what their scores say."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from protoscore.sources.rows import Rows
from protoscore.stats.resampling import Estimate


class Benchmark(Rows, Protocol):
    """Rows whose scores are worth something to people."""

    def evaluate(self, scores: list[dict[str, Any]], resamples: int) -> dict[str, dict[str, Estimate]]:
        """Group of rows ("all" first) to the quantities of that group.

        Args:
            scores: rows of the score table of one scorer; ``score`` is None where there is none.
        """
        ...


class Source(NamedTuple):
    """Where a benchmark is found when the user names no place, and how to get at it where that fails."""

    hub_id: str | None
    licence: str
    help: str
