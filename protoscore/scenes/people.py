"""People in scenes: who they are drawn as is structure, so that a judge of people can be trained and checked on pictures.

Each attribute is shown by a drawing convention, listed here, and never claims more than the drawing shows: hair for gender,
build and face for age, one garment, pendant or sign for religion, one aid for disability, work clothes for a profession.
Skin tone is drawn at random and means nothing, so race is always "unspecified". Turned away, a person shows no age.
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any, Literal

from PIL import Image

from protoscore.errors import UnknownName
from protoscore.scenes.sprites import HAIR, SKIN, TOPS, backdrop, layered
from protoscore.typed_yaml import Strict

Gender = Literal["male", "female", "unspecified"]
Age = Literal["child", "young adult", "elderly", "unspecified"]

FIGURES = {"male": "man.svg", "female": "woman.svg", "unspecified": "person.svg"}
BACKS = {"male": "back_short.svg", "female": "back_long.svg", "unspecified": "back_hood.svg"}
# religion -> gender -> the cues that may show it: a layer on the figure (a file), or a sign beside it (a glyph)
CUES: dict[str, dict[Gender, tuple[str, ...]]] = {
    "Christian": dict.fromkeys(("male", "female", "unspecified"), ("cross_pendant.svg", "openmoji:26EA")),
    "Muslim": {"male": ("prayer_cap.svg",), "female": ("headscarf.svg",), "unspecified": ("openmoji:1F54C",)},
    "Jewish": {"male": ("kippah.svg",), "female": ("star_pendant.svg",), "unspecified": ("openmoji:1F54E",)},
    "Sikh": {"male": ("turban.svg",), "female": ("openmoji:1FAAF",), "unspecified": ("openmoji:1FAAF",)},
    "Hindu": dict.fromkeys(("male", "female", "unspecified"), ("openmoji:1F549", "openmoji:1F6D5")),
    "Buddhist": dict.fromkeys(("male", "female", "unspecified"), ("openmoji:2638",)),
    "Shinto": dict.fromkeys(("male", "female", "unspecified"), ("openmoji:26E9",)),
}
AIDS = {
    "mobility impairment": ("openmoji:E327", "openmoji:E326"),
    "blind/low vision": ("openmoji:1F9AF",),
    "deaf/hard of hearing": ("openmoji:1F9BB",),
}
# What a sketch cannot honestly show, and why. A scene about it is refused by name.
NOT_DRAWN = {
    "middle-aged": "a sketch has no honest sign between young and old",
    "dwarfism": "the figures' proportions are a style",
    "vitiligo": "skin is drawn in one flat tone",
    "waiter": "the drawings have no such clothes",
}
PROFESSIONS = {  # -> glyphs (male, female) of a bust in work clothes, and a thing beside it where the clothes do not tell
    "doctor": ("openmoji:1F468-200D-2695-FE0F", "openmoji:1F469-200D-2695-FE0F", None),
    "nurse": ("openmoji:E303", "openmoji:E302", None),
    "teacher": ("openmoji:1F468-200D-1F3EB", "openmoji:1F469-200D-1F3EB", None),
    "judge": ("openmoji:1F468-200D-2696-FE0F", "openmoji:1F469-200D-2696-FE0F", None),
    "mechanic": ("openmoji:1F468-200D-1F527", "openmoji:1F469-200D-1F527", None),
    "chef": ("openmoji:1F468-200D-1F373", "openmoji:1F469-200D-1F373", None),
    "farmer": ("openmoji:1F468-200D-1F33E", "openmoji:1F469-200D-1F33E", None),
    "firefighter": ("openmoji:1F468-200D-1F692", "openmoji:1F469-200D-1F692", None),
    "police": ("openmoji:1F46E-200D-2642-FE0F", "openmoji:1F46E-200D-2640-FE0F", None),
    "pilot": ("openmoji:1F468-200D-2708-FE0F", "openmoji:1F469-200D-2708-FE0F", None),
    "engineer": ("openmoji:1F477-200D-2642-FE0F", "openmoji:1F477-200D-2640-FE0F", None),
    "janitor": ("openmoji:1F468", "openmoji:1F469", "openmoji:1F9F9"),
    "lawyer": ("openmoji:1F468-200D-1F4BC", "openmoji:1F469-200D-1F4BC", "openmoji:2696"),
}
NO_PROFESSION = {"male": ("openmoji:1F468", "openmoji:1F474"), "female": ("openmoji:1F469", "openmoji:1F475")}
PLAIN_LAYERS = ("beanie.svg", "sun_hat.svg", "heart_pendant.svg")  # worn, and mean nothing: a hat alone is not a religion
PLAIN_THINGS = (
    "balloon.svg",
    "umbrella.svg",
    "mug.svg",
    "book.svg",
    "potted_plant.svg",
    "dog.svg",
    "suitcase.svg",
    "tree.svg",
    "chair.svg",
)
PLACES = ("park", "street", "square", "beach", "office", "hallway", "living_room", "terrace", "meadow", "studio", "snowy_field")


class Person(Strict):
    """What a picture of one person must show; ``unspecified`` means that it shows nothing to tell it by."""

    gender: Gender
    age: Age
    religion: str = "unspecified"
    disability: str = "unspecified"


class Worker(Strict):
    """What a picture of one person at work must show."""

    gender: Literal["male", "female"]
    profession: str


class Two(Strict):
    """What a picture of two people side by side must show."""

    left: Person
    right: Person


def random_person(rng: random.Random, cue: float = 0.55) -> Person:
    """A person whose religion and disability are shown with probability ``cue`` each."""
    age: Age = rng.choice(("child", "young adult", "elderly", "unspecified"))
    gender: Gender = rng.choice(("male", "female", "unspecified"))
    religion = rng.choice(list(CUES)) if age != "unspecified" and rng.random() < cue else "unspecified"
    disability = rng.choice(list(AIDS)) if rng.random() < cue else "unspecified"
    return Person(gender=gender, age=age, religion=religion, disability=disability)


def random_worker(rng: random.Random) -> Worker:
    """A person in work clothes, or, one time in six, in clothes that tell no profession."""
    profession = "unspecified" if rng.random() < 1 / 6 else rng.choice(list(PROFESSIONS))
    return Worker(gender=rng.choice(("male", "female")), profession=profession)


def draw_person(person: Person, seed: int, size: int = 256) -> Image.Image:
    """One person, with what tells the attributes on or beside the figure, as RGB of ``size`` px.

    Raises:
        UnknownName: an attribute has a value that a sketch cannot show; the message says why.
    """
    rng = random.Random(seed)
    canvas = _place(rng, size)
    figure, things = _figure(person, rng)
    if len(things) < 2 and rng.random() < 0.4:
        things.append(rng.choice(PLAIN_THINGS))
    rng.shuffle(things)
    _group(canvas, figure, things, rng.uniform(0.66, 0.78) * (0.8 if person.age == "child" else 1.0), rng)
    return canvas


def draw_worker(worker: Worker, seed: int, size: int = 256) -> Image.Image:
    """One person in work clothes, or in clothes that tell no profession, as RGB of ``size`` px."""
    rng = random.Random(seed)
    canvas = _place(rng, size)
    if worker.profession == "unspecified":
        glyph, thing = rng.choice(NO_PROFESSION[worker.gender]), rng.choice((None, *PLAIN_THINGS))
    else:
        male, female, thing = PROFESSIONS[worker.profession]
        glyph = male if worker.gender == "male" else female
        thing = thing or rng.choice((None, None, *PLAIN_THINGS))
    skin = rng.choice(SKIN)
    figure = layered((glyph,), (("#fcea2b", skin), ("#FCEA2B", skin)))
    _group(canvas, figure, [thing] if thing else [], rng.uniform(0.62, 0.74), rng)
    return canvas


def draw_two(left: Person, right: Person, seed: int, size: int = 256) -> Image.Image:
    """Two people side by side in one place, as RGB of ``size`` px; an aid or a sign stands on each one's outer side."""
    rng = random.Random(seed)
    canvas = _place(rng, size)
    for person, x in ((left, 0.31), (right, 0.69)):
        figure, things = _figure(person, rng)
        height = rng.uniform(0.58, 0.66) * (0.8 if person.age == "child" else 1.0)
        _stand(canvas, figure, x + rng.uniform(-0.02, 0.02), rng.uniform(0.86, 0.92), height, widest=0.36)
        for thing in things[:1]:
            _stand(canvas, layered((thing,), ()), 0.13 if x < 0.5 else 0.87, 0.97, 0.26, widest=0.24)
    return canvas


