"""Write ``docs/cli.md`` from the commands themselves: ``make docs``."""

from __future__ import annotations

from pathlib import Path

import typer
from typer.main import get_command

from protoscore.cli import app

PAGE = Path(__file__).with_name("cli.md")
HEAD = """\
# The command line

Written by `make docs` from the commands themselves; a test says when it is stale. Where something is wrong, each of them stops
with one line and exit code 2.
"""


def page() -> str:
    """The whole page."""
    program = get_command(app)
    root = typer.Context(program, info_name="protoscore")
    commands = program.commands.items()  # type: ignore[attr-defined]
    return "\n".join([HEAD, *(section(name, typer.Context(command, root, name)) for name, command in commands)])


def section(name: str, context: typer.Context) -> str:
    """One command: what it does, how it is typed, and a table of its arguments and options."""
    command = context.command
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    lines = [f"## {name}", "", (command.help or "").strip(), "", "```", usage, "```", "", "| | |", "|---|---|"]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record and "--help" not in parameter.opts:
            names, said = (text.replace("|", "\\|") for text in record)
            lines.append(f"| `{names.strip('* ')}` | {' '.join(said.split())} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
