"""Where things stand. Coordinates are fractions of the frame, y grows downwards, ``base`` is where a thing stands.

One arrangement a knob. Each jitters everything that the knob does not fix, without looking whether the result is clear:
that is the filter's work (:mod:`protoscore.scenes.geometry`), and a few scenes in a hundred do fail it.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from protoscore.scenes.spec import SceneSpec
from protoscore.scenes.sprites import aspect


class Placed(NamedTuple):
    """One thing in the frame."""

    role: str  # "subject" or "extra"
    key: str
    x: float  # centre
    base: float
    width: float
    height: float

    @property
    def box(self) -> tuple[float, float, float, float]:
        return (self.x - self.width / 2, self.base - self.height, self.x + self.width / 2, self.base)


def place(role: str, key: str, x: float, base: float, size: float, widest: float = 1.0) -> Placed:
    """A thing of about ``size``: thin things are let grow longer, so that their area is comparable."""
    width, height = aspect(key)
    scale = min(1.25 * size / max(width, height), 0.9 * size / (width * height) ** 0.5, widest / width)
    return Placed(role, key, x, base, width * scale, height * scale)


def arrange(spec: SceneSpec, rng: random.Random) -> list[Placed]:
    """Lay out a scene: the subject and ``spec.count`` extras."""
    if spec.spatial:
        return _spatial(spec, rng)
    if spec.scale_size:
        return _beside(spec, rng, *((0.27, 0.55) if spec.scale_size == "larger" else (0.46, 0.15)))
    if spec.layout_relation in ("in_front", "behind"):
        return _depth(spec, rng)
    if spec.layout_relation:
        side = -1 if spec.layout_relation == "left" else 1
        return _beside(spec, rng, 0.46, 0.27, side)
    if spec.color_tone:
        return _beside(spec, rng, 0.44, 0.33)
    return _count(spec, rng)


def _beside(spec: SceneSpec, rng: random.Random, subject: float, extra: float, side: int = 0) -> list[Placed]:
    """Subject and one extra side by side on the same ground, on a random side unless one is asked for."""
    side = side or rng.choice((-1, 1))
    base = rng.uniform(0.84, 0.92)
    size = rng.uniform(0.93, 1.07)
    x = 0.5 - side * rng.uniform(0.17, 0.2)
    main = place("subject", spec.subject, x, base, subject * size, widest=0.56)
    other = place("extra", spec.extra, 0, base + rng.uniform(-0.02, 0.04), extra * size, widest=0.42)
    edge = main.x + side * (main.width / 2 + other.width / 2 + rng.uniform(0.02, 0.07))
    return [main, other._replace(x=edge)]


def _depth(spec: SceneSpec, rng: random.Random) -> list[Placed]:
    """One extra before or behind the subject: nearly the same column, clearly another depth."""
    side = rng.choice((-1, 1))
    if spec.layout_relation == "in_front":
        x = rng.uniform(0.42, 0.58)
        main = place("subject", spec.subject, x, rng.uniform(0.66, 0.7), rng.uniform(0.43, 0.48))
        shift = side * rng.uniform(0.02, 0.1)
        return [main, place("extra", spec.extra, x + shift, rng.uniform(0.93, 0.96), rng.uniform(0.25, 0.29))]
    # Behind: further up the ground and half past the subject's side. Straight above, it would seem to stand on top.
    main = place("subject", spec.subject, 0.5 - side * rng.uniform(0.05, 0.1), rng.uniform(0.9, 0.95), 0.4, widest=0.5)
    back = min(rng.uniform(0.19, 0.23), max(0.16, 0.75 * main.height))  # not beyond a low thing's top
    other = place("extra", spec.extra, 0.0, main.base - back, rng.uniform(0.34, 0.38), widest=0.42)
    edge = main.x + side * (main.width / 2 + other.width * rng.uniform(0.0, 0.1))
    return [main, other._replace(x=edge)]


def _spatial(spec: SceneSpec, rng: random.Random) -> list[Placed]:
    """One extra close to the viewer and big, or far away at the horizon and small."""
    side = rng.choice((-1, 1))
    near = spec.spatial == "foreground"
    main_size, main_base, main_x = (0.28, rng.uniform(0.6, 0.64), 0.18) if near else (0.48, rng.uniform(0.9, 0.95), 0.12)
    size, base, x = (0.42, rng.uniform(0.95, 0.98), 0.24) if near else (0.15, rng.uniform(0.51, 0.54), 0.32)
    main = place("subject", spec.subject, 0.5 - side * main_x, main_base, main_size * rng.uniform(0.94, 1.06), widest=0.6)
    other = place("extra", spec.extra, 0.5 + side * x, base, size * rng.uniform(0.94, 1.06), widest=0.5)
    return [main, other]


SLOTS = ((0.11, 0.94), (0.305, 0.95), (0.5, 0.96), (0.695, 0.95), (0.89, 0.94), (0.1, 0.68), (0.9, 0.68))


def _count(spec: SceneSpec, rng: random.Random) -> list[Placed]:
    """The extras on a random choice of well-separated spots around the subject."""
    main = place("subject", spec.subject, rng.uniform(0.46, 0.54), rng.uniform(0.66, 0.7), rng.uniform(0.42, 0.46), widest=0.56)
    size = rng.uniform(0.17, 0.19)
    extras = [
        place("extra", spec.extra, x + rng.uniform(-0.012, 0.012), base + rng.uniform(-0.02, 0.02), size, widest=0.175)
        for x, base in rng.sample(SLOTS, spec.count)
    ]
    return [main, *extras]
