"""The README does what it says: its commands and code run in order, and every command of the pages is one that exists."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from protoscore.cli import app, main
from tests.conftest import ROOT

# A command of the README that is not run here, and where it is.
ELSEWHERE = {
    "git": "needs a remote",
    "make": "the Makefile's own targets; .ci/run runs test and check",
    "source": "the suite has its environment",
    "accelerate": "needs the 4B weights; tests/training runs the same recipes at tiny size",
}
SMALLER = {"--triplets 500": "--triplets 40", "--limit 100": "--limit 8"}  # the same commands on less


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def commands(page: Path) -> list[str]:
    """The command lines of a page, without comments, continued lines joined."""
    text = "\n".join(block for language in ("console", "bash") for block in blocks(page, language)).replace("\\\n", " ")
    lines = [line.removeprefix("$ ").strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def words(command: str) -> list[str]:
    return shlex.split(command, comments=True)


@pytest.fixture
def newcomer(tmp_path, monkeypatch) -> Path:
    """An empty folder beside the repository's scripts: all else is made by the README's own lines."""
    for name in ("dataset_scripts", "evaluate_modules", "training"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: str) -> None:
    for usual, smaller in SMALLER.items():
        command = command.replace(usual, smaller)
    program, *arguments = words(command)
    if program == "protoscore":
        call_main(arguments)
        return
    assert program == "python", f"the README has a command that nobody runs: {command}"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    result = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, f"{command}\n{result.stderr}"


def call_main(arguments: list[str]) -> None:
    """The command line in this process: starting one for each command would only import the same again."""
    before, sys.argv = sys.argv, ["protoscore", *arguments]
    try:
        main()
    except SystemExit as end:
        assert end.code in (0, None), f"protoscore {shlex.join(arguments)} ended with {end.code}"
    finally:
        sys.argv = before


def test_the_readme_runs(newcomer):
    """Sections in their order, commands before code, as a newcomer would."""
    readme = ROOT / "README.md"
    done = []
    for command in commands(readme):
        if words(command)[0] in ELSEWHERE:
            continue
        run(command)
        done.append(command)
    assert len(done) >= 8
    for code in blocks(readme, "python"):
        exec(compile(code, "README.md", "exec"), {})


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.stem)
def test_every_command_of_a_page_exists(page, monkeypatch, tmp_path):
    """Parsed by the program's own parser: a command or an option that does not exist, or is misspelled, is an error."""
    program = typer.main.get_command(app)
    monkeypatch.chdir(tmp_path)
    for command in commands(page):
        line = words(command)
        if line[0] in ELSEWHERE or "protoscore" not in line:
            continue
        name, *arguments = line[line.index("protoscore") + 1 :]
        subcommand = program.commands[name]  # type: ignore[attr-defined]
        assert subcommand.make_context(name, arguments).params


def test_the_page_of_the_commands_says_what_the_commands_say():
    made = runpy.run_path(str(ROOT / "docs" / "make_cli.py"))
    assert made["PAGE"].read_text(encoding="utf-8") == made["page"](), "docs/cli.md is stale; run: make docs"


def test_every_link_leads_somewhere():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "training" / "README.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
