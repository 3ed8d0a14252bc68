"""One kind of thing on its ground and nothing else; and what is left open where only a concept is asked for."""

from __future__ import annotations

import random
from typing import Literal

from PIL import Image
from pydantic import Field, model_validator

from protoscore.scenes.sprites import PALETTE, aspect, backdrop, draw_sprite, sprite
from protoscore.schema import derive_seed
from protoscore.typed_yaml import Strict

TONES = PALETTE | {  # colour word -> (main, shade); a thing that stands alone may take any
    "orange": ("#e27022", "#b35513"), "pink": ("#ffa7c0", "#e67a94"), "white": ("#ffffff", "#d0cfce"),
}  # fmt: skip
SLOTS = (0.1, 0.3, 0.5, 0.7, 0.9)  # where several of one thing stand, left to right, as fractions of the frame
NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}


class Alone(Strict):
    """What one picture shows."""

    key: str  # of the sprite
    environment: str
    color: str | None = None  # None: its own paint
    count: int = Field(1, ge=1, le=5)


class Open(Strict):
    """A concept, and an attribute of it that a picture must choose: by name the values, the things and the places there are.

    ``things`` is one sprite for all values, or for the attribute ``kind`` one for each; ``places`` are backdrops, for the
    attribute ``place`` one for each value.
    """

    attribute: Literal["color", "place", "kind", "number"]
    values: tuple[str, ...] = Field(min_length=2)
    things: tuple[str, ...] = Field(min_length=1)
    places: tuple[str, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _fits(self) -> Open:
        each = {"kind": self.things, "place": self.places}.get(self.attribute)
        if each is not None and len(each) != len(self.values):
            raise ValueError(f"{self.attribute}: {len(self.values)} values, but {len(each)} to show them by")
        if self.attribute != "kind" and len(self.things) > 1:
            raise ValueError(f"{self.attribute}: one thing has the values, not {len(self.things)}")
        known = {"color": tuple(TONES), "number": tuple(NUMBERS)}.get(self.attribute, self.values)
        for value in self.values:
            if value not in known:
                raise ValueError(f"a scene shows no {self.attribute} {value!r}; there are: {', '.join(known)}")
        return self

    def with_value(self, index: int, place: str, rng: random.Random) -> Alone:
        """A picture of the value of this number; what no attribute is of is drawn at random."""
        key = self.things[index if self.attribute == "kind" else 0]
        own = sprite(key).colors
        color = self.values[index] if self.attribute == "color" else rng.choice(own) if own else None
        count = NUMBERS[self.values[index]] if self.attribute == "number" else 1
        return Alone(key=key, environment=self.places[index] if self.attribute == "place" else place, color=color, count=count)


def draw_alone(spec: Alone, seed: int, size: int = 256) -> Image.Image:
    """Draw ``spec`` as RGB of ``size`` x ``size`` px; ``seed`` decides where the things stand and how large they are."""
    rng = random.Random(derive_seed(seed, "alone"))
    canvas = backdrop(spec.environment, size, rng.random() < 0.5).copy()
    paint = tuple(zip(TONES["red"], TONES[spec.color], strict=True)) if spec.color else ()
    slots = sorted(rng.sample(SLOTS, spec.count)) if spec.count > 1 else [rng.uniform(0.35, 0.65)]
    largest = rng.uniform(0.4, 0.65) if spec.count == 1 else rng.uniform(0.17, 0.21)
    width, height = aspect(spec.key)
    scale = largest * size / max(width, height)
    for x in slots:
        mirrored = sprite(spec.key).mirror and rng.random() < 0.5
        picture = draw_sprite(spec.key, paint, round(scale * width), round(scale * height), mirrored)
        base = rng.uniform(0.8, 0.95) if spec.count == 1 else rng.uniform(0.6, 0.95)
        canvas.paste(picture, (round(x * size - picture.width / 2), round(base * size) - picture.height), picture)
    return canvas
