"""What every task of the embedded judge is made of: a question whose right answer the drawing itself gives, and its seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from PIL import Image

from protoscore.benchmarks.protobias.schema import Triplet
from protoscore.benchmarks.protobias.taxonomy import load_taxonomy
from protoscore.benchmarks.protobias.writers.template import write
from protoscore.scenes.draw import Element, draw_scene
from protoscore.scenes.geometry import assess
from protoscore.scenes.spec import SceneSpec
from protoscore.scenes.sprites import manifest
from protoscore.schema import derive_seed
from training.scenes import SIZES

Span = tuple[int, int]  # first and last letter, as in a slice


class SceneQuestion(NamedTuple):
    """One question: pictures (RGB), the fields of the item, the answer by field, and for training, where the field ``text``
    has words that do not fit the picture."""

    images: list[Image.Image]
    fields: dict[str, Any]
    answer: dict[str, Any]
    wrong: list[Span] | None = None


class Seeded(random.Random):
    """A random stream for one example, and where it comes from."""

    def __init__(self, task: str, split: str, number: int):
        super().__init__(derive_seed(task, split, number))
        self.task, self.number = task, number


class Task(NamedTuple):
    """What the judge learns for one protocol, or in training only.

    Attributes:
        name: of the protocol, or of what no protocol asks.
        draw: the question of a seed, of the split "train" or "test". Where a text is compared with a picture, an even seed
            and the next odd one share the text: it fits the first picture only.
        share: of the training questions, relative to the other tasks'.
        words: texts of its questions that no prompt and no label holds; each of their words becomes a token.
        phrases: further pieces of its questions and answers that become one token each, with the words that they stand for.
        pictures: of one question, where there are several: such questions come in batches of their own, so that they do not
            pad the others.
        by: fields of the item by whose values the right answers are counted apart.
        measures: further rates, by name: whether a row (answer_<field>, true_<field>) counts.
    """

    name: str
    draw: Callable[[Seeded, str], SceneQuestion]
    share: float
    words: Callable[[], Iterable[str]] = tuple
    phrases: Callable[[], Mapping[str, str]] = dict
    pictures: int = 1
    by: tuple[str, ...] = ()
    measures: Mapping[str, Callable[[dict[str, Any]], bool]] = {}


def draw(spec: SceneSpec, rng: random.Random, fits: bool = False, size: int = 0) -> tuple[Image.Image, list[Element]]:
    """A drawing of ``spec``; with ``fits`` one that shows it clearly."""
    for _ in range(20):
        image, elements = draw_scene(spec, rng.getrandbits(60), size or size_of(rng))
        if not fits or assess(spec, elements).score >= 8:
            break
    return image, elements


def size_of(rng: random.Random) -> int:
    return rng.choice((*SIZES, 128))


@cache
def triplets_of(split: str, people: bool = True) -> list[Triplet]:
    counts = {"animals": 4000, "objects": 4000, "demography": 2000 if people else 0}
    seed = 31 if split == "train" else 32
    return list(write(load_taxonomy(), counts, seed, split=split, refuses=manifest().refused.get))


@cache
def triplets_in(split: str, domain: str) -> list[Triplet]:
    return [t for t in triplets_of(split) if t.domain == domain]
