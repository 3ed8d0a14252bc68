"""Recipes: YAML files with everything that a training run needs. Any key can be overridden on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from protoscore.errors import ConfigError, UnknownName, first_line


def parse(kinds: tuple[type, ...], arguments: list[str], folder: Path) -> tuple[Any, ...]:
    """One filled dataclass of each of ``kinds``, from a recipe and what the command line overrides.

    Raises:
        ConfigError: no such recipe or setting, or settings that do not go together on this machine.
    """
    from trl import TrlParser

    try:
        return TrlParser(kinds).parse_args_and_config(args=recipe_to_config(arguments, folder))
    except ValueError as error:  # of the dataclasses: their messages say what is wrong
        no_gpu = "bf16 needs a GPU that has it; on a CPU add: --use_cpu true"
        raise ConfigError(no_gpu if "use_cpu" in str(error) else first_line(error)) from error


def recipe_to_config(arguments: list[str], folder: Path) -> list[str]:
    """``--recipe NAME`` or ``--recipe=NAME`` as the parser's ``--config PATH``; a NAME is a file of ``folder``, or a path.

    Raises:
        UnknownName: no recipe of that name.
        ConfigError: no file at that path.
    """
    found: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        option, equals, name = argument.partition("=")
        if option != "--recipe":
            found.append(argument)
            continue
        path = recipe_path(name if equals else next(rest, ""), folder)
        found += ["--config", str(path)]
    return found


def recipe_path(name: str, folder: Path) -> Path:
    """The file of the recipe ``name``, which may be a path itself."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else folder / f"{name}.yaml"
    if path.is_file():
        return path
    if path == Path(name):
        raise ConfigError(f"there is no recipe {name}")
    raise UnknownName("recipe", name, (p.stem for p in folder.glob("*.yaml")))
