"""Pictures as vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protoscore.cli.options import Out

if TYPE_CHECKING:
    from protoscore.sources.rows import Row, Rows

app = typer.Typer()


@app.command()
def embed(
    source: Annotated[str, typer.Argument(metavar="ROWS", help="Dataset folder, folder of pictures, or Hub id.")],
    out: Out,
    embedder: Annotated[
        str, typer.Option("--embedder", "-e", help="scene, efficientnet_lite0, or vision_tower:FOLDER_OR_HUB_ID.")
    ] = "scene",
    option: Annotated[list[str], typer.Option("--option", "-o", help="NAME=VALUE for the embedder. Repeat for several.")] = [],  # noqa: B006
    split: Annotated[str, typer.Option(help="Split of a dataset.")] = "test",
    limit: Annotated[int | None, typer.Option(min=1, help="Embed the first N rows only.")] = None,
) -> None:
    """A vector per picture, for diversity and for likeness. Resumes; each distinct picture is embedded once."""
    from protoscore.catalog import load
    from protoscore.cli.named_values import pairs
    from protoscore.embedding import TABLE, embed_rows

    rows = _rows(source, split, limit)
    counts = embed_rows(rows, load("embedders", embedder, **pairs(option, "--option")), out)
    failed = f", {counts.not_ok} without a vector ({counts.reason})" if counts.not_ok else ""
    print(f"{out / TABLE}: {counts.rows} rows, {counts.embedded_now} pictures embedded now{failed}")


def _rows(source: str, split: str, limit: int | None) -> Rows:
    from protoscore.benchmarks.protobias.cells import CellRows
    from protoscore.folder import parts

    if parts(Path(source) / "controls", f"{split}-*.parquet"):
        return CellRows(source, split, limit)
    return _ItemRows(source, split, limit)


class _ItemRows:
    """Today's items under the protocol of rows."""

    columns: Sequence[str] = ()
    parent: Path | None = None
    scenes: bool | None = None

    def __init__(self, source: str, split: str, limit: int | None):
        from protoscore.sources.items import Items

        self._items = Items(source, split, limit=limit)
        self.source, self.parameters = source, self._items.parameters

    def __len__(self) -> int:
        return sum(1 for _ in self._items)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        from itertools import islice

        return islice(self._items, start, stop)

    def fingerprint(self) -> str | None:
        return None
