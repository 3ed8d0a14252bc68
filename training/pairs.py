"""Training pairs: which two cells of a triplet are compared, from freshly drawn scenes or from a published dataset."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from datasets import Dataset, load_dataset
from scenes import SHARES, draw_kept, scene_triplets

from protoscore.errors import ConfigError, UnknownName
from protoscore.schema import Cell, derive_seed

# kind of pair -> (chosen, rejected) cells. The paper trains on "incongruent" alone, where the less typical subject is
# always right; with "congruent" mixed in evenly the subject says nothing about the answer.
KINDS: dict[str, list[tuple[Cell, Cell]]] = {
    "incongruent": [(Cell.NON_CORRECT, Cell.PROTO_VIOLATED)],
    "congruent": [(Cell.PROTO_CORRECT, Cell.NON_VIOLATED)],
    "same_subject": [(Cell.NON_CORRECT, Cell.NON_VIOLATED), (Cell.PROTO_CORRECT, Cell.PROTO_VIOLATED)],
}


@dataclass
class PairArguments:
    """Where training pairs come from."""

    dataset: str = field(
        default="scenes", metadata={"help": "'scenes' draws fresh ones; else a Hub id or folder with a 'controls' config"}
    )
    pairs: int = field(default=12_000, metadata={"help": "number of training pairs (12,000 in the paper)"})
    incongruent: float = field(default=0.34, metadata={"help": "share of pairs: non-prototype right, prototype wrong"})
    congruent: float = field(default=0.33, metadata={"help": "share of pairs: prototype right, non-prototype wrong"})
    same_subject: float = field(default=0.33, metadata={"help": "share of pairs: one subject, right and wrong"})
    domains: list[str] = field(default_factory=lambda: list(SHARES), metadata={"help": "domains of freshly drawn scenes"})
    held_out: list[str] = field(default_factory=list, metadata={"help": "subjects that no training scene may show"})
    margin: float = field(default=0.5, metadata={"help": "margin of the ranking loss"})
    pair_seed: int = field(default=1, metadata={"help": "seed of the triplets and scenes"})
    keep_chat_template: bool = field(default=False, metadata={"help": "the base's own wording around a text, not ProtoScore's"})
    image_size: int = field(default=512, metadata={"help": "pixels a side that pictures are scaled to"})


def training_pairs(args: PairArguments) -> Dataset:
    """Rows of ``text``, ``chosen``, ``rejected`` (PIL images, made on access) and ``margin``, from the train split.

    Raises:
        ConfigError: the shares do not describe a mix, or the dataset has no four cells.
    """
    kinds = _schedule(args)
    for domain in args.domains:
        if domain not in SHARES:
            raise UnknownName("domain", domain, SHARES)
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
    triplets = scene_triplets(args.pairs, args.pair_seed, args.domains, args.held_out)
    table = [
        {
            "text": t.text,
            "seed": derive_seed(args.pair_seed, i),
            "chosen": t.scene(chosen).model_dump_json(),
            "rejected": t.scene(rejected).model_dump_json(),
        }
        for i, (t, (chosen, rejected)) in enumerate(zip(triplets, kinds, strict=True))
    ]

    def draw(batch: dict) -> dict:
        """Both pictures of each row, each laid out on its own; the row's seed makes them the same each time."""
        sides = {
            side: [draw_kept(spec, derive_seed(seed, side)) for spec, seed in zip(batch[side], batch["seed"], strict=True)]
            for side in ("chosen", "rejected")
        }
        return {"text": batch["text"], **sides, "margin": [args.margin] * len(batch["text"])}

    return Dataset.from_list(table).with_transform(draw)


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
