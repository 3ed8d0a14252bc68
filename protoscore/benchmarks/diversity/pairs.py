"""Pairs of a concept and an attribute: what is drawn, and in what it may vary.

Two lists come along, and both are the project's own (the paper's is not public but for six of its pairs, which are among ours):
``photos`` (``prompts.csv``, 86 pairs over food and drink, nature and human-made objects, no people) and ``scenes``
(``scene_prompts.csv``, 40 pairs that scenes can show). Another list is a table with the same columns: ``concept``,
``attribute``, ``values`` (with semicolons) and ``prompt``, and perhaps ``id`` and ``group``.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from protoscore.errors import DatasetError
from protoscore.folder import write_text
from protoscore.scenes.alone import Open
from protoscore.sources.pictures import refuse
from protoscore.sources.tables import read_table, text_of

LISTS = {"photos": "prompts.csv", "scenes": "scene_prompts.csv"}
NEEDED = ("concept", "attribute", "values", "prompt")


class ConceptPair(NamedTuple):
    """A concept and one of its attributes."""

    id: str
    concept: str
    attribute: str
    group: str
    values: tuple[str, ...]
    prompt: str
    spec: Open | None = None  # where scenes can show it

    def fields(self) -> dict[str, str]:
        """What stands beside each of its pictures."""
        return {
            "pair": self.id, "concept": self.concept, "attribute": self.attribute, "group": self.group,
            "values": json.dumps(self.values),
        }  # fmt: skip


def read_pairs(name: str | Path) -> list[ConceptPair]:
    """The pairs of a list that comes along, or of a table.

    Raises:
        DatasetError: it is neither, lacks a column, or a line is none.
    """
    own = LISTS.get(str(name))
    path = Path(str(files("protoscore.benchmarks.diversity") / own)) if own else Path(name)
    lines = read_table(path, "" if own else "pairs")
    missing = [column for column in NEEDED if column not in lines[0].values]
    if missing:
        held = ", ".join(lines[0].values)
        raise DatasetError(f"{path} has no column {missing[0]!r}; pairs need {', '.join(NEEDED)}, and it has: {held}")
    pairs = [_pair(path, line.number, line.values) for line in lines]
    seen: set[str] = set()
    refuse([p.id for p in pairs if p.id in seen or seen.add(p.id)], "{} pair(s) of " + f"{path} are given twice")  # type: ignore[func-returns-value]
    return pairs


def write_pairs(path: Path, pairs: Sequence[ConceptPair]) -> None:
    """Write pairs as a table that :func:`read_pairs` reads."""
    text = io.StringIO()
    writer = csv.DictWriter(text, ("id", *NEEDED, "group", "things", "places"), lineterminator="\n")
    writer.writeheader()
    for pair in pairs:
        shown = {"things": pair.spec.things, "places": pair.spec.places} if pair.spec else {}
        lists = {name: "; ".join(some) for name, some in {"values": pair.values, **shown}.items()}
        writer.writerow({**{name: getattr(pair, name) for name in ("id", "concept", "attribute", "group", "prompt")}, **lists})
    write_text(path, text.getvalue())


def _pair(path: Path, number: int, values: Mapping[str, Any]) -> ConceptPair:
    where = f"{path}, line {number}"
    told = {name: text_of(value, f"{where}: {name}").strip() for name, value in values.items()}
    listed = {name: tuple(part.strip() for part in told.get(name, "").split(";") if part.strip()) for name in _LISTED}
    empty = next((name for name in NEEDED if not told[name]), None)
    if empty or len(set(listed["values"])) < 2 or len(set(listed["values"])) < len(listed["values"]):
        raise DatasetError(
            f"{where}: {f'{empty} is empty' if empty else 'values must be two or more, each once, with semicolons'}"
        )
    name = told.get("id") or f"{told['concept']}-{told['attribute']}".replace(" ", "_")
    if "/" in name or name.startswith("."):
        raise DatasetError(f"{where}: the id {name!r} cannot be the name of a folder; write one without '/'")
    try:
        things, places = listed["things"], listed["places"]
        spec = Open(attribute=told["attribute"], values=listed["values"], things=things, places=places) if things else None  # type: ignore[arg-type]
    except ValidationError as error:
        raise DatasetError(f"{where}: {error.errors()[0]['msg']}") from error
    return ConceptPair(name, told["concept"], told["attribute"], told.get("group", ""), listed["values"], told["prompt"], spec)


_LISTED = ("values", "things", "places")
