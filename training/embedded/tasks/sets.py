"""Questions about what pictures show of one attribute: the value of one picture, and how many values there are in a set.

Asked about every pair of a concept and an attribute that scenes can show (``scene_prompts.csv``), and sets about people and
about the subjects of whole scenes too.
"""

from __future__ import annotations

import json
import random
from functools import cache

from PIL import Image

from protoscore.benchmarks.diversity.pairs import ConceptPair, read_pairs
from protoscore.benchmarks.protobias.schema import Cell
from protoscore.benchmarks.protobias.taxonomy import noun_of
from protoscore.scenes.alone import Alone, draw_alone
from protoscore.scenes.people import AIDS, CUES, Person, draw_person
from protoscore.scenes.spec import SceneSpec
from training.embedded.tasks.base import SceneQuestion, Seeded, draw, size_of, triplets_of

SMALL = 96  # px, as the judge sees: of sets, whose pictures are many
OTHER, HIDDEN = "other", "not visible"
PEOPLE = {  # attribute of a person -> values
    "religion shown": tuple(CUES), "aid for a disability": tuple(AIDS),
    "age of the person": ("child", "young adult", "elderly"),
}  # fmt: skip
SUBJECT = "kind of animal or object"  # of a scene that shows another thing too


def attribute_value(rng: Seeded, split: str) -> SceneQuestion:
    """Mostly with the whole list; with a part of it, the value may be another. One picture of ten does not show the thing."""
    pair = rng.choice(pairs())
    values = list(pair.values)
    if rng.random() < 0.4:
        values = rng.sample(values, rng.randint(2, len(values)))
    fields = {"concept": pair.concept, "attribute": pair.attribute, "values": values}
    if rng.random() < 0.1 and pair.attribute != "place":  # there is always a place
        return SceneQuestion([_stranger(pair, rng)], fields, {"value": HIDDEN})
    value = rng.choice(pair.values if rng.random() < 0.3 else values)
    image = draw_alone(_shown(pair, value, rng), rng.getrandbits(60), size_of(rng))
    return SceneQuestion([image], fields, {"value": value if value in values else OTHER})


def attribute_count(rng: Seeded, split: str) -> SceneQuestion:
    """Four or eight pictures, in training fewer too. Every number of values comes as often, where the attribute has so many."""
    size = rng.choice((1, 1, 2, 2, 4, 8) if split == "train" else (4, 8))  # few teach to name, and cost little
    pair = rng.choice(pairs()) if rng.random() < 0.5 else None
    attribute = pair.attribute if pair else rng.choice((*PEOPLE, SUBJECT))
    values = pair.values if pair else PEOPLE.get(attribute) or tuple(_subjects(split))
    count = rng.randint(0 if attribute in PEOPLE else 1, min(size, len(values)))
    kinds: list[str | None] = list(rng.sample(values, count))
    if attribute in PEOPLE and count < size and (rng.random() < 0.5 or not kinds):
        kinds.append(None)  # a person who shows no value
    shown = kinds + [rng.choice(kinds) for _ in range(size - len(kinds))]
    rng.shuffle(shown)
    images = [_picture(pair, attribute, value, rng, split) for value in shown]
    named = sorted(filter(None, kinds))
    return SceneQuestion(images, {"attribute": attribute, "size": size}, {"values": ", ".join(named), "count": len(named)})


def _picture(pair: ConceptPair | None, attribute: str, value: str | None, rng: random.Random, split: str) -> Image.Image:
    if pair and value:
        return draw_alone(_shown(pair, value, rng), rng.getrandbits(60), SMALL)
    if attribute == SUBJECT and value:
        return draw(rng.choice(_subjects(split)[value]), rng, fits=True, size=SMALL)[0]
    age = value or "unspecified" if attribute == "age of the person" else "young adult"
    cue = {"religion shown": "religion", "aid for a disability": "disability"}.get(attribute)
    shown = {cue: value} if cue and value else {}
    person = Person.model_validate({"gender": rng.choice(("male", "female")), "age": age, **shown})
    return draw_person(person, rng.getrandbits(60), SMALL)


def _shown(pair: ConceptPair, value: str, rng: random.Random) -> Alone:
    assert pair.spec
    return pair.spec.with_value(pair.values.index(value), rng.choice(pair.spec.places), rng)


def _stranger(pair: ConceptPair, rng: random.Random) -> Image.Image:
    """Something that is neither the concept nor one of its kinds."""
    assert pair.spec
    other = rng.choice([p for p in pairs() if p.spec and not {*p.spec.things} & {*pair.spec.things}])
    return draw_alone(_shown(other, rng.choice(other.values), rng), rng.getrandbits(60), size_of(rng))


@cache
def pairs() -> list[ConceptPair]:
    return [pair for pair in read_pairs("scenes") if pair.spec]


@cache
def _subjects(split: str) -> dict[str, list[SceneSpec]]:
    """Every animal and object that scenes are about, with its scenes."""
    found: dict[str, list[SceneSpec]] = {}
    for triplet in triplets_of(split, people=False):
        for spec in map(triplet.scene, Cell):
            found.setdefault(noun_of(spec.subject), []).append(spec)
    return found


def attributes() -> list[str]:
    """Every attribute, as it is called."""
    return [*PEOPLE, SUBJECT, *dict.fromkeys(pair.attribute for pair in pairs())]


def value_phrases() -> dict[str, str]:
    """Of questions on one picture: a value that comes first in a list, the concept, a whole answer."""
    answers = {json.dumps({"value": value}): value for value in (*_values(), OTHER, HIDDEN)}
    first = {f"Choose exactly one of: {value}": value for value in _values()}
    return answers | first | {f'Concept: "{pair.concept}"': pair.concept for pair in pairs()}


def count_phrases() -> dict[str, str]:
    """Of the answer about a set: each value as the first or a further one, and the count with all that stands around it."""
    first = {f'{{"values": "{value}': value for value in ("", *_values())}
    return first | {f", {value}": value for value in _values()} | {f'", "count": {n}}}': str(n) for n in range(25)}


def _values() -> set[str]:
    found = {value for pair in pairs() for value in pair.values} | set(_subjects("train"))
    return found | {value for some in PEOPLE.values() for value in some}
