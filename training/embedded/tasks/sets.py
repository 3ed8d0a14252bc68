"""Questions about what pictures show of one attribute: the value of one picture, and how many values there are in a set."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from functools import cache
from typing import NamedTuple

from PIL import Image

from protoscore.benchmarks.protobias.schema import NUMBERS, Cell
from protoscore.benchmarks.protobias.taxonomy import extra_noun, load_taxonomy, noun_of
from protoscore.scenes.people import AIDS, CUES, Person, draw_person
from protoscore.scenes.spec import SceneSpec
from protoscore.scenes.sprites import PALETTE, aspect, backdrop, draw_sprite, manifest
from training.embedded.tasks.base import SceneQuestion, Seeded, draw, size_of, triplets_of

SMALL = 96  # px, as the judge sees: of sets, whose pictures are many
OTHER, HIDDEN = "other", "not visible"
NAMES = {  # attribute of a thing -> how it may be called
    "color": ("color", "colour"), "place": ("place", "background", "setting"), "kind": ("kind", "species", "type"),
    "number": ("number", "count"),
}  # fmt: skip
PEOPLE = {  # attribute of a person, or of a whole scene -> values
    "religion shown": tuple(CUES), "aid for a disability": tuple(AIDS),
    "age of the person": ("child", "young adult", "elderly"),
}  # fmt: skip
SUBJECT = "kind of animal or object"  # of a scene that shows another thing too
FAMILIES = {  # concept -> things that the taxonomy does not group
    "plant": ("tree", "pine_tree", "flower", "mushroom", "leaf", "potted_plant", "log", "branch"),
    "container": ("box", "bucket", "basket", "suitcase", "vase"),
    "small thing": ("book", "candle", "key", "bell", "floor_lamp", "umbrella", "napkin", "balloon"),
}
TONES = PALETTE | {  # colour word -> (main, shade); pictures of one thing may take any
    "orange": ("#e27022", "#b35513"), "pink": ("#ffa7c0", "#e67a94"), "white": ("#ffffff", "#d0cfce"),
}  # fmt: skip
SLOTS = (0.1, 0.3, 0.5, 0.7, 0.9)  # where things stand, left to right, as fractions of the frame


class Shown(NamedTuple):
    """A concept, one of its attributes, and the values of that, each with the scenes of a split that show it."""

    concept: str
    attribute: str
    scenes: dict[str, list[SceneSpec]]

    def alone(self, value: str, rng: random.Random, size: int) -> Image.Image:
        """The thing on its ground, and nothing else."""
        spec = rng.choice(self.scenes[value])
        key = spec.extra if self.attribute in ("color", "number") else spec.subject
        colors = manifest().sprites[key].colors
        color = value if self.attribute == "color" else rng.choice(colors) if colors else None
        return draw_alone(key, spec.environment, rng, size, color, NUMBERS[value] if self.attribute == "number" else 1)

    def among_others(self, value: str, rng: random.Random, size: int) -> Image.Image:
        spec = rng.choice(self.scenes[value])
        if self.attribute == "color" and spec.color_tone != value:  # scenes of several things have fewer tones
            return self.alone(value, rng, size)
        return draw(spec, rng, fits=True, size=size)[0]


def attribute_value(rng: Seeded, split: str) -> SceneQuestion:
    """One picture of ten shows a value that is not in the list, and one does not show the thing at all."""
    asked = rng.choice(_shown(split)[rng.choice(tuple(NAMES))])
    values = rng.sample(list(asked.scenes), min(len(asked.scenes), rng.randint(3, 8)))
    left_out = [value for value in asked.scenes if value not in values]
    fields = {"concept": asked.concept, "attribute": rng.choice(NAMES[asked.attribute]), "values": values}
    kind = rng.random()
    if kind < 0.1 and asked.attribute != "place":  # there is always a place
        other = rng.choice(_strangers(split, asked.concept))
        return SceneQuestion([draw_alone(*other, rng, size_of(rng))], fields, {"value": HIDDEN})
    value = rng.choice(left_out if kind > 0.9 and left_out else values)
    look = asked.alone if asked.concept in FAMILIES or rng.random() < 0.6 else asked.among_others
    return SceneQuestion([look(value, rng, size_of(rng))], fields, {"value": value if value in values else OTHER})


def attribute_count(rng: Seeded, split: str) -> SceneQuestion:
    """Four or eight pictures, in training fewer too. Every number of values comes as often, where the attribute has so many."""
    size = rng.choice((1, 1, 2, 2, 4, 8) if split == "train" else (4, 8))  # few teach to name, and cost little
    attribute = rng.choice((*PEOPLE, SUBJECT, *NAMES))
    asked = rng.choice(_shown(split)[attribute]) if attribute in NAMES else None
    values = list(asked.scenes if asked else PEOPLE[attribute] if attribute in PEOPLE else _subjects(split).scenes)
    count = rng.randint(0 if attribute in PEOPLE else 1, min(size, len(values)))
    kinds: list[str | None] = list(rng.sample(values, count))
    if attribute in PEOPLE and count < size and (rng.random() < 0.5 or not kinds):
        kinds.append(None)  # a person who shows no value
    shown = kinds + [rng.choice(kinds) for _ in range(size - len(kinds))]
    rng.shuffle(shown)
    named = sorted(filter(None, kinds))
    fields = {"attribute": rng.choice(NAMES[attribute]) if asked else attribute, "size": size}
    images = [_look(attribute, asked, value, rng, split) for value in shown]
    return SceneQuestion(images, fields, {"values": ", ".join(named), "count": len(named)})


def _look(attribute: str, asked: Shown | None, value: str | None, rng: random.Random, split: str) -> Image.Image:
    if asked:
        return asked.alone(value or "", rng, SMALL)
    if attribute == SUBJECT:
        return _subjects(split).among_others(value or "", rng, SMALL)
    age = value or "unspecified" if attribute == "age of the person" else "young adult"
    cue = {"religion shown": "religion", "aid for a disability": "disability"}.get(attribute)
    shown = {cue: value} if cue and value else {}
    person = Person.model_validate({"gender": rng.choice(("male", "female")), "age": age, **shown})
    return draw_person(person, rng.getrandbits(60), SMALL)


def draw_alone(
    key: str, environment: str, rng: random.Random, size: int, color: str | None = None, count: int = 1
) -> Image.Image:
    """``count`` of one thing in a place, as RGB of ``size`` px."""
    canvas = backdrop(environment, size, rng.random() < 0.5).copy()
    paint = tuple(zip(TONES["red"], TONES[color], strict=True)) if color else ()
    slots = sorted(rng.sample(SLOTS, count)) if count > 1 else [rng.uniform(0.35, 0.65)]
    largest = rng.uniform(0.35, 0.7) if count == 1 else rng.uniform(0.17, 0.21)
    width, height = aspect(key)
    scale = largest * size / max(width, height)
    for x in slots:
        picture = draw_sprite(
            key, paint, round(scale * width), round(scale * height), manifest().sprites[key].mirror and rng.random() < 0.5
        )
        base = rng.uniform(0.8, 0.95) if count == 1 else rng.uniform(0.6, 0.95)
        canvas.paste(picture, (round(x * size - picture.width / 2), round(base * size) - picture.height), picture)
    return canvas


@cache
def _shown(split: str) -> dict[str, list[Shown]]:
    """By attribute, everything that scenes of the split show with three values or more."""
    found: dict[tuple[str, str], dict[str, list[SceneSpec]]] = defaultdict(lambda: defaultdict(list))
    words = {number: word for word, number in NUMBERS.items()}
    extras: dict[str, tuple[str, set[str]]] = {}  # sprite -> noun, places
    for triplet in triplets_of(split, people=False):
        noun = extra_noun(triplet.extra, load_taxonomy().extra(triplet.domain, triplet.extra), 1)
        extras.setdefault(triplet.extra, (noun, set()))[1].add(triplet.environment)
        family = re.sub("^(an?|a piece of) ", "", triplet.hypernym)
        for spec in map(triplet.scene, Cell):
            subject = noun_of(spec.subject)
            found["place", subject][spec.environment.replace("_", " ")].append(spec)
            found["kind", family][subject].append(spec)
            if spec.color_tone:
                found["color", noun][spec.color_tone].append(spec)
            if triplet.knob == "count":
                found["number", noun][words[spec.count]].append(spec)
    for family, members in FAMILIES.items():
        for key in members:
            noun, places = extras[key]
            scenes = [SceneSpec(subject=key, extra=key, environment=place) for place in sorted(places)]
            found["kind", family][noun] = scenes
    for (attribute, _), scenes in found.items():
        if attribute == "color":
            everywhere = [spec for some in scenes.values() for spec in some]
            scenes.update({tone: everywhere for tone in TONES if tone not in scenes})
    shown = [Shown(concept, attribute, dict(scenes)) for (attribute, concept), scenes in found.items() if len(scenes) > 2]
    return {attribute: [s for s in shown if s.attribute == attribute] for attribute in NAMES}


@cache
def _subjects(split: str) -> Shown:
    """Every animal and object that scenes are about."""
    families = [shown for shown in _shown(split)["kind"] if shown.concept not in FAMILIES]
    return Shown("thing", SUBJECT, {name: scenes for shown in families for name, scenes in shown.scenes.items()})


@cache
def _strangers(split: str, concept: str) -> list[tuple[str, str]]:
    """Sprites, each with a place, of things that are neither ``concept`` nor of that family."""
    own = next((s.scenes for s in _shown(split)["kind"] if s.concept == concept), {})
    things = {
        (spec.subject, spec.environment): name
        for shown in _shown(split)["kind"]
        for name, specs in shown.scenes.items()
        for spec in specs
    }
    return sorted(place for place, name in things.items() if name not in own and name != concept)


def names() -> list[str]:
    """Every way to call an attribute."""
    return [*PEOPLE, SUBJECT, *(name for some in NAMES.values() for name in some)]


def value_phrases() -> dict[str, str]:
    """Of questions on one picture: a value that comes first in a list, the concept, a whole answer."""
    answers = {json.dumps({"value": value}): value for value in (*_values(), OTHER, HIDDEN)}
    first = {f"Choose exactly one of: {value}": value for value in _values()}
    concepts = {shown.concept for some in _shown("train").values() for shown in some}
    return answers | first | {f'Concept: "{concept}"': concept for concept in concepts}


def count_phrases() -> dict[str, str]:
    """Of the answer about a set: each value as the first or a further one, and the count with all that stands around it."""
    first = {f'{{"values": "{value}': value for value in ("", *_values())}
    return first | {f", {value}": value for value in _values()} | {f'", "count": {n}}}': str(n) for n in range(25)}


def _values() -> set[str]:
    found = {value for some in _shown("train").values() for shown in some for value in shown.scenes}
    return found | {value for some in PEOPLE.values() for value in some}
