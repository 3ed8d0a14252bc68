"""One subcommand a stage. No logic: parse, call, print."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from protoscore import __version__
from protoscore.cli import components, diversity, embedding, judging, making, publishing, reporting, scoring
from protoscore.errors import ConfigError, ProtoscoreError


class _Commands(TyperGroup):
    """All commands. An option that takes one value is refused where it is given twice: the last one would win silently."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if command:
            own = command.make_context(name, list(rest), parent=ctx, resilient_parsing=True)
            *_, order = command.make_parser(own).parse_args(list(rest))
            for parameter in order:
                if order.count(parameter) > 1 and not parameter.multiple and parameter.nargs == 1:
                    raise ConfigError(
                        f"{parameter.opts[0]} is given twice, and takes one value; see: {own.command_path} --help"
                    )
        return name, command, rest


app = typer.Typer(
    add_completion=False, cls=_Commands, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Can I trust this text-to-image metric? Start with: protoscore score DATASET --scorer protoscore --out RUN",
)  # fmt: skip
for part in (making, scoring, embedding, judging, diversity, reporting, publishing, components):
    app.add_typer(part.app)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version or context.invoked_subcommand is None:
        print(f"protoscore {__version__}" if version else context.get_help())
        raise typer.Exit


def main() -> None:
    """Run the CLI: a user's error is one line and exit code 2; Ctrl-C says how to go on."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")  # what other libraries note is not what was asked
    if not sys.stderr.isatty():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    try:
        code = app(prog_name="protoscore", standalone_mode=False)
        if code == 130:  # how typer hands over Ctrl-C
            raise KeyboardInterrupt
        raise SystemExit(code or 0)
    except ProtoscoreError as error:
        _stop(str(error))
    except (typer.Abort, KeyboardInterrupt):
        _stop("stopped; what is finished is kept, and the same command goes on from here")
    except Exception as error:
        if type(error).__module__.startswith(("click", "typer")):  # wrong usage: typer's own one-line message
            _stop(_usage(error))
        traceback.print_exc()  # a bug of ours; 2 all the same, since 1 is the answer "worse"
        raise SystemExit(2) from error


def _usage(error: Any) -> str:
    """What is wrong with a command line, and the help to look at: the command's own, where one was named."""
    command = error.ctx.command_path if error.ctx else "protoscore"
    return f"{error.format_message().rstrip('.')}; see: {command} --help"


def _stop(message: str) -> None:
    print(f"protoscore: {' '.join(message.split())}", file=sys.stderr)
    raise SystemExit(2)
