"""Training pairs: which two cells of a triplet are compared, from freshly drawn scenes or from a published dataset."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from datasets import Dataset, load_dataset
from scenes import SHARES, draw_kept, scene_triplets

from protoscore.benchmarks.protobias.schema import Cell
from protoscore.errors import ConfigError, UnknownName
from protoscore.schema import derive_seed

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
    eval_triplets: int = field(
        default=0, metadata={"help": "triplets for the five quantities during training; of the train side, but in no pair"}
    )
    head_from: list[str] = field(
        default_factory=list, metadata={"help": "two answers, e.g. 'yes no': the head starts as their logits' difference"}
    )
    vision_cache_gb: float = field(
        default=0.0, metadata={"help": "memory a process for features of a frozen vision tower; for evaluations and epochs"}
    )
    keep_chat_template: bool = field(default=False, metadata={"help": "the base's own wording around a text, not ProtoScore's"})
    image_size: int = field(default=512, metadata={"help": "pixels a side that pictures are scaled to"})


def training_pairs(args: PairArguments) -> Dataset:
    """Rows of ``text``, ``chosen``, ``rejected`` (PIL images, made on access) and ``margin``, from the train split.

    Raises:
        ConfigError: the shares do not describe a mix, or the dataset has no four cells.
    """
    kinds = _schedule(args)
    _check(args)
    return _pairs_from_scenes(args, kinds) if args.dataset == "scenes" else _pairs_from_dataset(args, kinds)


def evaluation_cells(args: PairArguments) -> Dataset | None:
    """Rows of ``text``, the four cells under their names (PIL images, made on access) and ``cluster``, the triplet's number.

    They come from the train side of the benchmark, so that nothing is ever chosen by the test split, and from triplets that no
    training pair is made of.
    """
    if not args.eval_triplets:
        return None
    _check(args)
    return _cells_from_scenes(args) if args.dataset == "scenes" else _cells_from_dataset(args)


def _check(args: PairArguments) -> None:
    for domain in args.domains:
        if domain not in SHARES:
            raise UnknownName("domain", domain, SHARES)


def _schedule(args: PairArguments) -> list[tuple[Cell, Cell]]:
    """The two cells of each pair, drawn by the mix."""
    shares = {kind: getattr(args, kind) for kind in KINDS}
    if min(shares.values()) < 0 or abs(sum(shares.values()) - 1) > 1e-6:
        raise ConfigError(f"the shares {shares} must be at least 0 and sum to 1; change them in the recipe")
    rng = random.Random(f"mix-{args.pair_seed}")
    drawn = rng.choices(list(shares), weights=list(shares.values()), k=args.pairs)
    return [rng.choice(KINDS[kind]) for kind in drawn]


def _pairs_from_scenes(args: PairArguments, kinds: list[tuple[Cell, Cell]]) -> Dataset:
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


def _cells_from_scenes(args: PairArguments) -> Dataset:
    """Fresh scenes of another seed; a text may also occur in training (there are not that many), a picture never does."""
    seed = derive_seed(args.pair_seed, "evaluation")
    table = [
        {"text": t.text, "cluster": i, **{cell.value: t.scene(cell).model_dump_json() for cell in Cell}}
        for i, t in enumerate(scene_triplets(args.eval_triplets, seed, args.domains, args.held_out))
    ]

    def draw(batch: dict) -> dict:
        cells = {
            cell.value: [
                draw_kept(spec, derive_seed(seed, cell.value, i)) for spec, i in zip(batch[cell.value], batch["cluster"])
            ]
            for cell in Cell
        }
        return {"text": batch["text"], "cluster": batch["cluster"], **cells}

    return Dataset.from_list(table).with_transform(draw)


def _pairs_from_dataset(args: PairArguments, kinds: list[tuple[Cell, Cell]]) -> Dataset:
    data = _controls(args)
    held = set(_evaluation_triplets(data, args))
    usable = [i for i, triplet in enumerate(data["triplet"]) if triplet not in held]
    if not usable:
        raise ConfigError(
            f"{args.dataset} has no triplets left to train on beside {len(held)} for evaluation; lower eval_triplets"
        )
    order = random.Random(args.pair_seed).sample(usable, min(args.pairs, len(usable)))
    cells = kinds[: len(order)]

    def read(batch: dict) -> dict:
        picked = [cells[i] for i in batch["position"]]
        chosen = [batch[f"{a}_image"][i] for i, (a, _) in enumerate(picked)]
        rejected = [batch[f"{b}_image"][i] for i, (_, b) in enumerate(picked)]
        return {"text": batch["text"], "chosen": chosen, "rejected": rejected, "margin": [args.margin] * len(chosen)}

    data = data.select(order)
    return data.add_column("position", list(range(len(order)))).with_transform(read)


def _cells_from_dataset(args: PairArguments) -> Dataset:
    data = _controls(args)
    number = {triplet: i for i, triplet in enumerate(_evaluation_triplets(data, args))}
    names = data["triplet"]
    rows = [i for i, triplet in enumerate(names) if triplet in number]

    def read(batch: dict) -> dict:
        cells = {cell.value: batch[f"{cell.value}_image"] for cell in Cell}
        return {"text": batch["text"], "cluster": [number[triplet] for triplet in batch["triplet"]], **cells}

    return data.select(rows).with_transform(read)


def _controls(args: PairArguments) -> Dataset:
    folder = Path(args.dataset)
    if folder.is_dir():
        # As files and not by load_dataset(folder): its cache would serve the rows of an earlier build of that name.
        files = sorted(map(str, folder.glob("controls/train-*.parquet")))
        if not files:
            raise ConfigError(
                f"{folder} has no controls/train-*.parquet; dataset_scripts/protobias/build.py makes such a folder"
            )
        data = load_dataset("parquet", data_files=files, split="train")
    else:
        data = load_dataset(args.dataset, "controls", split="train")
    missing = [f"{cell}_image" for cell in Cell if f"{cell}_image" not in data.column_names]
    if missing:
        raise ConfigError(f"{args.dataset} has no column {missing[0]}; training needs a 'controls' config with four cells")
    return data


def _evaluation_triplets(data: Dataset, args: PairArguments) -> list[str]:
    """Whole triplets that are set apart, so that no variant of one is on both sides."""
    names = sorted(set(data["triplet"]))
    return random.Random(f"evaluation-{args.pair_seed}").sample(names, min(args.eval_triplets, len(names)))
