"""Metrics on datasets, on one's own pictures, against each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from protoscore.cli.inputs import (
    SOURCE_HELP,
    About,
    Config,
    Fields,
    FileColumn,
    IdColumn,
    ImageColumns,
    Images,
    Limit,
    PromptColumn,
    Prompts,
    Split,
    rows_from,
)  # fmt: skip
from protoscore.cli.options import Out, ScorerNames, ScorerOptions
from protoscore.errors import ImageError

app = typer.Typer()


@app.command()
def score(
    out: Out,
    scorer: ScorerNames,
    option: ScorerOptions = [],  # noqa: B006
    dataset: Annotated[str | None, typer.Argument(help=SOURCE_HELP)] = None,
    images: Images = None,
    prompts: Prompts = None,
    prompt_column: PromptColumn = None,
    file_column: FileColumn = None,
    split: Split = "test",
    config: Config = None,
    limit: Limit = None,
    image: ImageColumns = [],  # noqa: B006
    field: Fields = [],  # noqa: B006
    id_column: IdColumn = None,
    source: About = None,
    form: Annotated[Literal["parquet", "csv", "json"], typer.Option("--format", help="Write this form as well.")] = "parquet",
    shard: Annotated[str | None, typer.Option(help="Part i/n only, e.g. 2/8; then run without it for the table.")] = None,
    retry: Annotated[list[str] | None, typer.Option(help="Try again what is invalid, refused, abstained, or all.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Pairs at once (default: the scorer's own).")] = None,
    engine: Annotated[str, typer.Option(help="'local', or 'ray' for a cluster (RAY_ADDRESS).")] = "local",
) -> None:
    """Score a dataset, or your own pictures, with one or more metrics. Also under torchrun, one GPU a process.

    Which prompt belongs to which of your pictures (the first rule that fits; what does not fit is refused by name):

    1. --prompts has a column file, file_name, filename, image, image_path or path: each line pairs that picture with its
    prompt, text or caption; a picture may have several lines, and so may a prompt.

    2. One prompt: it serves every picture.

    3. One picture: it is scored under every prompt.

    4. --prompts has a column id, prompt_id or key: pictures lie in a folder of that name (42/any.png) or carry it as their own
    (42.png, 42_0.png).

    5. As many prompts as pictures: one to one, file names in natural order (2 before 10), or in the order of the list.
    """
    from protoscore.cli.named_values import pairs
    from protoscore.reporting.tables import export
    from protoscore.scoring.described import described_in, warn_of
    from protoscore.scoring.sharding import Shard
    from protoscore.scoring.stage import score_named

    part = Shard.parse(shard) if shard else None
    named = {"prompt": prompt_column, "file": file_column}
    rows = rows_from(dataset, images, prompts, named, split, limit, image, field, id_column, source, config)
    counts = score_named(rows, scorer, out, part, retry or [], batch_size, engine, pairs(option, "--option"))
    if part:
        print(f"{out}: shard {shard} is done, {counts.scored_now} scores made now; after all shards: the same without --shard")
    if not counts.rows:  # a shard, or a rank that is not the first
        return
    failed = f", {counts.not_ok} without a number ({counts.reason or 'see the column reason'})" if counts.not_ok else ""
    if rule := rows.parameters.get("rule"):
        unused = rows.parameters["unused"]
        print(f"{len(rows)} pairs, {rule}" + (f"; {unused} pictures have no prompt" if unused else ""))
    if not rows.scenes:
        warn_of(described_in(out))
    print(f"{out / 'scores.parquet'}: {counts.rows} scores, {counts.scored_now} made now{failed}")
    if form != "parquet":
        print(export(out, form))
    print(f"Next: protoscore report {out}" + (f" --dataset {dataset}" if dataset else ""))


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
    from protoscore.scoring.described import warn_of
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
    warn_of([component])
    scores = component.score(opened, [text] * len(opened))
    sign = 1 if component.facts.higher_is_better else -1
    for path, result in sorted(zip(pictures, scores), key=lambda p: (p[1].value is None, -sign * (p[1].value or 0.0))):
        print(f"{result.value:.4f}  {path}" if result.value is not None else f"{result.status}  {path}  {result.reason}")


@app.command()
def scorers(name: Annotated[str | None, typer.Argument(help="A scorer, for its whole card.")] = None) -> None:
    """Explain the metrics: what each answers, range, direction, licence, memory, speed, known bias."""
    from protoscore.reporting.scorer_cards import print_card, print_list

    print_card(name) if name else print_list()
