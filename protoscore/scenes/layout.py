"""Where things stand. Coordinates are fractions of the frame, y grows downwards, ``base`` is where a thing stands.

One arrangement a knob. Its random numbers are drawn before anything is placed, and no place depends on what else is shown:
so two scenes of one knob and one random stream differ only where their specs do. With another count, things come or go; with
another place or size the extra element moves and grows; another thing stands in the same spot. The jitter does not look
whether the result is clear: that is the filter's work (:mod:`protoscore.scenes.geometry`), and a few scenes in a hundred
do fail it.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from protoscore.scenes.spec import SceneSpec
from protoscore.scenes.sprites import aspect, draw_sprite, ink_share, sprite

GRID = 96  # px of the frame on which a covered share is measured before anything is drawn


class Placed(NamedTuple):
    """One thing in the frame."""

    role: str  # "subject" or "extra"
    key: str
    x: float  # centre
    base: float
    width: float
    height: float
    mirrored: bool = False

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
    mirrored = [rng.random() < 0.5 for _ in range(1 + len(SLOTS))]
    placed = [p._replace(mirrored=m and sprite(p.key).mirror) for p, m in zip(_stand(spec, rng), mirrored, strict=False)]
    if spec.layout_relation in ("in_front", "behind"):
        main, extra = placed
        return [main, _overlapping(main, extra, spec.layout_relation == "in_front", rng)]
    return placed


def _stand(spec: SceneSpec, rng: random.Random) -> list[Placed]:
    if spec.spatial:
        return _spatial(spec, rng)
    if spec.scale_size:
        return _scale(spec, rng)
    if spec.layout_relation in ("in_front", "behind"):
        return _depth(spec, rng)
    if spec.layout_relation:
        return _sides(spec, rng)
    if spec.color_tone:
        return _beside(spec, rng)
    return _count(spec, rng)


def _beside(spec: SceneSpec, rng: random.Random) -> list[Placed]:
    """Subject and one extra side by side on the same ground."""
    side, x, away, size = _side(rng), rng.uniform(0.19, 0.22), rng.uniform(0.2, 0.38), _near_one(rng)
    base, step = rng.uniform(0.84, 0.92), rng.uniform(-0.02, 0.04)
    main = place("subject", spec.subject, 0.5 - side * x, base, 0.44 * size, widest=0.5)
    return [main, place("extra", spec.extra, 0.5 + side * away, base + step, 0.33 * size, widest=0.38)]


def _sides(spec: SceneSpec, rng: random.Random) -> list[Placed]:
    """The subject in the middle, one extra to the left or to the right of it."""
    x, away, size = rng.uniform(0.47, 0.53), rng.uniform(0.315, 0.385), _near_one(rng)
    base, step = rng.uniform(0.82, 0.9), rng.uniform(-0.02, 0.04)
    side = -1 if spec.layout_relation == "left" else 1
    main = place("subject", spec.subject, x, base, 0.44 * size, widest=0.43)
    return [main, place("extra", spec.extra, x + side * away, base + step, 0.27 * size, widest=0.25)]


def _depth(spec: SceneSpec, rng: random.Random) -> list[Placed]:
    """One extra lower or further up than the subject; :func:`_overlapping` moves it sideways."""
    side, x, base, size = _side(rng), rng.uniform(0.47, 0.53), rng.uniform(0.8, 0.84), _near_one(rng)
    near, far = rng.uniform(0.08, 0.11), rng.uniform(0.11, 0.15)
    main = place("subject", spec.subject, x, base, 0.45 * size, widest=0.54)
    if spec.layout_relation == "in_front":
        grown = 0.28 * size * min(1.5, 0.75 / ink_share(spec.extra)) ** 0.5  # what covers is ink
        return [main, place("extra", spec.extra, x + side * 0.01, base + near, grown)]
    return [main, place("extra", spec.extra, x + side * 0.01, base - far, 0.38 * size, widest=0.42)]


def _overlapping(main: Placed, extra: Placed, in_front: bool, rng: random.Random) -> Placed:
    """The extra moved away from the subject's middle, and grown where need be, until about the wanted share is covered.

    This is the one place that depends on what is shown: a share of a bicycle is covered elsewhere than one of a bed.
    """
    wanted, slip = rng.uniform(0.18, 0.36), rng.uniform(-0.03, 0.03)
    side = 1 if extra.x > main.x else -1
    found, best = extra, 1.0
    for grown in (1.0, 1.2, 1.4):
        for step in range(23):
            one = extra._replace(x=extra.x + side * 0.02 * step, width=grown * extra.width, height=grown * extra.height)
            missed = abs(_covered(*((main, one) if in_front else (one, main))) - wanted)
            found, best = (one, missed) if missed < best else (found, best)
        if best < 0.03:
            break
    return found._replace(x=found.x + slip)


def _covered(behind: Placed, front: Placed) -> float:
    """The share of the ink of ``behind`` that lies under the ink of ``front``."""
    under, over = _ink(behind), _ink(front)
    left, top = (round(GRID * (front.box[i] - behind.box[i])) for i in (0, 1))
    height, width = under.shape
    y0, y1, x0, x1 = max(0, top), min(height, top + over.shape[0]), max(0, left), min(width, left + over.shape[1])
    both = under[y0:y1, x0:x1] & over[y0 - top : y1 - top, x0 - left : x1 - left] if y0 < y1 and x0 < x1 else under[:0]
    return float(both.sum() / max(1, under.sum()))


def _ink(item: Placed) -> NDArray[np.bool_]:
    picture = draw_sprite(item.key, (), round(GRID * item.width), round(GRID * item.height), item.mirrored)
    return np.asarray(picture)[..., 3] > 127


def _spatial(spec: SceneSpec, rng: random.Random) -> list[Placed]:
    """One extra close to the viewer and big, or far away at the horizon and small."""
    side, x, away, size = _side(rng), rng.uniform(0.18, 0.21), rng.uniform(0.22, 0.33), _near_one(rng)
    base, near, far = rng.uniform(0.74, 0.8), rng.uniform(0.93, 0.98), rng.uniform(0.51, 0.55)
    main = place("subject", spec.subject, 0.5 - side * x, base, 0.42 * size, widest=0.48)
    if spec.spatial == "foreground":
        return [main, place("extra", spec.extra, 0.5 + side * away, near, 0.4 * size, widest=0.44)]
    return [main, place("extra", spec.extra, 0.5 + side * away, far, 0.15 * size, widest=0.3)]


def _scale(spec: SceneSpec, rng: random.Random) -> list[Placed]:
    """One extra beside the subject on the same ground, clearly smaller or larger than it."""
    side, x, away, size = _side(rng), rng.uniform(0.27, 0.29), rng.uniform(0.19, 0.26), _near_one(rng)
    base, step, grown = rng.uniform(0.86, 0.93), rng.uniform(-0.02, 0.04), rng.uniform(0.85, 1.06)
    main = place("subject", spec.subject, 0.5 - side * x, base, 0.33 * size, widest=0.36)
    grown *= 0.57 if spec.scale_size == "larger" else 0.16
    return [main, place("extra", spec.extra, 0.5 + side * away, base + step, grown * size, widest=0.52)]


SLOTS = ((0.11, 0.94), (0.305, 0.95), (0.5, 0.96), (0.695, 0.95), (0.89, 0.94), (0.1, 0.68), (0.9, 0.68))


def _count(spec: SceneSpec, rng: random.Random) -> list[Placed]:
    """The extras on the first of a random order of well-separated spots around the subject."""
    x, base, size, each = rng.uniform(0.46, 0.54), rng.uniform(0.66, 0.7), rng.uniform(0.42, 0.46), rng.uniform(0.17, 0.19)
    spots = [(x + rng.uniform(-0.03, 0.03), y + rng.uniform(-0.03, 0.03)) for x, y in rng.sample(SLOTS, len(SLOTS))]
    extras = [place("extra", spec.extra, *spot, each, widest=0.175) for spot in spots[: spec.count]]
    return [place("subject", spec.subject, x, base, size, widest=0.56), *extras]


def _side(rng: random.Random) -> int:
    return rng.choice((-1, 1))


def _near_one(rng: random.Random) -> float:
    return rng.uniform(0.94, 1.06)
