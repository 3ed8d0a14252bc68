"""What a picture shows by its dataset, in the labels that a judge was asked with; its columns are data (``truth.yaml``).

A reference is read in the finest set of labels that the protocols have, and told in the asked set: as it is where that has
it, else by its coarser name (East Asian as Asian), else it keeps its fine name, and no answer is right about it. What no
set knows is ``unknown``: it is counted, shown, and left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import RootModel

from protoscore.asking.labels import Spelling, fold
from protoscore.asking.protocol import load_protocol
from protoscore.errors import ConfigError, UnknownName
from protoscore.typed_yaml import Strict, load_yaml

DATA = Path(__file__).with_name("truth.yaml")
KINDS = ("depicted", "intended")  # what this picture can show, and what its prompt asked for; the first that is there is used


class Attribute(Strict):
    """How one attribute is found in datasets."""

    protocol: str
    finest: str
    columns: list[str]
    spellings: dict[str, list[str]] = {}
    coarser: dict[str, str] = {}


class _Attributes(RootModel[dict[str, Attribute]]):
    pass


class Truth(NamedTuple):
    """References of one attribute, in the labels of one set."""

    column: str
    labels: NDArray[np.object_]  # (rows,); None where the dataset says nothing that is known
    offered: NDArray[np.bool_]  # (rows,) whether the set has that label; also where there is none
    not_offered: dict[str, int]  # labels that the set lacks -> rows
    unknown: dict[str, int]  # what the column holds that is no label of any set -> rows


@cache
def attributes() -> Mapping[str, Attribute]:
    """Every attribute that a dataset may state, by the name of the answer's field."""
    return load_yaml(DATA, _Attributes).root


@cache
def _spelling(attribute: str) -> Spelling:
    """The finest labels with every spelling that the protocol or a dataset has for them."""
    about = attributes()[attribute]
    protocol = load_protocol(f"fairjudge/{about.protocol}:{about.finest}")
    more: dict[str | None, str] = {other: label for label, others in about.spellings.items() for other in others}
    return Spelling(
        f"truth.yaml, {attribute}", protocol.fields[attribute].labels, {**protocol.aliases.get(attribute, {}), **more}
    )


def finest(attribute: str, value: Any) -> str | None:
    """The finest label that ``value`` spells; None where it spells none."""
    found = _spelling(attribute).find(str(value)) if attribute in attributes() else None
    return None if found is None else str(found[0])


def told(attribute: str, label: str, labels: Collection[str]) -> str:
    """A fine label in the words of a set: itself, its coarser name, or itself where the set has neither."""
    coarse = attributes()[attribute].coarser.get(label, label) if attribute in attributes() else label
    return label if label in labels or coarse not in labels else coarse


def labels_of(attribute: str, name: str) -> tuple[str, ...] | None:
    """The labels of an attribute in a set of the protocols, e.g. ``short``; None for an attribute that the set leaves alone.

    Raises:
        UnknownName: no protocol has such a set.
    """
    known = {other.protocol: set_names(other.protocol) for other in attributes().values()}
    if not any(name in names for names in known.values()):
        raise UnknownName("set of labels", name, [one for names in known.values() for one in names])
    about = attributes().get(attribute)
    if about is None or name not in known[about.protocol]:
        return None
    return tuple(map(str, load_protocol(f"fairjudge/{about.protocol}:{name}").fields[attribute].labels))


def set_names(protocol: str) -> tuple[str, ...]:
    """The sets of labels that a protocol of FairJudge has."""
    path = Path(__file__).parent / "protocols" / f"{protocol}.yaml"
    return tuple(yaml.safe_load(path.read_text(encoding="utf-8")))


def column_of(attribute: str, columns: Collection[str], wanted: str = "") -> str | None:
    """The column that states an attribute, None where there is none.

    Args:
        wanted: ``depicted``, ``intended``, a column's name, or empty for the first that is there of depicted, intended, plain.

    Raises:
        UnknownName: ``wanted`` names a column that is not there.
    """
    names = attributes()[attribute].columns if attribute in attributes() else [attribute]
    if wanted and wanted not in KINDS:
        if wanted not in columns:
            raise UnknownName(f"column for {attribute}", wanted, columns)
        return wanted
    tried = [f"{kind}_{name}" for kind in ([wanted] if wanted else KINDS) for name in names] + ([] if wanted else names)
    return next((name for name in tried if name in columns), None)


def read_truth(attribute: str, column: str, values: Sequence[Any], labels: Collection[str]) -> Truth:
    """The references of a column in the labels of a set, the abstention included.

    Raises:
        ConfigError: not one value of the column is a label of any set.
    """
    fine = [None if value in (None, "") else finest(attribute, value) for value in values]
    stated = [str(value) for value in values if value not in (None, "")]
    own = {fold(label): label for label in labels}
    found = np.array(
        [
            None if value in (None, "") else own.get(fold(str(value))) or (told(attribute, name, labels) if name else None)
            for value, name in zip(values, fine, strict=True)
        ],
        object,
    )
    unknown = Counter(str(v) for v, label in zip(values, found, strict=True) if label is None and v not in (None, ""))
    if stated and sum(unknown.values()) == len(stated):
        shown = ", ".join(map(repr, list(unknown)[:3]))
        raise ConfigError(
            f"the column {column!r} holds no label of {attribute} (it has {shown:.99}); name one: --truth {attribute}=COLUMN"
        )
    offered = np.array([label is None or label in labels for label in found], bool)
    lacking = Counter(str(label) for label in found[~offered])
    return Truth(column, found, offered, dict(sorted(lacking.items())), dict(unknown.most_common()))


def group_values(attribute: str, values: Sequence[Any]) -> NDArray[np.object_]:
    """Demographic groups of rows: the finest label, the value itself where it is none; None where nothing is stated.

    "unspecified" is no group: whoever was not specified has nothing in common.
    """
    known = attributes().get(attribute)
    groups = [None if value in (None, "") else str(value) for value in values]
    if known is not None:
        groups = [None if value is None else finest(attribute, value) or value for value in groups]
    return np.array([None if value == "unspecified" else value for value in groups], object)
