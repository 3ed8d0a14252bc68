"""A run of metrics over pictures that belong to no benchmark: each metric's mean over prompts, and which pictures do worst."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.text import Text

import protoscore
from protoscore.figures import number
from protoscore.folder import read_manifest
from protoscore.reporting.pages import environment, pictures_of
from protoscore.reporting.results import ALL, Results
from protoscore.reporting.tables import PromptTable, read_prompts
from protoscore.reporting.terminal import TerminalTable, terminal_table
from protoscore.schema import Status
from protoscore.stats.resampling import Estimate
from protoscore.stats.small_samples import mean_of_units

SHOWN = 8  # rows shown from each end


class ScoredPicture(NamedTuple):
    """A picture and its score."""

    image: str
    prompt: str
    score: float


class Summary(NamedTuple):
    """One metric over own pictures; higher is better."""

    scorer: str
    mean: Estimate  # over prompts, each counted once; n: prompts with a score
    pictures: int  # with a score
    failed: dict[str, int]
    quantiles: list[float]  # lowest, lower quartile, median, upper quartile, highest picture
    lowest: list[ScoredPicture]
    highest: list[ScoredPicture]


def summarise(table: PromptTable, resamples: int = 2000, seed: int = 0) -> Summary:
    """Summarise one metric; the interval says how far other prompts of the same kind could move the mean."""
    mean = mean_of_units(table.by_prompt()[1], resamples, seed)._replace(ties=0)
    scored = np.flatnonzero(np.isfinite(table.scores))
    order = scored[np.argsort(table.scores[scored], kind="stable")]
    rows = [ScoredPicture(str(table.images[i]), str(table.prompts[i]), float(table.scores[i])) for i in order]
    quantiles = [float(np.quantile(table.scores[scored], q)) for q in (0, 0.25, 0.5, 0.75, 1)] if len(scored) else []
    failed = {state: count for state, count in table.states.items() if state != Status.OK}
    shown = min(SHOWN, len(rows) // 2 or len(rows))
    return Summary(table.scorer, mean, len(scored), failed, quantiles, rows[:shown], rows[-shown:][::-1])


def summary_results(run: Path, resamples: int = 2000, seed: int = 0) -> Results:
    """Each metric's mean; the pictures at both ends are in the details.

    Raises:
        DatasetError: ``run`` is not a finished run over prompts.
    """
    summaries = [summarise(table, resamples, seed) for table in read_prompts(run)]
    estimates = {summary.scorer: {ALL: {"mean": summary.mean}} for summary in summaries}
    return Results(benchmark="", estimates=estimates, details={"resamples": resamples, "summaries": summaries})


def summary_page(results: Results, run: Path) -> str:
    """The page of :func:`summary_results`."""
    template = environment().get_template("summary.html.jinja")
    manifest, found = read_manifest(run), results.details["summaries"]
    shown = pictures_of(run, (picture.image for summary in found for picture in (*summary.lowest, *summary.highest)))
    facts = {"resamples": results.details["resamples"], "pictures": shown, "version": protoscore.__version__}
    return template.render(found=found, manifest=manifest, **facts)


def summary_table(results: Results) -> TerminalTable:
    """What a terminal shows of :func:`summary_results`."""
    rows = []
    for s in results.details["summaries"]:
        bounds = f"{number(s.mean.low)} {number(s.mean.high)}"
        counts = (f"{s.mean.n:,}", f"{s.pictures:,}", f"{sum(s.failed.values()):,}")
        lowest = Text(ascii(s.lowest[0].image)[1:-1]) if s.lowest else ""
        rows.append((s.scorer, number(s.mean.value), bounds, *counts, lowest))
    headings = ("metric", "mean", "95 % interval", "prompts", "pictures", "failed", "lowest picture")
    return terminal_table(headings, rows, left=("metric", "lowest picture"))
