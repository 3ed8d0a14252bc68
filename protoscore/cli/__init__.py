"""One subcommand a stage. No logic: parse, call, print."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

from protoscore import __version__
from protoscore.cli import diversity, embedding, judging, making, publishing, reporting, scoring
from protoscore.errors import ProtoscoreError

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Can I trust this text-to-image metric? Start with: protoscore score DATASET --scorer protoscore --out RUN",
)  # fmt: skip
for part in (making, scoring, embedding, judging, diversity, reporting, publishing):
    app.add_typer(part.app)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(f"protoscore {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the CLI: a user's error is one line and exit code 2; Ctrl-C says how to go on."""
    try:
        code = app(standalone_mode=False)
        if code == 130:  # how typer hands over Ctrl-C
            raise KeyboardInterrupt
        raise SystemExit(code or 0)
    except ProtoscoreError as error:
        _stop(str(error))
    except (typer.Abort, KeyboardInterrupt):
        _stop("stopped; what is finished is kept, and the same command goes on from here")
    except Exception as error:
        if type(error).__module__.startswith(("click", "typer")):  # wrong usage: typer's own one-line message
            _stop(f"{error.format_message()}; see: protoscore --help")  # type: ignore[attr-defined]
        traceback.print_exc()  # a bug of ours; 2 all the same, since 1 is the answer "worse"
        raise SystemExit(2) from error


def _stop(message: str) -> None:
    print(f"protoscore: {' '.join(message.split())}", file=sys.stderr)
    raise SystemExit(2)
