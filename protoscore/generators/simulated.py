"""Models whose diversity is known: each picture draws the asked attribute's value from a stated distribution.

``simulated:3`` draws as if there were three values (exp of the entropy is 3, or all values where there are fewer): the values
in an order of their own for each concept, each so many times as likely as the next. Everything else (the place, where things
stand, how large they are) is drawn independently of it. Two further models are confounded on purpose: ``simulated:place``
changes the place and keeps the attribute, ``simulated:attribute`` draws one of four values and keeps the place.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from protoscore.errors import ConfigError
from protoscore.generators import Generated, Wanted
from protoscore.scenes.alone import Open, draw_alone
from protoscore.scenes.sprites import drawing_revision
from protoscore.schema import Status, content_id, derive_seed

CONFOUNDED = {"place": 1.0, "attribute": 4.0}  # model -> effective number of the attribute's values


def distribution(values: int, effective: float) -> NDArray[np.float64]:
    """Falling probabilities, each a constant times the one before, with exp(entropy) = min(effective, values)."""
    if effective >= values:
        return np.full(values, 1 / values)
    steps = np.arange(values)

    def excess(ratio: float) -> float:
        p = np.exp(-ratio * steps)
        p /= p.sum()
        return float(-(p * np.log(np.where(p > 0, p, 1.0))).sum() - np.log(effective))

    p = np.exp(-(brentq(excess, 1e-9, 700.0) if effective > 1 else 700.0) * steps)
    return p / p.sum()


class Simulated:
    """Draws of what is left open in a wish of ``scenes.alone.Open``, which names the values.

    Args:
        source: the effective number of values, 1 or more; or ``place`` or ``attribute``.
        ground: ``free``, a place anew for every picture, or ``same``, one for each concept. The confounded have their own.
        size: px.
    """

    name = "simulated"
    photographic = False
    batch_size = 16

    def __init__(self, source: str, ground: Literal["free", "same"] = "free", size: int = 128):
        if isinstance(size, bool) or not 16 <= size <= 4096:
            raise ConfigError(f"simulated: size is a number of pixels from 16 to 4096, not {size!r}")
        self.effective = CONFOUNDED[source] if source in CONFOUNDED else _number(source)
        self.ground = {"place": "free", "attribute": "same"}.get(source, ground)
        self.revision = drawing_revision()
        self.parameters: dict[str, Any] = {"effective": self.effective, "ground": self.ground, "size": size}

    def generate(self, wanted: Sequence[Wanted]) -> list[Generated]:
        return [self._one(one) for one in wanted]

    def _one(self, wanted: Wanted) -> Generated:
        spec = wanted.spec
        if not isinstance(spec, Open):
            return Generated(None, Status.REFUSED, "a simulated model draws a concept with a named attribute, and this is none")
        concept = content_id(spec.model_dump_json())
        order = random.Random(derive_seed(concept, "order")).sample(range(len(spec.values)), len(spec.values))
        rng = random.Random(derive_seed(wanted.seed, "choice"))
        (index,) = rng.choices(order, distribution(len(order), self.effective).tolist())
        home = random.Random(derive_seed(concept, "place"))
        place = (rng if self.ground == "free" else home).choice(spec.places)
        picture = spec.with_value(index, place, rng)
        shown = {"value": spec.values[index], **picture.model_dump()}
        return Generated(draw_alone(picture, wanted.seed, self.parameters["size"]), geometry=shown)


def _number(source: str) -> float:
    try:
        effective = float(source)
    except ValueError:
        effective = 0.0
    if not 1 <= effective < float("inf"):
        known = ", ".join(CONFOUNDED)
        raise ConfigError(f"simulated: {source!r} is neither an effective number of values from 1, nor one of: {known}")
    return effective


def create(source: str | None = None, **options: Any) -> Simulated:
    if not source:
        raise ConfigError("simulated needs how diverse it is: simulated:3, simulated:place or simulated:attribute")
    return Simulated(source, **options)
