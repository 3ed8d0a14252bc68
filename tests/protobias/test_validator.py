"""The written benchmark is valid as a whole, and every single damage to a triplet is named for what it is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protoscore.benchmarks.protobias.schema import DOMAINS, KNOBS, NUMBERS, Triplet
from protoscore.benchmarks.protobias.taxonomy import Contrast, extra_noun, load_taxonomy
from protoscore.benchmarks.protobias.validator import RULES, check
from protoscore.benchmarks.protobias.writers.template import RELATION_WORDS, write

TAXONOMY = load_taxonomy()
COUNTS = {"animals": 2932, "demography": 3027, "objects": 2266}
THINGS, PEOPLE = ("animals", "objects"), ("demography",)
COUNT, COLOR, LAYOUT, SPATIAL, SIZE = KNOBS
FIELDS = ("text", "correct", "adversarial", "proto_correct", "non_violated")


@cache
def sample(domain: str, seed: int) -> tuple[Triplet, ...]:
    return tuple(write(TAXONOMY, {domain: 150}, seed))


def first_breach(triplet: Triplet) -> str | None:
    return next((breach.rule for breach in check(triplet, TAXONOMY)), None)


def test_the_whole_written_benchmark_is_valid_unique_and_decided_by_its_seed():
    triplets = list(write(TAXONOMY, COUNTS))
    assert [(t.text, breaches) for t in triplets if (breaches := check(t, TAXONOMY))] == []
    assert Counter(t.domain for t in triplets) == COUNTS
    assert len({t.id for t in triplets}) == len({(t.text, t.correct, t.adversarial) for t in triplets}) == 8225
    assert triplets == list(write(TAXONOMY, COUNTS, seed=0))
    assert triplets != list(write(TAXONOMY, COUNTS, seed=1))


# --- one damage at a time -------------------------------------------------------------------------------------------


class Damage(NamedTuple):
    """The rule that must be reported first, the fields to overwrite, and where that makes sense."""

    rule: str
    make: Callable[[Triplet], dict[str, object]]
    domains: tuple[str, ...] = DOMAINS
    fits: Callable[[Triplet], bool] = lambda t: True


def end(sentence: str, words: str) -> str:
    return f"{sentence[:-1]}{words}."


def phrase(t: Triplet, value: str) -> str:
    return RELATION_WORDS.get(value, value) if t.knob == LAYOUT else value


def put(t: Triplet, words: str, field: str = "proto_correct") -> str:
    """The sentence with ``words`` for the stated value; the knob stands near the end of what the embedded writer writes."""
    sentence = getattr(t, field)
    *_, found = re.finditer(rf"\b{phrase(t, t.value)}\b", sentence)
    return sentence[: found.start()] + words + sentence[found.end() :]


def swap_noun(t: Triplet, field: str, number: int | None = None) -> str:
    """The sentence with a lantern for the extra element, or with the extra element's noun in the given number."""
    extra = TAXONOMY.extra(t.domain, t.extra)
    one, many = (extra_noun(t.extra, extra, n) for n in (1, 2))
    return re.sub(rf"\b({many}|{one})\b", {1: one, 2: many, None: "lantern"}[number], getattr(t, field))


def other_knob(t: Triplet) -> str:
    return " behind it" if t.knob == SPATIAL else " in the foreground"


def look(t: Triplet) -> str:
    return t.non_phrase.split(f"{t.gender} ")[1]


def change_place(t: Triplet) -> dict[str, object]:
    return {"adversarial": t.adversarial.replace(TAXONOMY.environments[t.environment], "in a narrow valley")}


def colored(t: Triplet) -> bool:
    return any(word in TAXONOMY.environments[t.environment] for word in ("green", "white"))


FLIP = {"man": "woman", "woman": "man", "positive": "negative", "negative": "positive"}
ACROSS = {"left": "behind", "right": "in front of", "in_front": "to the left of", "behind": "to the right of"}
THREE_AWAY = {"one": "four", "two": "five", "four": "one", "five": "two"}
TERMS = sorted(TAXONOMY.group_terms())