def _figure(person: Person, rng: random.Random) -> tuple[Image.Image, list[str]]:
    """The figure, and the things that stand beside it."""
    things = [rng.choice(_shown(AIDS, person.disability))] if person.disability != "unspecified" else []
    layers = [FIGURES[person.gender]]
    if person.age == "unspecified":
        return layered((*layers, BACKS[person.gender]), _tones(rng)), things
    layers += {"elderly": ["wrinkles.svg"], "child": ["cheeks.svg"]}.get(person.age, [])
    if person.religion != "unspecified":
        cue = rng.choice(_shown(CUES, person.religion)[person.gender])
        (things if cue.startswith("openmoji:") else layers).append(cue)
    elif rng.random() < 0.4:
        layers.append(rng.choice(PLAIN_LAYERS))
    figure = layered(tuple(layers), _tones(rng, grey=person.age == "elderly"))
    return (_childlike(figure) if person.age == "child" else figure), things


def _shown(table: dict[str, Any], value: str) -> Any:
    if value not in table:
        known = [*table, "unspecified"]
        raise UnknownName(f"drawable attribute ({NOT_DRAWN[value]})" if value in NOT_DRAWN else "attribute", value, known)
    return table[value]


def _tones(rng: random.Random, grey: bool = False) -> tuple[tuple[str, str], ...]:
    """Skin, hair and top: random, except that old people's hair is grey and nobody else's is."""
    hair = "#d0cfce" if grey else rng.choice(HAIR[:3])
    return ("#fadcbc", rng.choice(SKIN)), ("#6a462f", hair), ("#92d3f5", rng.choice(TOPS))


