"""YAML files read into pydantic models, with file and line in every complaint."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from protoscore.errors import ConfigError

Model = TypeVar("Model", bound=BaseModel)


class Strict(BaseModel):
    """Base of all configuration: immutable, and an unknown key is an error and not a silent no-op."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _UniqueKeyLoader(yaml.SafeLoader):
    """Safe loader that refuses a key given twice (plain YAML keeps the last one without a word)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen: set = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is given twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def load_yaml(path: str | Path, model: type[Model]) -> Model:
    """Read ``path`` into ``model``.

    Raises:
        ConfigError: the file is missing, is no YAML, or breaks the schema; the message starts with ``file:line``.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}); give the path of a YAML file") from error
    try:
        data = yaml.load(text, Loader=_UniqueKeyLoader)  # noqa: S506 - it is a SafeLoader
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = mark.line + 1 if mark else 1
        raise ConfigError(f"{path}:{line}: {getattr(error, 'problem', None) or error}") from error
    try:
        return model.model_validate(data)
    except ValidationError as error:
        # An unknown key explains the missing one that it was meant to be, so it is named first.
        first = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
        what = "unknown key" if first["type"] == "extra_forbidden" else first["msg"]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise ConfigError(f"{path}:{_line_of(root, first['loc'])}: {where}: {what}{more}") from error


def _line_of(node: yaml.Node | None, loc: tuple) -> int:
    """Line (from 1) of the deepest node of the document that ``loc`` leads to."""
    line = node.start_mark.line + 1 if node else 1
    for part in loc:
        if isinstance(node, yaml.MappingNode):
            found = [(key, value) for key, value in node.value if key.value == str(part)]
            if not found:
                break
            line, node = found[0][0].start_mark.line + 1, found[0][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            break
    return line
