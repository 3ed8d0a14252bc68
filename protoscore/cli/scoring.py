"""Metrics on datasets, on one's own pictures, against each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from protoscore.cli.options import Out, ScorerNames, ScorerOptions
from protoscore.errors import ConfigError, ImageError

app = typer.Typer()


@app.command()
def score(
    out: Out,
    scorer: ScorerNames,
    option: ScorerOptions = [],  # noqa: B006
    dataset: Annotated[str | None, typer.Argument(help="A folder with a 'controls' config, or a Hub dataset id.")] = None,
    images: Annotated[Path | None, typer.Option(help="Your own pictures instead: a folder, or a list of files.")] = None,
    prompts: Annotated[Path | None, typer.Option(help="Their prompts: .csv .tsv .json .jsonl .parquet or .txt.")] = None,
    split: Annotated[str, typer.Option(help="Split of the dataset to score.")] = "test",
    limit: Annotated[int | None, typer.Option(min=1, help="Score the first N rows only.")] = None,
    form: Annotated[Literal["parquet", "csv", "json"], typer.Option("--format", help="Write this form as well.")] = "parquet",
    shard: Annotated[str | None, typer.Option(help="Part i/n only, e.g. 2/8; then run without it for the table.")] = None,
    retry: Annotated[list[str] | None, typer.Option(help="Try again what is invalid, refused, abstained, or all.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Pairs at once (default: the scorer's own).")] = None,
    engine: Annotated[str, typer.Option(help="'local', or 'ray' for a cluster (RAY_ADDRESS).")] = "local",
) -> None:
    """Score a dataset's four cells, or your own pictures, with one or more metrics. Also under torchrun, one GPU a process.

    Which prompt belongs to which of your pictures (the first rule that fits; what does not fit is refused by name):

    1. --prompts has a column file, file_name, filename, image, image_path or path: each line pairs that picture with its
    prompt, text or caption; a picture may have several lines, and so may a prompt.

    2. One prompt: it serves every picture.

    3. One picture: it is scored under every prompt.

    4. --prompts has a column id, prompt_id or key: pictures lie in a folder of that name (42/any.png) or carry it as their own
    (42.png, 42_0.png).

    5. As many prompts as pictures: one to one, file names in natural order (2 before 10), or in the order of the list.
    """
    from protoscore.benchmarks.protobias.cells import CellRows
    from protoscore.cli.named_values import pairs
    from protoscore.reporting.tables import export
    from protoscore.scoring.sharding import Shard
    from protoscore.scoring.stage import score_named
    from protoscore.sources.own_images import OwnImages

    if (dataset is None) == (images is None) or (prompts is not None and images is None):
        raise ConfigError("give a DATASET, or --images with --prompts; see: protoscore score --help")
    own = OwnImages(images, prompts, limit) if images else None
    part = Shard.parse(shard) if shard else None
    rows = own or CellRows(str(dataset), split, limit)
    counts = score_named(rows, scorer, out, part, retry or [], batch_size, engine, pairs(option, "--option"))
    if part:
        print(f"{out}: shard {shard} is done, {counts.scored_now} scores made now; after all shards: the same without --shard")
    if not counts.rows:  # a shard, or a rank that is not the first
        return
    failed = f", {counts.not_ok} without a number ({counts.reason or 'see the column reason'})" if counts.not_ok else ""
    if own:
        print(f"{len(own)} pairs, {own.rule}" + (f"; {len(own.unused)} pictures have no prompt" if own.unused else ""))
    print(f"{out / 'scores.parquet'}: {counts.rows} scores, {counts.scored_now} made now{failed}")
    if form != "parquet":
        print(export(out, form))
    print(f"Next: protoscore report {out}" + (f" --dataset {dataset}" if dataset else ""))


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="Folder that 'protoscore score' wrote.")],
    dataset: Annotated[str | None, typer.Option(help="The scored dataset, for the pictures of the worst pairs.")] = None,
    out: Annotated[Path | None, typer.Option(help="HTML file (default: RUN/report.html).")] = None,
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples.")] = 2000,
    human: Annotated[
        Path | None,
        typer.Option(help="People's choices: columns triplet, rendition, annotator, choice (correct, adversarial, tie)."),
    ] = None,
    human_ties: Annotated[
        Literal["left_out", "wrong"], typer.Option(help="What a majority without a preference is for kappa.")
    ] = "left_out",
    normalise: Annotated[Literal["none", "minmax", "rank"], typer.Option(help="Scale of the score distributions.")] = "minmax",
) -> None:
    """What a run found: a table here, a self-contained HTML page, JSON, and a leaderboard row a scorer."""
    from protoscore.benchmarks.protobias.report import make_report

    path = make_report(run, dataset, out, resamples, human, human_ties, normalise)
    print(f"Open {path} in a browser.")


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


@app.command()
def rate(
    text: Annotated[str, typer.Argument(help="What the pictures should show.")],
    pictures: Annotated[list[Path], typer.Argument(help="Image files.")],
    scorer: Annotated[str, typer.Option("--scorer", "-s", help="Name of a scorer, or NAME:FOLDER_OR_HUB_ID.")] = "protoscore",
    option: ScorerOptions = [],  # noqa: B006
) -> None:
    """Score a few image files against one text, best first."""
    from protoscore.catalog import load
    from protoscore.cli.named_values import pairs
    from protoscore.sources.decoding import open_image

    opened = []
    for path in pictures:
        try:
            opened.append(open_image(path.read_bytes()))
        except OSError as error:
            raise ImageError(f"{path}: {error.strerror}; give the path of an image file") from error
        except ImageError as error:
            raise ImageError(f"{path}: {error}; give a PNG, JPEG or WebP file") from error
    component = load("scorers", scorer, **pairs(option, "--option"))
    scores = component.score(opened, [text] * len(opened))
    sign = 1 if component.facts.higher_is_better else -1
    for path, result in sorted(zip(pictures, scores), key=lambda p: (p[1].value is None, -sign * (p[1].value or 0.0))):
        print(f"{result.value:.4f}  {path}" if result.value is not None else f"{result.status}  {path}  {result.reason}")


@app.command()
def scorers(name: Annotated[str | None, typer.Argument(help="A scorer, for its whole card.")] = None) -> None:
    """Explain the metrics: what each answers, range, direction, licence, memory, speed, known bias."""
    from protoscore.reporting.scorer_cards import print_card, print_list

    print_card(name) if name else print_list()


@app.command()
def transfer(
    benchmark: Annotated[str, typer.Argument(help="winoground, tifa160 or genai_bench.")],
    out: Out,
    scorer: ScorerNames,
    source: Annotated[str | None, typer.Option(help="Folder or Hub id, instead of the benchmark's own place.")] = None,
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples.")] = 2000,
) -> None:
    """How metrics fare on benchmarks that others made (paper, Table 11), with intervals."""
    from protoscore.benchmarks._run import run, show
    from protoscore.catalog import load
    from protoscore.scoring.stage import load_scorers

    rows = load("benchmarks", f"{benchmark}:{source}" if source else benchmark)
    show(run(rows, list(load_scorers(scorer).values()), out, resamples))
    print(f"All groups and numbers: {out / 'transfer.json'}")
