"""Drawing a scene, and measuring what of each thing can be seen."""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from protoscore.scenes.layout import Placed, arrange
from protoscore.scenes.spec import SceneSpec
from protoscore.scenes.sprites import HAIR, PALETTE, SKIN, TOPS, backdrop, draw_sprite, sprite
from protoscore.schema import derive_seed

TINTS = (("#fadcbc", SKIN), ("#6a462f", HAIR), ("#92d3f5", TOPS))  # of people: drawn at random, and mean nothing


class Element(NamedTuple):
    """One drawn thing: its box in fractions of the frame and the share of its ink that can be seen, in [0, 1]."""

    role: str
    key: str
    color: str | None
    x: float
    base: float
    width: float
    height: float
    visible: float


def draw_scene(spec: SceneSpec, seed: int, size: int = 256) -> tuple[Image.Image, list[Element]]:
    """Draw ``spec`` as an RGB image of ``size`` x ``size`` px; ``seed`` decides everything that the spec leaves open.

    Two specs with the same knob and one seed are one scene, of which only that is changed in which the specs differ: the
    pixels are the same elsewhere. For the freer form, in which side, size, colours and people differ too, give each its own.

    Raises:
        UnknownName: the scene world has no such subject, extra element or environment.
    """
    look = random.Random(derive_seed(seed, "look"))
    canvas = backdrop(spec.environment, size, look.random() < 0.5).copy()
    tints, hue = tuple((old, look.choice(new)) for old, new in TINTS), look.random()
    color = spec.color_tone or _own_color(spec.extra, hue)
    paints = {
        "subject": tints if sprite(spec.subject).person else _paint(_own_color(spec.subject, hue)),
        "extra": _paint(color),
    }
    layers = []
    for item in sorted(arrange(spec, random.Random(derive_seed(seed, "places"))), key=lambda p: p.base):
        picture = draw_sprite(item.key, paints[item.role], round(item.width * size), round(item.height * size), item.mirrored)
        corner = (round(item.box[0] * size), round(item.box[1] * size))
        _shadow(canvas, item, size)
        canvas.paste(picture, corner, picture)
        layers.append((item, picture, corner))
    seen = visible_shares([(picture, corner) for _, picture, corner in layers], size)
    elements = [
        Element(p.role, p.key, color if p.role == "extra" else None, p.x, p.base, p.width, p.height, round(v, 4))
        for (p, _, _), v in zip(layers, seen, strict=True)
    ]
    return canvas, elements


def _own_color(key: str, hue: float) -> str | None:
    """One of the colours that a thing may have, by a number in [0, 1); None where it has its own paint only."""
    colors = sprite(key).colors
    return colors[int(hue * len(colors))] if colors else None


def _paint(color: str | None) -> tuple[tuple[str, str], ...]:
    """Hex fills to replace, so that a thing takes on a colour."""
    if color is None:
        return ()
    main, shade = PALETTE[color]
    return (PALETTE["red"][0], main), (PALETTE["red"][1], shade)


def _shadow(canvas: Image.Image, item: Placed, size: int) -> None:
    """A soft patch under the thing, so that it stands on the ground and does not float."""
    width, height = item.width * size * 0.92, max(2.0, item.width * size * 0.12)
    patch = _ellipse(max(1, round(width)), max(1, round(height)))
    canvas.paste((40, 40, 40), (round(item.x * size - width / 2), round(item.base * size - height * 0.62)), patch)


def _ellipse(width: int, height: int) -> Image.Image:
    mask = Image.new("L", (width, height))
    ImageDraw.Draw(mask).ellipse((0, 0, width - 1, height - 1), fill=60)
    return mask


def visible_shares(layers: list[tuple[Image.Image, tuple[int, int]]], size: int) -> list[float]:
    """For each layer, the share of its ink that is inside the frame and under no later layer."""
    owner = np.full((size, size), -1, dtype=np.int16)
    total = []
    for index, (picture, (left, top)) in enumerate(layers):
        ink = np.asarray(picture)[..., 3] > 127
        total.append(max(1, int(ink.sum())))
        x0, y0 = max(left, 0), max(top, 0)
        x1, y1 = min(left + ink.shape[1], size), min(top + ink.shape[0], size)
        if x0 < x1 and y0 < y1:
            owner[y0:y1, x0:x1][ink[y0 - top : y1 - top, x0 - left : x1 - left]] = index
    counts = np.bincount(owner.ravel() + 1, minlength=len(layers) + 1)[1:]
    return [float(n / t) for n, t in zip(counts, total, strict=True)]
