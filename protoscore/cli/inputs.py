"""What is scored, judged or embedded, from what was typed: the same options for each command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protoscore.errors import ConfigError

if TYPE_CHECKING:
    from protoscore.sources.rows import Rows

SOURCE_HELP = "A dataset: a folder, a table, a Hub id, pictures made here, a finished run; or a benchmark, NAME or NAME:SOURCE."
Images = Annotated[Path | None, typer.Option(help="Your own pictures: a folder, or a list of files.")]
Prompts = Annotated[Path | None, typer.Option(help="Their prompts: .csv .tsv .json .jsonl .parquet or .txt.")]
PromptColumn = Annotated[str | None, typer.Option(help="Column of the prompts, where its name is unusual.")]
FileColumn = Annotated[str | None, typer.Option(help="Column of the file names, where its name is unusual.")]
Split = Annotated[str, typer.Option(help="Split of the dataset.")]
Limit = Annotated[int | None, typer.Option(min=1, help="The first N rows only.")]
ImageColumns = Annotated[list[str], typer.Option("--image", help="Column of pictures, in order. Default: all of them.")]
Fields = Annotated[list[str], typer.Option("--field", help="FIELD=COLUMN, where its name differs, e.g. text=caption.")]
IdColumn = Annotated[str | None, typer.Option("--id", help="Column of unique names.")]


def rows_from(
    source: str | None, images: Path | None, prompts: Path | None, columns: Mapping[str, str | None], split: str,
    limit: int | None, image: Sequence[str], field: Sequence[str], id_column: str | None,
) -> Rows:  # fmt: skip
    """The rows that a command is about.

    Args:
        columns: "prompt" and "file": the columns that the user names.

    Raises:
        ConfigError: neither or both of a source and pictures are named.
        DatasetError: what is named is not one.
    """
    from protoscore.cli.named_values import pairs
    from protoscore.sources.rows import View

    if (source is None) == (images is None) or (prompts is not None and images is None):
        raise ConfigError("give a dataset, or --images with --prompts; see --help")
    fields = pairs(field, "--field")
    if images is not None:
        from protoscore.sources.pairing import FILE, ID, TEXT, OwnImages

        named = {TEXT: columns.get("prompt"), FILE: columns.get("file"), ID: id_column}
        own = OwnImages(images, prompts, {kind: name for kind, name in named.items() if name})
        return View(own, limit, fields) if limit or fields else own
    plain = {"images": image, "id_column": id_column}
    rows = None if any(plain.values()) else _of_benchmark(str(source), split)
    if rows is None:
        from protoscore.sources import open_rows

        rows, fields = open_rows(str(source), split, image, fields, id_column), {}
    return View(rows, limit, fields) if limit or fields else rows


def _of_benchmark(source: str, split: str) -> Rows | None:
    """The items of the benchmark that a source names or is a dataset of, if it does."""
    from protoscore.benchmarks import find

    benchmark = find(source, split)
    return benchmark.items() if benchmark else None
