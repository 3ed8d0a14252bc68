"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[Path, typer.Option("--out", help="Folder for the results; the same command goes on where it stopped.")]

ScorerNames = Annotated[
    list[str],
    typer.Option("--scorer", "-s", help="A scorer: NAME, NAME:FOLDER_OR_HUB_ID, or your own FILE.py. Repeat for several."),
]

ScorerOptions = Annotated[
    list[str],
    typer.Option("--option", "-o", help="NAME=VALUE for the scorers that have it, e.g. -o dtype=bfloat16. Repeat for several."),
]

Truth = Annotated[
    list[str],
    typer.Option(
        "--truth", help="FIELD=COLUMN: the items' column that holds what is true of a judged field. Repeat for several."
    ),
]
