"""What is measured: one folder or file per benchmark, found by its name; ``create(source=None, **options)`` makes it.

A :class:`Benchmark` says what has to be drawn, what is scored or asked, and what the answers are worth. The stages do the
rest and know no benchmark by name: a run's manifest names the one that it belongs to (``parameters.benchmark``), and
``protoscore report`` loads that. A module may also define ``recognises(columns)``: whether a dataset with these columns is
its own, for datasets without a manifest; and ``judges(protocol)``: whether it evaluates each run of that protocol of its own,
also over items that belong to no benchmark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from protoscore import catalog
from protoscore.errors import ConfigError
from protoscore.folder import MANIFEST, manifest_hash, read_manifest, write_text
from protoscore.reporting.answers import answer_results, answer_tables
from protoscore.reporting.estimates_page import estimates_page
from protoscore.reporting.leaderboard import leaderboard, write_leaderboard
from protoscore.reporting.results import Results, Task, write_results
from protoscore.reporting.summary import summary_page, summary_results, summary_table
from protoscore.sources import columns_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from protoscore.generators import Wanted
    from protoscore.sources.rows import Rows


class Benchmark:
    """Base of every benchmark; a subclass overrides what it has.

    Attributes:
        name: the file or folder name.
        tasks: what a leaderboard ranks, the main one first.
        resamples: of the bootstrap behind each interval.
        truth: field of an answer -> the item's field that holds what is true, for a run of questions.
    """

    name = ""
    tasks: tuple[Task, ...] = ()
    truth: Mapping[str, str] = MappingProxyType({})

    def __init__(self, resamples: int = 2000) -> None:
        self.resamples = resamples

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
        """What the scores, verdicts or answers of a run say; by default means over prompts, or shares of the answers.

        Raises:
            DatasetError: the run is not a finished one over this benchmark.
        """
        if read_manifest(run)["stage"] == "judge":
            return answer_results(run, self.name, self.resamples, truth=self.truth)
        own = {"benchmark": self.name, "tasks": list(self.tasks)}
        return summary_results(run, self.resamples).model_copy(update=own)

    def page(self, results: Results, run: Path) -> str:
        """A self-contained HTML page; by default the tables of estimates."""
        return summary_page(results, run) if self._is_summary(results) else estimates_page(results, run)

    def shown(self, results: Results) -> list[RenderableType]:
        """What a terminal shows; by default one line per scorer or model."""
        return [summary_table(results)] if self._is_summary(results) else [*answer_tables(results)]

    def _is_summary(self, results: Results) -> bool:
        """Whether these are the means over a team's own pictures, which have a page of their own."""
        return not self.name and "summaries" in results.details


def of_run(run: Path, source: str | None = None, **options: Any) -> Benchmark:
    """The benchmark that a run belongs to, by its manifest; the plain :class:`Benchmark` for pictures of one's own.

    Args:
        source: the scored dataset, where the benchmark wants to look at it again; by default what the run was made from.
        options: of the benchmark.

    Raises:
        UnknownName: the manifest names a benchmark that is not installed.
    """
    manifest = read_manifest(run)
    name = manifest["parameters"].get("benchmark") or _of_protocol(manifest["parameters"].get("protocol", ""))
    if name is None:
        if others := options.keys() - {"resamples"}:
            raise ConfigError(f"{run} belongs to no benchmark, so the option {min(others)!r} is for none; leave it out")
        return Benchmark(**options)
    if source and source.partition(":")[0] == name and not Path(source).exists():  # NAME or NAME:SOURCE, as typed for the run
        source = source.partition(":")[2]
    source = source or _still_there(manifest)
    return catalog.load("benchmarks", name, **({"source": source} if source else {}), **options)


def _of_protocol(protocol: str) -> str | None:
    """The benchmark whose protocol this is, where it evaluates whatever was asked with it."""
    name = protocol.partition("/")[0]
    known = {*catalog.names("benchmarks"), *catalog.added("benchmarks")}
    judges = getattr(catalog.module("benchmarks", name), "judges", None) if name in known else None
    return name if judges and judges(protocol) else None


def _still_there(manifest: dict[str, Any]) -> str | None:
    """The folder that a run was made from, where it is still there and the same."""
    source = manifest["parameters"].get("source")
    if not source or not Path(source).is_dir():
        return None
    parent, there = manifest.get("parent"), (Path(source) / MANIFEST).is_file()
    return source if parent is None or (there and manifest_hash(Path(source)) == parent) else None


def find(spec: str, split: str = "test", **options: Any) -> Benchmark | None:
    """The benchmark that ``spec`` means: its name, ``NAME:SOURCE``, a folder whose manifest names it, or a dataset whose
    columns it recognises; None where there is none.

    Raises:
        DatasetError: ``spec`` is neither a benchmark nor a dataset.
    """
    known = [*catalog.names("benchmarks"), *catalog.added("benchmarks")]
    options |= {"split": split} if split != "test" else {}  # a set with one split has no such option
    if spec.partition(":")[0] in known and not Path(spec).exists():
        return catalog.load("benchmarks", spec, **options)
    if (Path(spec) / MANIFEST).is_file():
        manifest = read_manifest(Path(spec))
        if manifest["stage"] in ("score", "judge", "embed"):
            return None  # a run: its rows are what it found
        if name := manifest.get("benchmark") or manifest.get("parameters", {}).get("benchmark"):
            return catalog.load("benchmarks", name, source=spec, **options)
    columns = columns_of(spec, split)
    for name in known:
        recognises = getattr(catalog.module("benchmarks", name), "recognises", None)
        if recognises and recognises(columns):
            return catalog.load("benchmarks", name, source=spec, **options)
    return None


def report(run: Path, benchmark: Benchmark, out: Path | None = None) -> tuple[Results, Path]:
    """Evaluate a run and write ``results.json``, ``leaderboard.jsonl`` and ``.parquet`` into it, and the page.

    Args:
        out: the page's path, by default ``report.html`` in the run; the other files then stand beside it.

    Returns:
        The results, and the path of the page.
    """
    results = benchmark.evaluate(run)
    page = out or run / "report.html"
    folder = page.parent if out else run
    write_results(results, run, folder)
    write_leaderboard(leaderboard(results, run), folder)
    write_text(page, benchmark.page(results, run))
    return results, page
