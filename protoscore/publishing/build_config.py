"""What the script of a dataset is told: a typed YAML file, what is typed beside it, and components by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationError

from protoscore.catalog import load
from protoscore.errors import ConfigError, ProtoscoreError
from protoscore.typed_yaml import Strict, load_yaml

Model = TypeVar("Model", bound=BaseModel)


class Component(Strict):
    """A component by name, with its options."""

    name: str
    options: dict[str, Any] = {}

    def make(self, kind: str) -> Any:
        return load(kind, self.name, **self.options)

    def but(self, name: str | None, options: Mapping[str, Any]) -> Component:
        """With these options too, or another component with these alone."""
        same = name in (None, self.name)
        return Component(name=name or self.name, options=(self.options if same else {}) | dict(options))


Named = Annotated[Component, BeforeValidator(lambda value: {"name": value} if isinstance(value, str) else value)]


def read_config(model: type[Model], path: Path | None) -> Model:
    """A configuration file, or the defaults without one.

    Raises:
        ConfigError: the message starts with file and line.
    """
    return load_yaml(path, model) if path else model()


def changed(config: Model, given: Mapping[str, Any]) -> Model:
    """``config`` with what was typed on the command line.

    Raises:
        ConfigError: a value that the configuration does not take.
    """
    try:
        return type(config).model_validate(dict(config) | dict(given))
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"--{str(first['loc'][0]).replace('_', '-')}: {first['msg']}; see --help") from error


def read_text(path: Path) -> str:
    """The text of a file that a configuration names.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read ({error}); give the path of a text file") from error


def run_script(build: Callable[[list[str]], None], arguments: list[str]) -> int:
    """Run a dataset script; a user's mistake is one line and exit code 2."""
    try:
        build(arguments)
    except ProtoscoreError as error:
        print(f"build: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("build: stopped; the same command goes on from here", file=sys.stderr)
        return 2
    return 0
