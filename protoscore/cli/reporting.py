"""What a run found, and whether another run differs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from protoscore.cli.options import Truth

app = typer.Typer()


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="Folder that 'protoscore score' or 'protoscore judge' wrote.")],
    dataset: Annotated[
        str | None, typer.Option(help="What was scored or judged, for its pictures and people's ratings.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="HTML file (default: RUN/report.html); the other files come beside it.")
    ] = None,
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples.")] = 2000,
    truth: Truth = [],  # noqa: B006
    option: Annotated[list[str], typer.Option("--option", "-o", help="NAME=VALUE for the run's benchmark. Repeat.")] = [],  # noqa: B006
) -> None:
    """What a run found, with intervals: a table here, a self-contained HTML page, results.json, and leaderboard rows.

    The run's manifest names its benchmark, which evaluates it and draws the page; -o hands it options of its own, and one that
    it does not know is answered with those that it has.
    """
    from rich.console import Console
    from rich.text import Text

    from protoscore.benchmarks import of_run
    from protoscore.benchmarks import report as make_report
    from protoscore.cli.named_values import pairs
    from protoscore.folder import read_manifest

    benchmark = of_run(run, dataset, resamples=resamples, **pairs(option, "--option"))
    if truth:
        read_manifest(run, "judge")
        benchmark.truth = pairs(truth, "--truth")
    results, page = make_report(run, benchmark, out)
    console = Console()
    for part in benchmark.shown(results):
        console.print(part, soft_wrap=isinstance(part, Text))
    print(f"Open {page} in a browser.")


@app.command()
def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="The run to compare with, e.g. the model in use.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="The run in question, e.g. the new checkpoint.")],
    out: Annotated[Path | None, typer.Option(help="HTML file (default: RUN_B/comparison.html); JSON comes beside it.")] = None,
    fail_if_worse: Annotated[bool, typer.Option("--fail-if-worse", help="Exit with 1 if B is worse on a metric.")] = False,
    fail_below: Annotated[
        float | None, typer.Option(metavar="DELTA", help="Exit with 1 if the whole interval of B - A is below DELTA.")
    ] = None,
    resamples: Annotated[int, typer.Option(min=1000, help="Bootstrap resamples and sign flips.")] = 10_000,
) -> None:
    """Did B get better or worse than A, prompt by prompt, on each metric? Both are runs of score --images.

    The exit code is 0, 1 if a --fail option says so, and 2 for an error.
    """
    from protoscore.reporting.comparison import compare as compare_runs
    from protoscore.reporting.comparison import print_comparison, write_comparison

    found = compare_runs(run_a, run_b, resamples)
    print_comparison(found)
    page = out or run_b / "comparison.html"
    write_comparison(found, run_a, run_b, page)
    print(f"Open {page} in a browser.")
    failed = (found.worse() if fail_if_worse else []) + (found.below(fail_below) if fail_below is not None else [])
    if failed:
        print(f"Failed: {', '.join(dict.fromkeys(failed))}")
        raise typer.Exit(1)
