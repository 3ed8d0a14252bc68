"""To the Hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from protoscore.publishing import Kind

app = typer.Typer()


@app.command()
def publish(
    kind: Annotated[Kind, typer.Argument(help="What the folder is. 'results' adds figures to a model's repository.")],
    folder: Annotated[Path, typer.Argument(help="Folder to publish; for results a run or a results file.")],
    repo_id: Annotated[str, typer.Option("--repo-id", help="Where to, as ORG/NAME.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and list the files; send nothing.")] = False,
    public: Annotated[bool, typer.Option("--public", help="Show it to everybody (else a new repository is private).")] = False,
    pull_request: Annotated[bool, typer.Option("--pull-request", help="Propose the change instead of making it.")] = False,
    tag: Annotated[str | None, typer.Option(help="Name for the published revision. A tag is never moved.")] = None,
    collection: Annotated[str | None, typer.Option(help="Title or slug of a collection to put it into.")] = None,
    expect_revision: Annotated[str | None, typer.Option(help="The revision there that may be replaced.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace whatever is there.")] = False,
    benchmark: Annotated[str | None, typer.Option(help="Of results: the dataset, as ORG/NAME or ORG/NAME@REVISION.")] = None,
    scorer: Annotated[str | None, typer.Option(help="Of results: whose, where the file has several.")] = None,
) -> None:
    """Check a folder and put it on the Hub in one commit; the same command goes on after a broken upload."""
    from protoscore.publishing import stage

    options = stage.Options(public, pull_request, tag, collection, expect_revision, overwrite, benchmark, scorer)
    with stage.pack(kind, folder, repo_id, options) as parcel:
        print("\n".join(stage.listing(parcel)))
        if dry_run:
            print("nothing was sent (--dry-run)")
        else:
            print("\n".join(stage.report(parcel, stage.publish(parcel, options), options)))
