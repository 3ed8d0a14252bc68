"""Pictures as vectors."""

from __future__ import annotations

from typing import Annotated

import typer

from protoscore.cli.inputs import SOURCE_HELP, Fields, IdColumn, ImageColumns, Limit, Split, rows_from
from protoscore.cli.options import Out

app = typer.Typer()


@app.command()
def embed(
    dataset: Annotated[str, typer.Argument(help=SOURCE_HELP)],
    out: Out,
    embedder: Annotated[
        str, typer.Option("--embedder", "-e", help="scene, efficientnet_lite0, or vision_tower:FOLDER_OR_HUB_ID.")
    ] = "scene",
    option: Annotated[list[str], typer.Option("--option", "-o", help="NAME=VALUE for the embedder. Repeat for several.")] = [],  # noqa: B006
    split: Split = "test",
    limit: Limit = None,
    image: ImageColumns = [],  # noqa: B006
    field: Fields = [],  # noqa: B006
    id_column: IdColumn = None,
) -> None:
    """A vector per picture, for diversity and for likeness. Resumes; each distinct picture is embedded once."""
    from protoscore.catalog import load
    from protoscore.cli.named_values import pairs
    from protoscore.embedding import TABLE, embed_rows

    rows = rows_from(dataset, None, None, {}, split, limit, image, field, id_column)
    counts = embed_rows(rows, load("embedders", embedder, **pairs(option, "--option")), out)
    failed = f", {counts.not_ok} without a vector ({counts.reason})" if counts.not_ok else ""
    print(f"{out / TABLE}: {counts.rows} rows, {counts.embedded_now} pictures embedded now{failed}")
