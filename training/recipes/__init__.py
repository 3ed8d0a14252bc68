"""Recipes: YAML files with everything that a training run needs. Any key can be overridden on the command line."""

from __future__ import annotations

from pathlib import Path

from protoscore.errors import ConfigError

FOLDER = Path(__file__).parent


def recipe_to_config(arguments: list[str]) -> list[str]:
    """``--recipe name`` as the parser's ``--config path``.

    Raises:
        ConfigError: no such recipe.
    """
    if "--recipe" not in arguments:
        return arguments
    at = arguments.index("--recipe")
    name = arguments[at + 1] if at + 1 < len(arguments) else ""
    path = Path(name) if name.endswith((".yaml", ".yml")) else FOLDER / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in FOLDER.glob("*.yaml")))
        raise ConfigError(f"no recipe {name!r}; known: {known}, or give the path of a YAML file")
    return [*arguments[:at], "--config", str(path), *arguments[at + 2 :]]
