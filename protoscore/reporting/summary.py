"""A run over a team's own pictures: each metric's mean with its interval over prompts, and which prompts do worst."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

import protoscore
from protoscore.folder import manifest_hash, read_manifest, write_text
from protoscore.reporting.pages import environment, number
from protoscore.reporting.tables import PromptTable, read_prompts
from protoscore.schema import Status
from protoscore.stats.resampling import Estimate, cluster_bootstrap, interval
from protoscore.stats.small_samples import expanded_level

SHOWN = 8  # rows shown from each end


class Scored(NamedTuple):
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
    lowest: list[Scored]
    highest: list[Scored]


def summarise(table: PromptTable, resamples: int = 2000, seed: int = 0) -> Summary:
    """Summarise one metric; the interval says how far other prompts of the same kind could move the mean."""
    prompts, means = table.by_prompt()
    found = means[np.isfinite(means)]
    n, nan = len(found), float("nan")
    low, high = (-np.inf, np.inf) if n == 1 else (nan, nan)
    if n > 1:
        samples = cluster_bootstrap(found[:, None], np.ones((n, 1)), None, resamples, seed)[:, 0]
        low, high = interval(samples, expanded_level(n))
    mean = Estimate(float(found.mean()) if n else nan, low, high, n, len(prompts) - n)
    scored = np.flatnonzero(np.isfinite(table.scores))
    order = scored[np.argsort(table.scores[scored], kind="stable")]
    rows = [Scored(str(table.images[i]), str(table.prompts[i]), float(table.scores[i])) for i in order]
    quantiles = [float(np.quantile(table.scores[scored], q)) for q in (0, 0.25, 0.5, 0.75, 1)] if len(scored) else []
    failed = {state: count for state, count in table.states.items() if state != Status.OK}
    shown = min(SHOWN, len(rows) // 2 or len(rows))
    return Summary(table.scorer, mean, len(scored), failed, quantiles, rows[:shown], rows[-shown:][::-1])


def make_summary(run: Path, out: Path | None = None, resamples: int = 2000) -> Path:
    """Print the table, write ``report.json`` and the HTML page, and return the page's path.

    Raises:
        DatasetError: ``run`` is no finished run over own pictures.
    """
    found = [summarise(table, resamples) for table in read_prompts(run)]
    manifest = read_manifest(run)
    _print(found)
    body = {"run": manifest_hash(run), "resamples": resamples, "scorers": {s.scorer: _plain(s) for s in found}}
    write_text(run / "report.json", json.dumps(body, indent=1, ensure_ascii=False) + "\n")
    page = (
        environment()
        .get_template("summary.html.jinja")
        .render(found=found, manifest=manifest, version=protoscore.__version__, resamples=resamples, ok=Status.OK.value)
    )
    path = out or run / "report.html"
    write_text(path, page)
    return path


def _plain(summary: Summary) -> dict[str, Any]:
    mean = {key: value if np.isfinite(value) else None for key, value in summary.mean._asdict().items()}
    ends = {"lowest": [s._asdict() for s in summary.lowest], "highest": [s._asdict() for s in summary.highest]}
    return summary._asdict() | {"mean": mean} | ends


def _print(found: list[Summary]) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading in ("metric", "mean", "95 % interval", "prompts", "pictures", "failed", "lowest picture"):
        table.add_column(heading, justify="left" if heading in ("metric", "lowest picture") else "right", no_wrap=True)
    for s in found:
        bounds = f"{number(s.mean.low)} {number(s.mean.high)}"
        counts = (f"{s.mean.n:,}", f"{s.pictures:,}", f"{sum(s.failed.values()):,}")
        lowest = Text(ascii(s.lowest[0].image)[1:-1]) if s.lowest else ""
        table.add_row(Text(s.scorer), number(s.mean.value), bounds, *counts, lowest)
    Console().print(table)
