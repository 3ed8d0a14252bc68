"""What benchmarks of other people have in common: rows from their own place, and scores of metrics to hold against people."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, ClassVar, cast

import pyarrow.parquet as pq

from protoscore.benchmarks import Benchmark
from protoscore.errors import DatasetError
from protoscore.folder import read_manifest
from protoscore.reporting.results import Estimates, Results
from protoscore.sources.records import Origin
from protoscore.sources.rows import Rows
from protoscore.stats.resampling import Estimate


class OthersBenchmark(Benchmark):
    """A benchmark that is its own rows: pictures and texts that come with it. It is read when its rows are first asked for.

    Args:
        source: a folder or a Hub id, instead of the benchmark's own place.
    """

    origin: ClassVar[Origin]
    scenes: bool | None = False
    parent: Path | None = None

    def __init__(self, source: str | None = None, resamples: int = 2000):
        super().__init__(resamples)
        self.source = source or self.origin.hub_id or ""
        self.given = source
        self.parameters: dict[str, Any] = {"benchmark": self.name, "split": self.tasks[0].split}

    def items(self) -> Rows:
        return cast("Rows", self)

    def evaluate(self, run: Path) -> Results:
        manifest = read_manifest(run)
        if manifest["stage"] != "score":
            return super().evaluate(run)
        path = run / "scores.parquet"
        if not path.is_file():
            raise DatasetError(f"{run} holds no scores.parquet; run 'protoscore score' again, it goes on where it stopped")
        rows = pq.read_table(path).to_pylist()
        estimates: Estimates = {}
        states: dict[str, dict[str, int]] = {}
        for scorer in dict.fromkeys(row["scorer"] for row in rows):
            own = [row for row in rows if row["scorer"] == scorer]
            estimates[scorer] = self.groups(own)
            states[scorer] = dict(Counter(row["status"] for row in own))
        details = {"states": states, "resamples": self.resamples}
        return Results(benchmark=self.name, estimates=estimates, tasks=list(self.tasks), details=details)

    def groups(self, scores: list[dict[str, Any]]) -> dict[str, dict[str, Estimate]]:
        """Group of rows (``all`` first) to the quantities of that group.

        Args:
            scores: rows of the score table of one scorer; ``score`` is None where there is none.
        """
        raise NotImplementedError
