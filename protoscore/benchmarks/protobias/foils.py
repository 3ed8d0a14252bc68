"""What a foil shows in place of one noun: another thing, another place, or a subject that the text's hypernym does not name."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from protoscore.benchmarks.protobias.schema import Knob
from protoscore.benchmarks.protobias.taxonomy import Contrast, Taxonomy, extra_noun


class Others(NamedTuple):
    """Taxonomy keys that stand in for those of a triplet."""

    extra: str
    environment: str
    non_subject: str
    proto_subject: str


def others(
    taxonomy: Taxonomy, contrast: Contrast, knob: Knob, value: str, extra: str, environment: str,
    rng: random.Random, refuses: Callable[[str], str | None] = lambda subject: None,
) -> Others | None:  # fmt: skip
    """One choice of each; None where the taxonomy has nothing else for one of them.

    The other thing may stand in the same place and can take the same value; the other place may hold the same thing. The
    other subjects are an unusual and a typical one of a category that has no member in common with the text's.
    """
    things = [
        name for name in _extras(taxonomy, contrast, knob, value, environment) if not _alike(taxonomy, contrast, name, extra)
    ]
    places = [place for place in _environments(taxonomy, contrast, extra) if place != environment]
    kinds = [
        [[key for key in keys if not refuses(key)] for keys in (sub.non_prototypes, sub.prototypes)]
        for sub in taxonomy.strangers(contrast)
    ]
    kinds = [pair for pair in kinds if all(pair)]
    if not (things and places and kinds):
        return None
    return Others(rng.choice(things), rng.choice(places), *map(rng.choice, rng.choice(kinds)))


def _extras(taxonomy: Taxonomy, contrast: Contrast, knob: Knob, value: str, environment: str) -> list[str]:
    """What can stand there and take that value."""
    found = []
    for name in contrast.extras:
        extra = taxonomy.extra(contrast.domain, name)
        stands = not extra.environments or environment in extra.environments
        if stands and any(value in pair for pair in taxonomy.value_pairs(knob, extra)):
            found.append(name)
    return found


def _alike(taxonomy: Taxonomy, contrast: Contrast, first: str, second: str) -> bool:
    """Whether one noun also names the other thing, as "tree" names a pine tree."""
    a, b = (extra_noun(name, taxonomy.extra(contrast.domain, name), 1) for name in (first, second))
    return f" {a}".endswith(f" {b}") or f" {b}".endswith(f" {a}")


def _environments(taxonomy: Taxonomy, contrast: Contrast, extra: str) -> list[str]:
    """Where the thing may stand; of the contrast's own places where there are two, else of its whole subcategory."""
    allowed = taxonomy.extra(contrast.domain, extra).environments
    for places in (contrast.environments, taxonomy.environments_of(contrast)):
        fitting = [place for place in places if not allowed or place in allowed]
        if len(fitting) > 1:
            return fitting
    return []