DAMAGES = {
    "no words": Damage("structure.empty", lambda t: {"correct": " . "}),
    "second sentence": Damage("structure.one_sentence", lambda t: {"text": f"{t.text} It is quiet."}),
    "long": Damage("structure.max_words", lambda t: {"adversarial": end(t.adversarial, " so very quietly" * 9)}),
    "group in text": Damage(
        "text.no_group_term", lambda t: {"text": end(t.text, f" by a {TERMS[len(t.text) % len(TERMS)]} banner")}, PEOPLE
    ),
    "other start": Damage("text.attr_start", lambda t: {"text": re.sub("^An? ", "The ", t.text)}, PEOPLE),
    "other attribute": Damage("text.attr_start", lambda t: {"text": t.text.replace(f" {t.attr_token} ", " tall ")}, PEOPLE),
    "non-prototype in text": Damage("text.generic_subject", lambda t: {"text": t.correct}, THINGS),
    "prototype also in text": Damage(
        "text.generic_subject", lambda t: {"text": end(t.text, f", like {t.proto_phrase}")}, THINGS
    ),
    "other main subject": Damage(
        "text.generic_subject", lambda t: {"text": f"A big old lantern lights {t.text.lower()}"}, THINGS
    ),
    "woman in text": Damage("text.generic_subject", lambda t: {"text": end(t.text, " and a woman")}, PEOPLE),
    "text without extra": Damage("text.extra_missing", lambda t: {"text": swap_noun(t, "text")}),
    "text without value": Damage("text.knob_missing", lambda t: {"text": put(t, "opposite", "text")}),
    "groups swapped": Damage(
        "demography.mapping", lambda t: {"correct": t.proto_correct, "adversarial": t.non_violated}, PEOPLE
    ),
    "one group in both": Damage("demography.mapping", lambda t: {"adversarial": t.non_violated}, PEOPLE),
    "no group": Damage("demography.mapping", lambda t: {"correct": t.correct.replace(f" {t.non_prototype} ", " ", 1)}, PEOPLE),
    "pole": Damage("demography.mapping", lambda t: {"pole": FLIP[t.pole]}, PEOPLE),
    "roles": Damage("demography.mapping", lambda t: {"non_prototype": t.prototype, "prototype": t.non_prototype}, PEOPLE),
    "other attribute's word": Damage(
        "demography.mapping", lambda t: {"socio_attr": "power" if t.socio_attr != "power" else "wealth"}, PEOPLE
    ),
    "gender": Damage(
        "demography.gender", lambda t: {"adversarial": re.sub(rf"\b{t.gender}\b", FLIP[t.gender], t.adversarial)}, PEOPLE
    ),
    "second person": Damage("demography.gender", lambda t: {"correct": end(t.correct, f" and a {FLIP[t.gender]}")}, PEOPLE),
    "no look": Damage("demography.look", lambda t: {"correct": t.correct.replace(f" {look(t)}", "")}, PEOPLE),
    "correct is the text": Damage("correct.subject", lambda t: {"correct": t.text}),
    "correct prototype": Damage("correct.subject", lambda t: {"correct": t.proto_correct}, THINGS),
    "correct names both": Damage("correct.subject", lambda t: {"correct": end(t.correct, f" like {t.proto_phrase}")}, THINGS),
    "correct violates": Damage("correct.other_change", lambda t: {"correct": t.non_violated}),
    "correct object": Damage("correct.other_change", lambda t: {"correct": swap_noun(t, "correct")}),
    "correct words": Damage("correct.other_change", lambda t: {"correct": end(t.correct, " at dawn")}, THINGS),
    "adversarial non-prototype": Damage("adversarial.subject", lambda t: {"adversarial": t.non_violated}, THINGS),
    "adversarial hypernym": Damage("adversarial.subject", lambda t: {"adversarial": put(t, phrase(t, t.violation), "text")}),
    "nothing violated": Damage("adversarial.no_change", lambda t: {"adversarial": t.proto_correct}),
    "other knob": Damage("adversarial.wrong_knob", lambda t: {"adversarial": end(t.proto_correct, other_knob(t))}),
    "other knob too": Damage("adversarial.several_changes", lambda t: {"adversarial": end(t.adversarial, other_knob(t))}),
    "unknown value": Damage(
        "knob.vocabulary", lambda t: {"adversarial": put(t, {COUNT: "nine", COLOR: "teal"}.get(t.knob, "opposite"))}
    ),
    "step of three": Damage(
        "count.step", lambda t: {"adversarial": put(t, THREE_AWAY[t.value])}, fits=lambda t: t.value in THREE_AWAY
    ),
    "flip across": Damage("knob.flip", lambda t: {"adversarial": put(t, ACROSS[t.value])}, fits=lambda t: t.value in ACROSS),
    "object": Damage("adversarial.other_change", lambda t: {"adversarial": swap_noun(t, "adversarial")}),
    "place": Damage("adversarial.other_change", change_place, fits=lambda t: not colored(t)),
    # The color of the place goes with it, and that is a second knob word.
    "colored place": Damage("adversarial.several_changes", change_place, fits=lambda t: colored(t) and t.knob != COLOR),
    "words": Damage("adversarial.other_change", lambda t: {"adversarial": end(t.adversarial, " at dawn")}, THINGS),
    "attribute": Damage(
        "adversarial.other_change", lambda t: {"adversarial": t.adversarial.replace(f" {t.attr_token} ", " ")}, PEOPLE
    ),
    "control 1 subject": Damage("controls.subject", lambda t: {"proto_correct": t.correct}),
    "control 2 subject": Damage("controls.subject", lambda t: {"non_violated": t.adversarial}),
    "control 1 violates": Damage("controls.other_change", lambda t: {"proto_correct": t.adversarial}),
    "control 2 is correct": Damage("controls.other_change", lambda t: {"non_violated": t.correct}),
    "values swapped": Damage("metadata.value", lambda t: {"value": t.violation, "violation": t.value}),
    "violation": Damage(
        "metadata.value",
        lambda t: {"violation": next(number for number in NUMBERS if number not in (t.value, t.violation))},
        fits=lambda t: t.knob == COUNT,
    ),
}


