"""What is measured: one folder or file per benchmark, found by its name; ``create(source=None, **options)`` makes it.

A :class:`Benchmark` says what has to be drawn, what is scored or asked, and what the answers are worth. The stages do the
rest and know no benchmark by name: a run's manifest names the one that it belongs to (``parameters.benchmark``), and
``protoscore report`` loads that. A module may also define ``recognises(columns)``: whether a dataset with these columns is
its own, for datasets without a manifest.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from protoscore.errors import ConfigError
from protoscore.reporting.results import Results, Task

if TYPE_CHECKING:
    from protoscore.generators import Wanted
    from protoscore.sources.rows import Rows


class Benchmark:
    """Base of every benchmark; a subclass overrides what it has.

    Attributes:
        name: the file or folder name.
        tasks: what a leaderboard ranks, the main one first.
    """

    name = ""
    tasks: tuple[Task, ...] = ()

    def pictures(self) -> Iterator[Wanted]:
        """What has to be drawn, in a fixed order; empty where the pictures come with the benchmark."""
        return iter(())

    def items(self) -> Rows:
        """What is scored or asked. Its ``parameters`` hold ``{"benchmark": name}``, so that a run knows where it belongs.

        Raises:
            ConfigError: the benchmark has no items, or none without a source.
        """
        raise ConfigError(f"{self.name} has no items to score or to ask about")

    def evaluate(self, run: Path) -> Results:
        """What the scores, verdicts or answers of a run say.

        Raises:
            DatasetError: the run is not a finished one over this benchmark.
        """
        raise ConfigError(f"{self.name} has no evaluation; 'protoscore audit RUN' shows what was answered")

    def page(self, results: Results, run: Path) -> str:
        """A self-contained HTML page; by default the tables of estimates."""
        from protoscore.reporting.estimates_page import estimates_page

        return estimates_page(results, run)
