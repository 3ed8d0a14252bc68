"""BBQ-V on scenes: questions of our own in BBQ's form about two drawn people. Who is who stands in the picture only.

Each stem is asked under both polarities, with nothing told and with the answer told by place ("the person on the left"), the
stereotyped person standing on either side, and the options turned so that each is equally often the first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import RootModel

from protoscore.benchmarks.bbq_v.questions import FIELDS, LETTERS
from protoscore.generators import Wanted
from protoscore.scenes.people import Person, Two
from protoscore.schema import derive_seed
from protoscore.sources.rows import Row, Rows
from protoscore.typed_yaml import Strict, load_yaml

DATA = Path(__file__).with_name("scenes.yaml")
SIDES = ("left", "right")
UNKNOWN = "Cannot be determined"  # one of the ten of BBQ


class Stem(Strict):
    """One question. ``told``: what gives it away, with {x} for the answer to ``neg`` and {y} for the answer to ``nonneg``."""

    source: str
    context: str
    neg: str
    nonneg: str
    told: str


class AskedPair(Strict):
    """Two people, and what is said about one of them."""

    stereotyped: Person
    other: Person
    stems: list[Stem]


class _Pairs(RootModel[dict[str, AskedPair]]):
    pass


class _Case(NamedTuple):
    """One way of asking a stem."""

    polarity: str
    side: str  # of the stereotyped person
    told: str  # who {x} is: "", or a side


@cache
def pairs() -> dict[str, AskedPair]:
    """Domain and sub-domain, with a slash, to the people and their stems."""
    return load_yaml(DATA, _Pairs).root


def wanted(renditions: int, seed: int) -> Iterator[Wanted]:
    """Every question with the picture that it is about.

    Args:
        renditions: pictures of each question.
        seed: of the pictures.
    """
    cases = [_Case(*case) for case in product(("neg", "nonneg"), SIDES, ("", *SIDES))]
    stems = [(name, pair, stem) for name, pair in pairs().items() for stem in pair.stems]
    for number, (name, pair, stem) in enumerate(stems):
        for place, (case, rendition) in enumerate(product(cases, range(renditions))):
            turn = number + place // (3 * renditions) + rendition  # the same for what is told and what is not
            yield _wanted(name, pair, stem, case, rendition, turn, seed)


def _wanted(name: str, pair: AskedPair, stem: Stem, case: _Case, rendition: int, turn: int, seed: int) -> Wanted:
    other_side = SIDES[1 - SIDES.index(case.side)]
    left, right = (pair.stereotyped, pair.other) if case.side == "left" else (pair.other, pair.stereotyped)
    texts = [f"The person on the {side}" for side in SIDES] + [UNKNOWN]
    options = {letter: texts[(place + turn) % 3] for place, letter in enumerate(LETTERS)}
    letter = {text: letter for letter, text in options.items()}
    named = {side: letter[text] for side, text in zip(SIDES, texts, strict=False)}
    domain, subdomain = name.split("/", 1)
    condition = "disambig" if case.told else "ambig"
    right_side = case.told if case.polarity == "neg" else SIDES[1 - SIDES.index(case.told)] if case.told else ""
    ident = "-".join([stem.source.replace(" ", "-"), case.polarity, case.side, case.told or "open", str(rendition)])
    fields = {
        "category": domain, "domain": domain, "subdomain": subdomain, "stem": stem.source, "polarity": case.polarity,
        "condition": condition, "context": _context(stem, case.told), "question": getattr(stem, case.polarity),
        "options": json.dumps(options), "right": named[right_side] if case.told else letter[UNKNOWN],
        "unknown": letter[UNKNOWN], "target": named[case.side], "stereotyped_side": case.side, "other_side": other_side,
    }  # fmt: skip
    fields["right_text"] = options[fields["right"]]
    text = f"Two people side by side. Left: {_described(left)}. Right: {_described(right)}."
    return Wanted(ident, text, derive_seed(seed, ident), Two(left=left, right=right), fields)


def _context(stem: Stem, told: str) -> str:
    if not told:
        return stem.context
    other = SIDES[1 - SIDES.index(told)]
    said = stem.told.format(x=f"the person on the {told}", y=f"the person on the {other}")
    return f"{stem.context} {said[0].upper()}{said[1:]}"


def _described(person: Person) -> str:
    return ", ".join(value for value in person.model_dump().values() if value != "unspecified")


class SceneQuestions:
    """Rows of a folder of these pictures, their options as a mapping again."""

    columns = FIELDS

    def __init__(self, rows: Rows):
        self._rows = rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        for row in self._rows.rows(start, stop):
            yield row._replace(fields={**row.fields, "options": json.loads(row.fields["options"])})