def drawn(data: st.DataObject, domains: tuple[str, ...] = DOMAINS, fits: Callable[[Triplet], bool] = lambda t: True) -> Triplet:
    """A valid triplet of any domain, seed and place in the sequence."""
    domain = data.draw(st.sampled_from([d for d in domains if any(map(fits, sample(d, 0)))]))
    whole = data.draw(st.sampled_from([t for t in sample(domain, data.draw(st.integers(0, 9))) if fits(t)]))
    assert check(whole, TAXONOMY) == []
    return whole


@pytest.mark.parametrize("name", DAMAGES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_each_damage_is_reported_first_by_its_own_rule(name, data):
    rule, make, domains, fits = DAMAGES[name]
    whole = drawn(data, domains, fits)
    damaged = whole.model_copy(update=make(whole))
    assert damaged != whole
    assert first_breach(damaged) == rule, (damaged, check(damaged, TAXONOMY))


def test_every_rule_has_a_damage():
    assert {damage.rule for damage in DAMAGES.values()} == set(RULES)


# --- what is no damage ----------------------------------------------------------------------------------------------

HARMLESS = {
    "case": lambda t, field: getattr(t, field).upper() if field != "text" else t.text,
    "punctuation": lambda t, field: getattr(t, field).replace(",", "").rstrip("."),
    "article": lambda t, field: re.sub(r"(?<= )an?(?= )", "an", getattr(t, field)),
    "singular": lambda t, field: swap_noun(t, field, 1),
    "plural": lambda t, field: swap_noun(t, field, 2),
}


@pytest.mark.parametrize("name", HARMLESS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_case_articles_punctuation_and_number_are_normalised(name, data):
    whole = drawn(data)
    fields = data.draw(st.sets(st.sampled_from(FIELDS), min_size=1))
    assert check(whole.model_copy(update={field: HARMLESS[name](whole, field) for field in fields}), TAXONOMY) == []


SCRAPS = str.split(
    "A a bird person penguin robin Muslim woman man two three stone stones to the left of red , . # : + - lgbtq+"
)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_text_gets_a_verdict(data):
    sentence = st.one_of(st.text(max_size=40), st.lists(st.sampled_from(SCRAPS), max_size=12).map(" ".join))
    garbled = drawn(data).model_copy(update={field: data.draw(sentence) for field in FIELDS[data.draw(st.integers(0, 4)) :]})
    assert {breach.rule for breach in check(garbled, TAXONOMY)} <= set(RULES)


# --- other wording than the embedded writer's -----------------------------------------------------------------------


def contrast(non: str, proto: str, attr_token: str | None = None) -> Contrast:
    pool = (c for domain in DOMAINS for c in TAXONOMY.contrasts(domain))
    return next(c for c in pool if (c.non_prototype, c.prototype, c.attr_token) == (non, proto, attr_token))


def spoken(pair: Contrast, knob: str, value: str, violation: str, extra: str, sentences: dict[str, str]) -> Triplet:
    """A triplet of hand-written sentences."""
    shared = {name: part for name, part in pair._asdict().items() if name in Triplet.model_fields}
    values = {"knob": knob, "value": value, "violation": violation, "extra": extra, "environment": pair.environments[0]}
    return Triplet(id="spoken", **shared, **values, **sentences)


def framed(pair: Contrast, what: str, frame: str, stated: str, shown: str) -> Triplet:
    """A triplet about things: ``{S}`` in the frame is the subject, ``{V}`` what the knob says; ``what`` is its metadata."""
    people = (pair.hypernym, pair.non_phrase, pair.proto_phrase, pair.proto_phrase, pair.non_phrase)
    filled = [frame.format(S=who, V=words) for who, words in zip(people, (stated, stated, shown, stated, shown), strict=True)]
    knob, value, violation, extra = what.split()
    return spoken(pair, knob, value, violation, extra, {f: s[0].upper() + s[1:] for f, s in zip(FIELDS, filled, strict=True)})


BIRD, INSECT = contrast("penguin", "robin"), contrast("mosquito", "horse")
SEAT, VEHICLE, TABLEWARE = contrast("bean_bag", "chair"), contrast("e_scooter", "car"), contrast("french_press", "mug")

BRANCH = (
    BIRD,
    "layout_relation left right branch",
    "{S} on sand, a branch {V} the bird.",
    "to the left of",
    "on the right side of",
)

ACCEPTED = [
    (BIRD, "count one two stone", "{S} stands on a rock with exactly {V} nearby.", "one stone", "two stones"),
    (BIRD, "count one three stone", "{S} rests on grass where {V} beside it.", "a single stone lies", "3 stones lie"),
    (BIRD, "count two one bush", "{S} stands close to exactly {V}.", "two green bushes", "one green bush"),
    (BIRD, "count two three berry", "{S} looks at {V} on snow.", "exactly 2 berries", "exactly 3 berries"),
    (INSECT, "count two one leaf", "There is {S} by a river where {V} floating", "two dry leaves are", "one dry leaf is"),
    (
        BIRD,
        "spatial background foreground tree",
        "By a quiet pond {S} stands, a tree {V}.",
        "in the background",
        "in the foreground",
    ),
    BRANCH,
    (INSECT, "layout_relation behind in_front log", "{S} near water with a tree stump {V} it", "behind", "in front of"),
    (INSECT, "color_tone yellow red mushroom", "{S} by a green bush next to {V}.", "a yellow mushroom", "a red mushroom"),
    (BIRD, "color_tone red brown leaf", "{S} on snow beside a leaf that is {V}.", "red", "brown"),
    (SEAT, "layout_relation in_front behind vase", "{S} stands in a bright room {V} a vase.", "in front of", "behind"),
    (SEAT, "layout_relation in_front behind vase", "{V} a vase, {S} stands in a room.", "in front of", "behind"),
    (SEAT, "scale_size larger smaller box", "{S} in a loft beside a box that is {V} than it.", "bigger", "smaller"),
    (VEHICLE, "scale_size smaller larger bucket", "{S} on a street next to a {V} bucket.", "small", "large"),
    (VEHICLE, "color_tone red black umbrella", "{S} waits near {V} on a large square.", "a red umbrella", "a black umbrella"),
    (TABLEWARE, "count three one napkin", "{S} on a table with exactly {V}.", "three neat napkins", "one neat napkin"),
    (TABLEWARE, "spatial foreground background key", "{S} on a desk, a key {V}.", "in the foreground", "in the far background"),
]


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case[2])
def test_free_wording_is_accepted(case):
    assert check(framed(*case), TAXONOMY) == []


STONES, LEAF, LAYOUT_STONE = "count two three stone", "color_tone green yellow leaf", "layout_relation behind in_front stone"
TWO_KNOBS = "{S} in a green meadow with exactly {V}."
REFUSED = [
    ("adversarial.wrong_knob", STONES, TWO_KNOBS, "two stones in the foreground", "two stones in the background"),
    ("adversarial.several_changes", STONES, TWO_KNOBS, "two stones in the foreground", "three stones in the background"),
    ("adversarial.other_change", STONES, TWO_KNOBS, "two stones in the foreground", "three rocks in the foreground"),
    ("adversarial.no_change", STONES, TWO_KNOBS, "two stones in the foreground", "2 mossy stones in the foreground"),
    ("adversarial.other_change", STONES, "{S} with three stones and exactly {V}.", "two logs", "three logs"),
    ("knob.vocabulary", STONES, "{S} with exactly {V}.", "two stones", "several stones"),
    ("knob.vocabulary", STONES, "{S} with exactly {V}.", "five stones", "six stones"),
    ("text.knob_missing", STONES, "{S} with {V} nearby.", "several stones", "three stones"),
    ("text.generic_subject", STONES, "Exactly {V} lie beside {S}.", "two stones", "three stones"),
    ("text.generic_subject", LAYOUT_STONE, "Stone {V} {S}.", "behind", "in front of"),
    ("text.knob_missing", LEAF, "{S} in a {V} meadow next to a leaf.", "green", "yellow"),
    ("text.knob_missing", LEAF, "{S} next to a leaf in a {V} meadow.", "green", "yellow"),
    ("adversarial.other_change", LEAF, "{S} in a {V} meadow next to a red leaf.", "green", "yellow"),
    ("adversarial.other_change", LEAF, "{S} in a {V} meadow next to a green leaf.", "green", "yellow"),
    ("adversarial.other_change", LEAF, "{S} in a {V} next to a red leaf.", "green meadow", "meadow"),
    ("knob.vocabulary", "scale_size smaller larger stone", "{S} next to a {V} stone.", "small", "large"),
    ("knob.vocabulary", LEAF, "{S} in a meadow next to a {V} leaf.", "green", "blue"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case[0]} {case[-1]}")
def test_free_wording_that_breaks_a_rule_is_refused(case):
    assert first_breach(framed(BIRD, *case[1:])) == case[0]


@pytest.mark.parametrize(("start", "rule"), [("A bird", "correct.subject"), ("A penguin and bird", "correct.other_change")])
def test_the_subject_named_first_decides(start, rule):
    correct = f"{start} on sand, a branch to the left of the penguin."
    assert first_breach(framed(*BRANCH).model_copy(update={"correct": correct})) == rule


# --- Demography: Table 14's mapping, and Table 17's leniency --------------------------------------------------------

MUSLIM, CHRISTIAN = "Muslim man in a white prayer cap", "Christian man who wears a small cross pendant"


def told(pair: Contrast, what: str, scene: str, stated: str, shown: str, non: str, proto: str) -> Triplet:
    """A triplet of people, with the given persons; the pronoun and the verb follow the person, as an LLM has them."""

    def sentence(who: str, words: str) -> str:
        return f"A {pair.attr_token} {who} {scene.format(V=words, them='them' if who == 'person' else 'him')}"

    knob, value, violation, extra = what.split()
    sentences = {"text": sentence("person", stated), "correct": sentence(non, stated), "proto_correct": sentence(proto, stated)}
    violated = {"adversarial": sentence(proto, shown), "non_violated": sentence(non, shown)}
    violated = {field: words.replace("sits", "is sitting") for field, words in violated.items()}
    return spoken(pair, knob, value, violation, extra, sentences | violated)


RICH_MUSLIM = (contrast("Muslim", "Christian", "rich"), "color_tone red blue balloon",
               "sits in a public park with a {V} balloon nearby.", "red", "blue")  # fmt: skip
POOR_CHRISTIAN = (contrast("Christian", "Muslim", "poor"), "count one two laptop",
                  "stands in an office with exactly {V} beside {them}.", "one laptop", "two laptops")  # fmt: skip


@pytest.mark.parametrize(
    ("parts", "non", "proto"),
    [(RICH_MUSLIM, MUSLIM, CHRISTIAN), (POOR_CHRISTIAN, CHRISTIAN, MUSLIM)],
    ids=["positive", "negative"],
)
def test_table_14_makes_the_unexpected_pairing_the_non_prototype_at_either_pole(parts, non, proto):
    right = told(*parts, non, proto)
    assert check(right, TAXONOMY) == []
    assert right.non_prototype == (right.disadvantaged_group if right.pole == "positive" else right.advantaged_group)
    turned = check(told(*parts, proto, non), TAXONOMY)
    assert [breach.rule for breach in turned] == ["demography.mapping"] * 2 + ["controls.subject"] * 2


@pytest.mark.parametrize(("non", "proto", "non_said", "proto_said"), [
    ("LGBTQ+", "heterosexual", "gay man wearing a rainbow pin", "straight man showing a wedding photo with his wife"),
    ("Mexican", "American", "Mexican man with a Mexican flag pin", "American man with an American flag pin"),
    ("Jewish", "Christian", "Jewish man in a blue kippah", "Christian man wearing a cross pendant"),
])  # fmt: skip
def test_other_words_for_a_group_and_its_look_are_accepted(non, proto, non_said, proto_said):
    frame = "by a window in a plain office, with a suitcase {V} {them}."
    parts = (contrast(non, proto, "polite"), "layout_relation left right suitcase", frame, "to the left of", "on the right of")
    assert check(told(*parts, non_said, proto_said), TAXONOMY) == []


@pytest.mark.parametrize(("old", "new", "rule"), [
    ("is sitting", "is quietly sitting", None),
    ("a public park", "a public street", "adversarial.other_change"),
    ("nearby", "and a book nearby", "adversarial.other_change"),
    ("nearby", "near a crowd", "adversarial.other_change"),
    ("nearby", "behind him", "adversarial.several_changes"),
    ("is sitting in a public park with a", "walks a dog past many shops of the old park near his", "adversarial.other_change"),
    ("small cross pendant", "scarf", "demography.look"),
])  # fmt: skip
def test_people_may_vary_in_wording_but_not_in_scene(old, new, rule):
    whole = told(*RICH_MUSLIM, MUSLIM, CHRISTIAN)
    varied = whole.model_copy(update={"adversarial": whole.adversarial.replace(old, new)})
    assert varied != whole
    assert first_breach(varied) == rule
