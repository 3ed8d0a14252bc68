"""A repository's card: the metadata at the top of its README.md, typed, and a text without an open field."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from protoscore.errors import ConfigError

OPEN_FIELD = re.compile(
    r"\{\{|\{%|\bTODO\b|\bFIXME\b|\bXXX\b|\[More Information Needed\]|\[Needs More Information\]|\bLorem ipsum\b"
)
BIBTEX = re.compile(r"^```bibtex\n.*?^```", re.DOTALL | re.MULTILINE)  # doubled braces are ordinary there
FRONT = re.compile(r"\A---\r?\n(.*?)\r?\n---\r?\n(.*)\Z", re.DOTALL)

Text = Annotated[str, Field(min_length=1)]
Names = Annotated[list[Text], BeforeValidator(lambda value: [value] if isinstance(value, str) else value), Field(min_length=1)]


class Metadata(BaseModel):
    """What every card says. The Hub knows more keys; they pass as they are."""

    model_config = ConfigDict(extra="allow", frozen=True)

    license: Names
    license_name: Text | None = None
    license_link: Text | None = None
    tags: Names

    @model_validator(mode="after")
    def _own_licence_is_named(self) -> Metadata:
        if "other" in self.license and not (self.license_name and self.license_link):
            raise ValueError("license 'other' needs license_name and license_link")
        return self

    @property
    def gated(self) -> bool:
        """Whether the card asks readers to agree to something first."""
        return any(key.startswith("extra_gated_") for key in self.model_extra or {})


class DataFiles(BaseModel):
    model_config = ConfigDict(frozen=True)

    split: Text
    path: Names  # glob patterns


class Config(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)

    config_name: Text
    data_files: Annotated[list[DataFiles], Field(min_length=1)]
    default: bool = False


class Split(BaseModel):
    """All three, or the library ignores the splits with a warning to every user."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: Text
    num_examples: int
    num_bytes: int


class Info(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)

    config_name: Text = "default"
    features: Annotated[list[dict[str, Any]], Field(min_length=1)]
    splits: Annotated[list[Split], Field(min_length=1)]


Infos = Annotated[list[Info], BeforeValidator(lambda value: [value] if isinstance(value, dict) else value)]


class DatasetMetadata(Metadata):
    pretty_name: Text
    language: Names
    task_categories: Names
    size_categories: Names
    configs: Annotated[list[Config], Field(min_length=1)]
    dataset_info: Infos


class ModelMetadata(Metadata):
    library_name: Text
    pipeline_tag: Text
    language: Names
    base_model: Names | None = None


class SpaceMetadata(Metadata):
    title: Text
    sdk: Literal["gradio", "docker", "static"]
    sdk_version: Text | None = None
    app_file: Text | None = None


class Card(NamedTuple):
    metadata: dict[str, Any]
    text: str


Model = TypeVar("Model", bound=Metadata)


def read_card(folder: Path) -> Card:
    """``README.md`` of ``folder``, taken apart.

    Raises:
        ConfigError: it is missing, has no metadata, an empty key, no text, or a field that nobody filled.
    """
    path = folder / "README.md"
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: a card is needed and cannot be read ({error}); write it first") from error
    found = FRONT.match(content)
    if not found:
        raise ConfigError(f"{path}: no metadata; a card starts with a block of YAML between two lines of ---")
    head, text = found.groups()
    try:
        metadata = yaml.safe_load(head)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ConfigError(f"{path}:{mark.line + 2 if mark else 1}: {getattr(error, 'problem', None) or error}") from error
    if not isinstance(metadata, dict):
        raise ConfigError(f"{path}: the metadata is not a mapping of keys to values")
    for key, value in metadata.items():
        if value is None or value == "":
            raise ConfigError(f"{path}: {key} is empty; fill it or leave it out")
    _refuse_open_fields(path, content)
    if not re.search(r"^# \S", text, re.MULTILINE):
        raise ConfigError(f"{path}: the card has no heading and so no text; say what this is")
    return Card(metadata, text)


def typed(folder: Path, card: Card, model: type[Model]) -> Model:
    """The metadata of ``card`` as ``model``.

    Raises:
        ConfigError: a key is missing or of another kind.
    """
    try:
        return model.model_validate(card.metadata)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "metadata"
        missing = f"{where} is missing" if first["type"] == "missing" else f"{where}: {first['msg']}"
        raise ConfigError(f"{folder / 'README.md'}: {missing}") from error


def _refuse_open_fields(path: Path, content: str) -> None:
    blanked = BIBTEX.sub(lambda block: "\n" * block.group().count("\n"), content)
    found = OPEN_FIELD.search(blanked)
    if found:
        line = blanked.count("\n", 0, found.start()) + 1
        raise ConfigError(f"{path}:{line}: {found.group()!r} is a field that nobody filled")
