"""Training pairs: which two cells of a triplet are compared, from freshly drawn scenes or from a published dataset."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from datasets import Dataset, load_dataset

from protoscore.benchmarks.protobias.taxonomy import load_taxonomy
from protoscore.errors import ConfigError
from protoscore.image_filters.geometric import assess
from protoscore.scenes.draw import draw_scene
from protoscore.scenes.sprites import manifest
from protoscore.schema import DOMAINS, Cell, SceneSpec, derive_seed
from protoscore.writers.template import write

# kind of pair -> (chosen, rejected) cells. The paper trains on "incongruent" alone, where the less typical subject is
# always right; with "congruent" mixed in evenly the subject says nothing about the answer.
KINDS: dict[str, list[tuple[Cell, Cell]]] = {
    "incongruent": [(Cell.NON_CORRECT, Cell.PROTO_VIOLATED)],
    "congruent": [(Cell.PROTO_CORRECT, Cell.NON_VIOLATED)],
    "same_subject": [(Cell.NON_CORRECT, Cell.NON_VIOLATED), (Cell.PROTO_CORRECT, Cell.PROTO_VIOLATED)],
}
DRAW_SIZES = (96, 128, 192, 256)  # px; scenes are drawn at several sizes, since users' pictures come in any


@dataclass
class PairArguments:
    """Where training pairs come from."""

    dataset: str = field(
        default="scenes", metadata={"help": "'scenes' draws fresh ones; else a Hub id or folder with a 'controls' config"}
    )
    pairs: int = field(default=12_000, metadata={"help": "number of training pairs (12,000 in the paper)"})
    incongruent: float = field(default=1.0, metadata={"help": "share of pairs: non-prototype right, prototype wrong"})
    congruent: float = field(default=0.0, metadata={"help": "share of pairs: prototype right, non-prototype wrong"})
    same_subject: float = field(default=0.0, metadata={"help": "share of pairs: one subject, right and wrong"})
    margin: float = field(default=0.5, metadata={"help": "margin of the ranking loss"})
    pair_seed: int = field(default=1, metadata={"help": "seed of the triplets and scenes"})
    image_size: int = field(default=512, metadata={"help": "pixels a side that pictures are scaled to"})


def training_pairs(args: PairArguments) -> Dataset:
    """Rows of ``text``, ``chosen``, ``rejected`` (PIL images, made on access) and ``margin``, from the train split.

    Raises:
        ConfigError: the shares do not describe a mix, or the dataset has no four cells.
    """
    kinds = _schedule(args)
    return _from_scenes(args, kinds) if args.dataset == "scenes" else _from_dataset(args, kinds)


def _schedule(args: PairArguments) -> list[tuple[Cell, Cell]]:
    """The two cells of each pair, drawn by the mix."""
    shares = {kind: getattr(args, kind) for kind in KINDS}
    if min(shares.values()) < 0 or abs(sum(shares.values()) - 1) > 1e-6:
        raise ConfigError(f"the shares {shares} must be at least 0 and sum to 1; change them in the recipe")
    rng = random.Random(f"mix-{args.pair_seed}")
    drawn = rng.choices(list(shares), weights=list(shares.values()), k=args.pairs)
    return [rng.choice(KINDS[kind]) for kind in drawn]


def _from_scenes(args: PairArguments, kinds: list[tuple[Cell, Cell]]) -> Dataset:
    refused = manifest().refused
    share = {"animals": 0.34, "objects": 0.42, "demography": 0.24}  # objects have five knobs and three kinds of ground
    wanted = {domain: round(args.pairs * share[domain]) for domain in DOMAINS}
    # A third of Demography can be drawn, so three times as many are written; texts repeat across epochs, pictures do not.
    rows, epoch = [], 0
    while len(rows) < args.pairs:
        counts = {d: min(n * (3 if d == "demography" else 1), 12_000) for d, n in wanted.items()}
        for t in write(load_taxonomy(), counts, seed=derive_seed(args.pair_seed, epoch), split="train"):
            if t.non_subject not in refused and t.proto_subject not in refused:
                rows.append(t)
        epoch += 1
    random.Random(args.pair_seed).shuffle(rows)
    table = [
        {"text": t.text, "seed": derive_seed(args.pair_seed, i), "chosen": _json(t, a), "rejected": _json(t, b)}
        for i, (t, (a, b)) in enumerate(zip(rows, kinds, strict=False))
    ]
    return Dataset.from_list(table).with_transform(_Draw(args.margin))


def _json(triplet, cell: Cell) -> str:
    return triplet.scene(cell).model_dump_json()


class _Draw:
    """Draws both pictures of a row when it is read; the row's seed makes them the same each time."""

    def __init__(self, margin: float):
        self.margin = margin

    def __call__(self, batch: dict) -> dict:
        pictures = [
            [self._picture(spec, seed, side) for spec, seed in zip(batch[side], batch["seed"], strict=True)]
            for side in ("chosen", "rejected")
        ]
        margins = [self.margin] * len(batch["text"])
        return {"text": batch["text"], "chosen": pictures[0], "rejected": pictures[1], "margin": margins}

    @staticmethod
    def _picture(spec_json: str, seed: int, side: str):
        spec = SceneSpec.model_validate_json(spec_json)
        size = DRAW_SIZES[derive_seed(seed, "size") % len(DRAW_SIZES)]
        for attempt in range(20):
            image, elements = draw_scene(spec, derive_seed(seed, side, attempt), size)
            if assess(spec, elements).score >= 8:
                break
        return image


def _from_dataset(args: PairArguments, kinds: list[tuple[Cell, Cell]]) -> Dataset:
    data = load_dataset(args.dataset, "controls", split="train")
    missing = [f"{cell}_image" for cell in Cell if f"{cell}_image" not in data.column_names]
    if missing:
        raise ConfigError(f"{args.dataset} has no column {missing[0]}; training needs a 'controls' config with four cells")
    order = random.Random(args.pair_seed).sample(range(len(data)), min(args.pairs, len(data)))
    cells = kinds[: len(order)]

    def read(batch: dict) -> dict:
        picked = [cells[i] for i in batch["position"]]
        chosen = [batch[f"{a}_image"][i] for i, (a, _) in enumerate(picked)]
        rejected = [batch[f"{b}_image"][i] for i, (_, b) in enumerate(picked)]
        return {"text": batch["text"], "chosen": chosen, "rejected": rejected, "margin": [args.margin] * len(chosen)}

    data = data.select(order)
    return data.add_column("position", list(range(len(order)))).with_transform(read)
