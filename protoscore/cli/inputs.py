"""What is scored, judged or embedded, from what was typed: the same options for each command."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protoscore.errors import ConfigError, ProtoscoreError

if TYPE_CHECKING:
    from protoscore.sources.rows import Rows

SOURCE_HELP = "A dataset: a folder, a table, a Hub id, pictures made here, a finished run; or a benchmark, NAME or NAME:SOURCE."
Images = Annotated[Path | None, typer.Option(help="Your own pictures: a folder, or a list of files.")]
Prompts = Annotated[Path | None, typer.Option(help="Their prompts: .csv .tsv .json .jsonl .parquet or .txt.")]
PromptColumn = Annotated[str | None, typer.Option(help="Column of the prompts, where its name is unusual.")]
FileColumn = Annotated[str | None, typer.Option(help="Column of the file names, where its name is unusual.")]
Split = Annotated[str, typer.Option(help="Split of the dataset.")]
Config = Annotated[str | None, typer.Option(help="Config of a dataset that has several, or a subfolder.")]
Limit = Annotated[int | None, typer.Option(min=1, help="The first N rows only.")]
ImageColumns = Annotated[list[str], typer.Option("--image", help="Column of pictures, in order. Default: all of them.")]
Fields = Annotated[list[str], typer.Option("--field", help="FIELD=COLUMN, where its name differs, e.g. text=caption.")]
About = Annotated[str | None, typer.Option("--source", help="Of a run: where what it was about lies now, for its pictures.")]
IdColumn = Annotated[str | None, typer.Option("--id", help="Column of unique names.")]


def rows_from(
    source: str | None, images: Path | None, prompts: Path | None, columns: Mapping[str, str | None], split: str,
    limit: int | None, image: Sequence[str], field: Sequence[str], id_column: str | None, about: str | None = None,
    config: str | None = None, untold: bool = False,
) -> Rows:  # fmt: skip
    """The rows that a command is about.

    Args:
        columns: "prompt" and "file": the columns that the user names.
        about: where what a run was about lies now, if ``source`` is a run.
        untold: pictures of one's own need no prompts.

    Raises:
        ConfigError: neither or both of a source and pictures are named.
        DatasetError: what is named is not one.
    """
    from protoscore.cli.named_values import pairs
    from protoscore.sources.rows import View

    if (source is None) == (images is None) or (prompts is not None and images is None):
        raise ConfigError(f"give a dataset, or --images{'' if untold else ' with --prompts'}; see --help")
    fields = pairs(field, "--field")
    if images is not None:
        rows: Rows = _own(images, prompts, columns, id_column, untold)
    else:
        known = None if image or id_column or about or config else _of_benchmark(str(source), split)
        if known is None:
            rows, fields = _of_dataset(str(source), split, image, fields, id_column, about, config), {}
        else:
            rows = known
    for note in getattr(rows, "notes", []):
        print(note, file=sys.stderr)
    return View(rows, limit, fields) if limit or fields else rows


def sets_of(rows: Rows, drawn: tuple[str | None, int, int | None, int, str | None], limit: int | None = None) -> Rows:
    """Sets of the rows, where columns to draw them by are named; else the rows.

    Args:
        drawn: columns with commas, size, number, seed, and the column of sets side by side.
        limit: of sets.
    """
    from protoscore.sources.rows import View
    from protoscore.sources.sets import Sets, Way

    by, size, number, seed, beside = drawn
    if by is None:
        if beside:
            raise ConfigError(f"--beside {beside} sets two sets side by side; say by --sets COLUMNS what a set is")
        return rows
    found = Sets(rows, Way(tuple(part.strip() for part in by.split(",") if part.strip()), size, number, seed, beside))
    if found.left_out:
        print(found.notes[-1], file=sys.stderr)
    return View(found, limit) if limit else found


def _own(images: Path, prompts: Path | None, columns: Mapping[str, str | None], id_column: str | None, untold: bool) -> Rows:
    from protoscore.sources.pairing import FILE, ID, TEXT, OwnImages

    named = {TEXT: columns.get("prompt"), FILE: columns.get("file"), ID: id_column}
    return OwnImages(images, prompts, {kind: name for kind, name in named.items() if name}, untold)


def _of_benchmark(source: str, split: str) -> Rows | None:
    """The items of the benchmark that a source names or is a dataset of, if it does."""
    from protoscore.benchmarks import find

    benchmark = find(source, split)
    return benchmark.items() if benchmark else None


def _of_dataset(
    source: str,
    split: str,
    image: Sequence[str],
    fields: Mapping[str, str],
    id_column: str | None,
    about: str | None,
    config: str | None,
) -> Rows:
    from protoscore.sources import open_rows
    from protoscore.sources.datasets import DatasetRows, asked_about
    from protoscore.sources.runs import is_run, run_records

    run = Path(source)
    if about and not is_run(run):
        raise ConfigError(f"--source says what a run was about, and {source} is not a finished run")
    asked = _asked_of_benchmark(run, about) if is_run(run) else None
    if asked is None and about is None:
        return open_rows(source, split, image, fields, id_column, config=config)
    asked = asked_about(run, about) if asked is None else asked
    return DatasetRows(source, split, image, fields, id_column, run_records(run, asked, about))


def _asked_of_benchmark(run: Path, about: str | None) -> Rows | None:
    """What a run over a benchmark was about, where that can be had."""
    from protoscore.benchmarks import of_run
    from protoscore.folder import read_manifest
    from protoscore.sources.rows import contents_of

    parameters = read_manifest(run)["parameters"]
    if "benchmark" not in parameters:
        return None
    options = {"split": parameters["split"]} if parameters.get("split", "test") != "test" else {}
    try:
        rows = of_run(run, about, **options).items()
        known = parameters.get("rows")
        return rows if about or known in (None, contents_of(rows)) else None
    except ProtoscoreError:  # it is not here
        if about:
            raise
        return None
