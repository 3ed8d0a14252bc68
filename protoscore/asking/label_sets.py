"""Closed sets of labels as data: in a YAML file beside a prompt, by name, or in a field of the item that is asked about.

``attributes.yaml`` beside ``attributes.md`` holds one or more named sets; the first is meant where none is named::

    short:
      abstention: {unspecified: [unknown, "N/A", null]}  # a label, its other spellings; null is JSON's null
      fields:
        gender: {male: [man, boy], female: [woman, girl]}
        answer: options                                  # the labels are the values of the item's field ``options``

The abstention is the last label of each field. Labels that come from an item may hold it already, under any of its spellings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import RootModel

from protoscore.asking.labels import fold
from protoscore.errors import ConfigError, DatasetError, UnknownName
from protoscore.typed_yaml import Strict, load_yaml

Spellings = dict[str, list[str | None] | None]  # label -> other spellings
Aliases = Mapping[str | None, Any]


class _Set(Strict):
    fields: dict[str, Spellings | str]
    abstention: Spellings = {}


class _Sets(RootModel[dict[str, _Set]]):
    pass


class LabelSet(NamedTuple):
    """One named set, by field."""

    name: str = ""  # empty for the first of the file
    labels: Mapping[str, tuple[str, ...]] = {}
    abstains: Mapping[str, tuple[str, ...]] = {}
    aliases: Mapping[str, Aliases] = {}
    from_item: Mapping[str, str] = {}  # field -> the item's field that holds its labels


def read_label_set(path: Path, name: str = "") -> LabelSet:
    """The set called ``name`` of a YAML file, or its first one.

    Raises:
        ConfigError: the file is not such a file.
        UnknownName: it holds no set of that name.
    """
    sets = load_yaml(path, _Sets).root
    if not sets:
        raise ConfigError(f"{path} holds no set of labels; see protoscore/asking/label_sets.py for its form")
    if name and name not in sets:
        raise UnknownName(f"set of labels of {path.stem}", name, sets)
    first = next(iter(sets))
    chosen = sets[name or first]
    own = {field: spelled for field, spelled in chosen.fields.items() if not isinstance(spelled, str)}
    untold = _aliases(chosen.abstention)
    return LabelSet(
        "" if name == first else name,
        {field: (*spelled, *chosen.abstention) for field, spelled in own.items()},
        dict.fromkeys(chosen.fields, tuple(chosen.abstention)) if chosen.abstention else {},
        {field: _aliases(own.get(field, {})) | untold for field in chosen.fields},
        {field: column for field, column in chosen.fields.items() if isinstance(column, str)},
    )


def _aliases(spelled: Spellings) -> dict[str | None, str]:
    return {spelling: label for label, others in spelled.items() for spelling in others or ()}


def labels_of_item(
    where: str, value: Any, abstains: tuple[Any, ...], aliases: Aliases
) -> tuple[tuple[str, ...], tuple[str, ...], dict[str | None, str]]:
    """Labels, abstention and aliases of a field whose labels an item holds.

    Args:
        value: a list of labels, a mapping of labels to their texts (which are other spellings), or either as JSON text.
        abstains, aliases: of the protocol. One of the item's labels that is spelled like the abstention is the abstention;
            when none is, the protocol's own is added.

    Raises:
        DatasetError: the value is not such a list, or has fewer than two labels.
    """
    options = _options(where, value)
    withheld: list[str] = []
    stand_in: dict[str, str] = {}  # abstention -> the label that stands for it here
    for label in abstains:
        spelled = {fold(label)} | {fold(text) for text, meant in aliases.items() if text and meant == label}
        own = [option for option, text in options.items() if fold(option) in spelled or fold(text) in spelled] or [label]
        withheld += own
        stand_in[label] = own[0]
    labels = (*options, *(label for label in withheld if label not in options))
    found: dict[str | None, str] = {text: label for label, text in options.items() if fold(text) != fold(label)}
    found |= {f"{label}. {text}": label for text, label in [*found.items()] if text}  # the option as it was shown
    for spelling, label in [*((text, text) for text in abstains), *aliases.items()]:
        if label in abstains and not (spelling and fold(spelling) in {fold(known) for known in (*labels, *found) if known}):
            found[spelling] = stand_in[label]
    return labels, tuple(withheld), found


def _options(where: str, value: Any) -> dict[str, str]:
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        with suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, Mapping):
        options = {str(label): str(text) for label, text in value.items() if text is not None}
    elif isinstance(value, (list, tuple)):
        options = {str(label): str(label) for label in value}
    else:
        options = {}
    if len(options) < 2 or len({fold(label) for label in options}) < len(options):
        raise DatasetError(f"{where} must hold two or more different labels, as a list or as a mapping of labels to texts")
    return options
