"""Scenes for training: triplets of the train split, and pictures drawn when a row is read."""

from __future__ import annotations

import random
from collections.abc import Sequence

from PIL import Image

from protoscore.benchmarks.protobias.schema import Triplet
from protoscore.benchmarks.protobias.taxonomy import load_taxonomy
from protoscore.benchmarks.protobias.writers.template import write
from protoscore.scenes.draw import draw_scene
from protoscore.scenes.geometry import assess
from protoscore.scenes.spec import SceneSpec
from protoscore.scenes.sprites import manifest, sprite
from protoscore.schema import derive_seed

SHARES = {"animals": 0.34, "objects": 0.42, "demography": 0.24}  # objects have five knobs and three kinds of ground
SIZES = (96, 128, 192)  # px; scenes are drawn at several sizes, since users' pictures come in any
ROUND = 30_000  # triplets written at once; texts repeat after that many, pictures never do


def scene_triplets(
    count: int, seed: int, domains: Sequence[str] = tuple(SHARES), held_out: Sequence[str] = ()
) -> list[Triplet]:
    """``count`` drawable triplets of the train split, shuffled; the same arguments give the same list.

    Args:
        held_out: subjects that no triplet may show, so that a test can show them for the first time.

    Raises:
        UnknownName: a held-out subject is none of the scene world's.
    """
    for subject in held_out:
        sprite(subject)
    refused = manifest().refused | dict.fromkeys(held_out, "held out")
    shares = {domain: SHARES[domain] / sum(SHARES[d] for d in domains) for domain in domains}
    triplets: list[Triplet] = []
    while len(triplets) < count:
        wanted = min(ROUND, count - len(triplets))
        counts = {domain: round(wanted * share) + 1 for domain, share in shares.items()}
        round_seed = derive_seed(seed, len(triplets))
        triplets += write(load_taxonomy(), counts, round_seed, split="train", refuses=refused.get)
    random.Random(seed).shuffle(triplets)
    return triplets[:count]


def draw_kept(spec_json: str, seed: int) -> Image.Image:
    """A scene that the geometric filter keeps; ``seed`` decides its size and everything that the spec leaves open."""
    return draw_set([spec_json], seed)[0]


def draw_set(spec_jsons: Sequence[str], seed: int) -> list[Image.Image]:
    """Scenes of one seed, which differ only where their specs do, and all of which the geometric filter keeps."""
    specs = [SceneSpec.model_validate_json(one) for one in spec_jsons]
    size = SIZES[derive_seed(seed, "size") % len(SIZES)]
    for attempt in range(20):
        drawn = [draw_scene(spec, derive_seed(seed, attempt), size) for spec in specs]
        if all(assess(spec, elements).score >= 8 for spec, (_, elements) in zip(specs, drawn, strict=True)):
            break
    return [image for image, _ in drawn]
