"""Score a benchmark with some metrics, and say what the scores are worth."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from protoscore.benchmarks._transfer import Benchmark
from protoscore.folder import write_text
from protoscore.scorers import Scorer
from protoscore.scoring.stage import score_rows
from protoscore.stats.resampling import Estimate

RESULT = "transfer.json"


def run(benchmark: Benchmark, scorers: list[Scorer], out: Path, resamples: int = 2000) -> dict[str, Any]:
    """Write ``out/scores.parquet`` and ``out/transfer.json``; the same command goes on where it was stopped."""
    score_rows(benchmark, scorers, out)
    table = pq.read_table(out / "scores.parquet").to_pylist()
    results = {}
    for scorer in scorers:
        mine = [row for row in table if row["scorer"] == scorer.name]
        groups = benchmark.evaluate(mine, resamples)
        results[scorer.name] = {
            "revision": scorer.revision,
            "not_ok": sum(row["status"] != "ok" for row in mine),
            "groups": {name: {key: _plain(e) for key, e in values.items()} for name, values in groups.items()},
        }
    report = {"source": _name(benchmark.source), **benchmark.parameters, "resamples": resamples, "scorers": results}
    write_text(out / RESULT, json.dumps(report, indent=2) + "\n")
    return report


def show(report: dict[str, Any]) -> None:
    """A table of the quantities, one line a scorer."""
    from rich.console import Console
    from rich.table import Table

    first = next(iter(report["scorers"].values()))["groups"]["all"]
    table = Table(
        "scorer", *(name.replace("_", " ") for name in first), "no score", title=f"{report['benchmark']}, 95 % intervals"
    )
    for name, result in report["scorers"].items():
        table.add_row(name, *(_cell(e) for e in result["groups"]["all"].values()), str(result["not_ok"]))
    Console().print(table)


def _cell(e: dict[str, Any]) -> str:
    if e["value"] is None:
        return f"none\nn={e['n']}"
    return f"{e['value']:.3f} [{e['low']:.3f}, {e['high']:.3f}]\nn={e['n']}, {e['ties']} ties"


def _plain(estimate: Estimate) -> dict[str, Any]:
    """JSON has no NaN: a number that there is not is null."""
    return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in estimate._asdict().items()}


def _name(source: str) -> str:
    return Path(source).name if Path(source).exists() else source
