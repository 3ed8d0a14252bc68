"""Pictures as vectors."""

from __future__ import annotations

from typing import Annotated

import typer

from protoscore.cli.inputs import (
    SOURCE_HELP,
    About,
    Config,
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
from protoscore.cli.options import Out

app = typer.Typer()


@app.command()
def embed(
    out: Out,
    source: Annotated[str | None, typer.Argument(metavar="ROWS", help=SOURCE_HELP)] = None,
    images: Images = None,
    prompts: Prompts = None,
    prompt_column: PromptColumn = None,
    file_column: FileColumn = None,
    embedder: Annotated[
        str, typer.Option("--embedder", "-e", help="scene, efficientnet_lite0, or vision_tower:FOLDER_OR_HUB_ID.")
    ] = "scene",
    option: Annotated[list[str], typer.Option("--option", "-o", help="NAME=VALUE for the embedder. Repeat for several.")] = [],  # noqa: B006
    split: Split = "test",
    config: Config = None,
    limit: Limit = None,
    image: ImageColumns = [],  # noqa: B006
    id_column: IdColumn = None,
    about: About = None,
) -> None:
    """A vector per picture, for diversity and for likeness. Resumes; each distinct picture is embedded once."""
    from protoscore.catalog import load
    from protoscore.cli.named_values import pairs
    from protoscore.embedding import TABLE, embed_rows

    named = {"prompt": prompt_column, "file": file_column}
    rows = rows_from(source, images, prompts, named, split, limit, image, [], id_column, about, config, untold=True)
    counts = embed_rows(rows, load("embedders", embedder, **pairs(option, "--option")), out)
    failed = f", {counts.not_ok} without a vector ({counts.reason})" if counts.not_ok else ""
    print(f"{out / TABLE}: {counts.rows} rows, {counts.embedded_now} pictures embedded now{failed}")