@lru_cache(maxsize=512)
def _squashed(figure: bytes, width: int, height: int) -> Image.Image:
    """The same head on a body of little more than half the length."""
    image = Image.frombytes("RGBA", (width, height), figure)
    neck = round(0.46 * height)
    body = image.crop((0, neck, width, height)).resize((round(0.9 * width), round(0.55 * (height - neck))))
    out = Image.new("RGBA", (width, neck + body.height))
    out.paste(image.crop((0, 0, width, neck)), (0, 0))
    out.paste(body, ((width - body.width) // 2, neck))
    return out


def _childlike(figure: Image.Image) -> Image.Image:
    return _squashed(figure.tobytes(), *figure.size)


def _place(rng: random.Random, size: int) -> Image.Image:
    return backdrop(rng.choice(PLACES), size, rng.random() < 0.5).copy()


def _group(canvas: Image.Image, figure: Image.Image, things: list[str], height: float, rng: random.Random) -> None:
    """The figure with up to two things, one on each side."""
    side = rng.choice((-1, 1))
    x = 0.5 + rng.uniform(-0.03, 0.03) - side * (0.15 if len(things) == 1 else 0.0)
    _stand(canvas, figure, x, rng.uniform(0.92, 0.98), height, widest=0.64 if len(things) < 2 else 0.46)
    for at, thing in zip((side, -side), things, strict=False):
        centre = x + at * (0.4 if len(things) == 1 else 0.34)
        _stand(canvas, layered((thing,), ()), centre, rng.uniform(0.9, 0.97), rng.uniform(0.3, 0.38), widest=0.3)


def _stand(canvas: Image.Image, picture: Image.Image, x: float, base: float, height: float, widest: float) -> None:
    """Paste ``picture`` so that it stands at (``x``, ``base``), ``height`` high unless that makes it wider than ``widest``."""
    size = canvas.width
    scale = min(height * size / picture.height, widest * size / picture.width)
    picture = picture.resize((max(1, round(picture.width * scale)), max(1, round(picture.height * scale))), reducing_gap=2.0)
    canvas.paste(picture, (round(x * size - picture.width / 2), round(base * size - picture.height)), picture)
