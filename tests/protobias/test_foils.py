"""Foils differ from their right picture in one noun, in the text and in the scene; the example metric reads nouns alone."""

from __future__ import annotations

import re
import runpy
from collections import Counter

import pytest

from protoscore.benchmarks.protobias.schema import Cell, Foil
from protoscore.benchmarks.protobias.taxonomy import load_taxonomy
from protoscore.benchmarks.protobias.triplets import wanted_pictures
from protoscore.benchmarks.protobias.writers.template import write
from protoscore.scenes.sprites import manifest
from tests.conftest import ROOT

TAXONOMY = load_taxonomy()
TRIPLETS = list(write(TAXONOMY, {"animals": 400, "objects": 400, "demography": 200}, seed=6, refuses=manifest().refused.get))
ANIMALS = {"birds", "mammals", "other_animals"}


def members(names) -> set[str]:
    subs = TAXONOMY.domains.animals.subcategories | TAXONOMY.domains.objects.subcategories
    return {key for name in names for key in (*subs[name].non_prototypes, *subs[name].prototypes)}


def test_nearly_every_triplet_has_foils_and_none_has_some():
    for triplet in TRIPLETS:
        assert triplet.has_foils or all(getattr(triplet, foil) is None for foil in Foil)
    assert sum(t.has_foils for t in TRIPLETS) >= 0.95 * len(TRIPLETS)


@pytest.mark.parametrize("foil", list(Foil))
def test_a_foil_differs_in_its_element_and_in_nothing_else(foil):
    for triplet in (t for t in TRIPLETS if t.has_foils):
        right, wrong = triplet.scene(foil.correct).model_dump(), triplet.scene(foil).model_dump()
        assert {key for key in right if right[key] != wrong[key]} == {foil.element}
        assert triplet.description(foil) != triplet.description(foil.correct)
        key = {"extra": triplet.foil_extra, "environment": triplet.foil_environment}.get(foil.element)
        if key and foil.element == "environment":
            was, now = TAXONOMY.environments[triplet.environment], TAXONOMY.environments[key]
            assert triplet.description(foil.correct).replace(was, now) == triplet.description(foil)


def test_no_foil_is_right_after_all():
    """A pine tree is a tree, and a bird is an animal."""
    for triplet in (t for t in TRIPLETS if t.has_foils):
        assert {triplet.extra, triplet.foil_extra} != {"tree", "pine_tree"}
        named = {"other_animals": ANIMALS}.get(triplet.subcategory, {triplet.subcategory} - {"religion"})
        for subject in (triplet.foil_non_subject, triplet.foil_proto_subject):
            assert subject not in members(named), triplet.text
        if triplet.knob == "color_tone":
            assert triplet.value in TAXONOMY.extra(triplet.domain, triplet.foil_extra).colors
        place = TAXONOMY.extra(triplet.domain, triplet.foil_extra).environments
        assert not place or triplet.environment in place


def test_foil_subjects_are_as_typical_as_whom_they_replace_and_many():
    subs = [*TAXONOMY.domains.animals.subcategories.values(), *TAXONOMY.domains.objects.subcategories.values()]
    unusual, typical = ({key for sub in subs for key in getattr(sub, kind)} for kind in ("non_prototypes", "prototypes"))
    foiled = [t for t in TRIPLETS if t.has_foils]
    assert {t.foil_non_subject for t in foiled} <= unusual and {t.foil_proto_subject for t in foiled} <= typical
    assert max(Counter(t.foil_non_subject for t in foiled).values()) < 0.1 * len(foiled)


def test_a_set_is_ten_pictures_of_one_seed():
    triplet = next(t for t in TRIPLETS if t.has_foils)
    bare = triplet.model_copy(update=dict.fromkeys([f.value for f in Foil]))
    assert Counter(w.group for w in wanted_pictures([triplet], 2)) == {f"{triplet.id}-0": 10, f"{triplet.id}-1": 10}
    assert [w.fields["cell"] for w in wanted_pictures([bare])] == [cell.value for cell in Cell]
    for wanted in wanted_pictures([triplet]):
        picture = wanted.fields["cell"]
        assert wanted.text == triplet.description(Foil(picture) if picture in list(Foil) else Cell(picture))
        assert wanted.text != triplet.text


def test_the_bag_of_nouns_keeps_the_nouns_and_no_detail():
    nouns = runpy.run_path(str(ROOT / "docs" / "examples" / "bag_of_nouns.py"))["nouns"]
    for triplet in TRIPLETS:
        kept = nouns(triplet.text)
        assert TAXONOMY.environments[triplet.environment] in kept and kept != triplet.text
        other = triplet.text
        for value, shown in (
            (triplet.value, triplet.violation),
            (triplet.value.replace("_", " "), triplet.violation.replace("_", " ")),
        ):
            other = re.sub(rf"\b{value}\b", shown, other)
        assert nouns(other) == kept, triplet.text
