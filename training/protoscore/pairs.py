"""Training pairs: which two cells of a triplet are compared, from freshly drawn scenes or from a published dataset."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from datasets import Dataset, Image, load_dataset

from protoscore.benchmarks.protobias.cells import LAYOUTS
from protoscore.benchmarks.protobias.schema import ELEMENTS, Cell, Foil
from protoscore.errors import ConfigError, UnknownName, first_line
from protoscore.schema import derive_seed
from training.scenes import SHARES, draw_kept, draw_set, scene_triplets

# kind of pair -> (chosen, rejected) cells. The paper trains on "incongruent" alone, where the less typical subject is
# always right; with "congruent" mixed in evenly the subject says nothing about the answer. None of these three differs in
# a noun of the text: only "foils" teach to read those.
KINDS: dict[str, list[tuple[Cell, Cell | Foil]]] = {
    "incongruent": [(Cell.NON_CORRECT, Cell.PROTO_VIOLATED)],
    "congruent": [(Cell.PROTO_CORRECT, Cell.NON_VIOLATED)],
    "same_subject": [(Cell.NON_CORRECT, Cell.NON_VIOLATED), (Cell.PROTO_CORRECT, Cell.PROTO_VIOLATED)],
    "foils": [(foil.correct, foil) for foil in Foil],
}
# What a pair without foils (a taxonomy may have nothing else to show) compares instead: the knob, on the same subject.
KNOB_PAIRS = dict(KINDS["same_subject"])


@dataclass
class PairArguments:
    """Where training pairs come from."""

    dataset: str = field(
        default="scenes",
        metadata={"help": "'scenes' draws fresh ones; else a Hub id or folder with two or four pictures per row"},
    )
    pairs: int = field(default=12_000, metadata={"help": "number of training pairs (12,000 in the paper)"})
    incongruent: float = field(default=0.34, metadata={"help": "share of pairs: non-prototype right, prototype wrong"})
    congruent: float = field(default=0.33, metadata={"help": "share of pairs: prototype right, non-prototype wrong"})
    same_subject: float = field(default=0.33, metadata={"help": "share of pairs: one subject, right and wrong"})
    foils: float = field(default=0.0, metadata={"help": "share of pairs: right, and the same with one noun of the text wrong"})
    foil_elements: list[str] = field(
        default_factory=lambda: list(ELEMENTS), metadata={"help": "what foils change; twice in the list is twice as often"}
    )
    domains: list[str] = field(default_factory=lambda: list(SHARES), metadata={"help": "domains of freshly drawn scenes"})
    held_out: list[str] = field(default_factory=list, metadata={"help": "subjects that no training scene may show"})
    nuisance: float = field(
        default=0.0,
        metadata={"help": "share of pairs whose scenes differ in side, size, colours and people too, not only as told"},
    )
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
    prompt: str = field(default="", metadata={"help": "what stands before each text, in the base's own wording"})
    image_size: int = field(default=512, metadata={"help": "pixels a side that pictures are scaled to"})


def training_pairs(args: PairArguments) -> Dataset:
    """Rows of ``text``, ``chosen``, ``rejected`` (PIL images, made on access) and ``margin``, from the train split.

    Raises:
        ConfigError: the shares do not describe a mix, or the dataset has not the pictures that they need.
    """
    _check(args)
    kinds = _schedule(args)
    return _pairs_from_scenes(args, kinds) if args.dataset == "scenes" else _pairs_from_dataset(args, kinds)


def evaluation_cells(args: PairArguments) -> Dataset | None:
    """Rows of ``text``, the cells under their names (PIL images, made on access) and ``cluster``, the triplet's number.

    All four cells; two where the dataset has no others, and then only the paper's accuracy can be told from them.
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
    for element in args.foil_elements:
        if element not in ELEMENTS:
            raise UnknownName("element of a text", element, ELEMENTS)


def _schedule(args: PairArguments) -> list[tuple[Cell, Cell | Foil]]:
    """The two cells of each pair, drawn by the mix."""
    shares = {kind: getattr(args, kind) for kind in KINDS}
    if min(shares.values()) < 0 or abs(sum(shares.values()) - 1) > 1e-6:
        raise ConfigError(f"the shares {shares} must be at least 0 and sum to 1; change them in the recipe")
    rng = random.Random(f"mix-{args.pair_seed}")
    drawn = rng.choices(list(shares), weights=list(shares.values()), k=args.pairs)
    foils = [(foil.correct, foil) for element in args.foil_elements for foil in Foil if foil.element == element]
    return [rng.choice(foils if kind == "foils" else KINDS[kind]) for kind in drawn]


def _pairs_from_scenes(args: PairArguments, kinds: list[tuple[Cell, Cell | Foil]]) -> Dataset:
    triplets = scene_triplets(args.pairs, args.pair_seed, args.domains, args.held_out)
    table = [
        {
            "text": t.text,
            "seed": derive_seed(args.pair_seed, i),
            "chosen": t.scene(chosen).model_dump_json(),
            "rejected": t.scene(rejected if t.has_foils or rejected in Cell else KNOB_PAIRS[chosen]).model_dump_json(),
        }
        for i, (t, (chosen, rejected)) in enumerate(zip(triplets, kinds, strict=True))
    ]

    def draw(batch: dict) -> dict:
        """Both pictures of each row, as one set or each on its own; the row's seed makes them the same each time."""
        drawn = [
            [draw_kept(spec, derive_seed(seed, side)) for side, spec in enumerate(specs)]
            if random.Random(derive_seed(seed, "nuisance")).random() < args.nuisance
            else draw_set(specs, seed)
            for *specs, seed in zip(batch["chosen"], batch["rejected"], batch["seed"], strict=True)
        ]
        chosen, rejected = map(list, zip(*drawn, strict=True))
        return {"text": batch["text"], "chosen": chosen, "rejected": rejected, "margin": [args.margin] * len(drawn)}

    return Dataset.from_list(table).with_transform(draw)


def _cells_from_scenes(args: PairArguments) -> Dataset:
    """Fresh scenes of another seed; a text may also occur in training (there are not that many), a picture never does."""
    seed = derive_seed(args.pair_seed, "evaluation")
    table = [
        {"text": t.text, "cluster": i, **{cell.value: t.scene(cell).model_dump_json() for cell in Cell}}
        for i, t in enumerate(scene_triplets(args.eval_triplets, seed, args.domains, args.held_out))
    ]

    def draw(batch: dict) -> dict:
        names = [cell.value for cell in Cell]
        sets = [draw_set(specs, derive_seed(seed, i)) for *specs, i in zip(*(batch[n] for n in names), batch["cluster"])]
        cells = dict(zip(names, map(list, zip(*sets)), strict=True))
        return {"text": batch["text"], "cluster": batch["cluster"], **cells}

    return Dataset.from_list(table).with_transform(draw)


def _pairs_from_dataset(args: PairArguments, kinds: list[tuple[Cell, Cell | Foil]]) -> Dataset:
    needed = {cell for pair in kinds for cell in pair}
    data, pictures = _open(args, needed)
    if not needed <= pictures.keys():
        wide = len(pictures) == len(Cell)
        raise ConfigError(
            f"{args.dataset} has {len(pictures)} pictures per row, of which "
            + ("no pairs with foils can be made; add: --foils 0, and raise the other shares" if wide else
               "only incongruent pairs can be made; add: --incongruent 1 --congruent 0 --same_subject 0 --foils 0")
        )  # fmt: skip
    held = set(_evaluation_triplets(data, args))
    usable = [i for i, triplet in enumerate(data["triplet"]) if triplet not in held]
    if not usable:
        raise ConfigError(
            f"{args.dataset} has no triplets left to train on beside {len(held)} for evaluation; lower eval_triplets"
        )
    order = random.Random(args.pair_seed).sample(usable, min(args.pairs, len(usable)))
    cells = kinds[: len(order)]

    def read(batch: dict) -> dict:
        sides = {
            side: [batch[pictures[cells[position][at]]][i] for i, position in enumerate(batch["position"])]
            for at, side in enumerate(("chosen", "rejected"))
        }
        return {"text": batch["text"], **sides, "margin": [args.margin] * len(batch["text"])}

    data = data.select(order)
    return data.add_column("position", list(range(len(order)))).with_transform(read)


def _cells_from_dataset(args: PairArguments) -> Dataset:
    data, pictures = _open(args, set(Cell))
    number = {triplet: i for i, triplet in enumerate(_evaluation_triplets(data, args))}
    rows = [i for i, triplet in enumerate(data["triplet"]) if triplet in number]

    def read(batch: dict) -> dict:
        cells = {cell.value: batch[column] for cell, column in pictures.items() if cell in Cell}
        return {"text": batch["text"], "cluster": [number[triplet] for triplet in batch["triplet"]], **cells}

    return data.select(rows).with_transform(read)


def _open(args: PairArguments, needed: set[Cell | Foil]) -> tuple[Dataset, dict[Cell | Foil, str]]:
    """The train split with a column ``triplet``, and the columns of the needed pictures; where one lacks, of all there are."""
    folder = Path(args.dataset)
    configs = _configs(needed)
    data = _from_files(folder, configs) if folder.is_dir() else _from_hub(args.dataset, configs)
    names = set(data.column_names)
    pictures = next((layout.pictures for layout in LAYOUTS if {*layout.pictures.values()} <= names), None)
    if pictures is None or "text" not in names or not names & {"triplet", "id"}:
        raise ConfigError(
            f"{args.dataset} has the columns {', '.join(data.column_names)}; training needs text, triplet (or id) and "
            f"{', '.join(LAYOUTS[-1].pictures.values())} (or all four: {', '.join(LAYOUTS[1].pictures.values())})"
        )
    pictures = {cell: column for cell, column in pictures.items() if cell in needed or not needed <= pictures.keys()}
    if "triplet" not in names:
        data = data.rename_column("id", "triplet")
    for column in pictures.values():
        data = data.cast_column(column, Image())
    return data.select_columns(["text", "triplet", *pictures.values()]), pictures


def _configs(needed: set[Cell | Foil]) -> list[str]:
    """Those with all that is needed, the narrowest first; then the others, so that what is lacking can be told."""
    enough = [layout.config for layout in reversed(LAYOUTS) if needed <= layout.pictures.keys()]
    return enough + [layout.config for layout in LAYOUTS if layout.config not in enough]


def _from_files(folder: Path, configs: list[str]) -> Dataset:
    """As files and not by ``load_dataset(folder)``: its cache would serve the rows of an earlier build of that name."""
    for config in (*configs, "data"):
        files = sorted(map(str, folder.glob(f"{config}/train-*.parquet")))
        if files:
            return load_dataset("parquet", data_files=files, split="train")
    raise ConfigError(
        f"{folder} has no controls/train-*.parquet and no pairs/train-*.parquet; "
        "dataset_scripts/protobias/build.py makes such a folder"
    )


def _from_hub(name: str, configs: list[str]) -> Dataset:
    """The first of the known configs that has a train split, or the only one there is."""
    for config in (*configs, None):
        try:
            return load_dataset(name, config, split="train")
        except ValueError as error:  # no such config, or no such split
            last = error
    raise ConfigError(f"{name} cannot be trained on ({first_line(last)})")


def _evaluation_triplets(data: Dataset, args: PairArguments) -> list[str]:
    """Whole triplets that are set apart, so that no variant of one is on both sides."""
    names = sorted(set(data["triplet"]))
    return random.Random(f"evaluation-{args.pair_seed}").sample(names, min(args.eval_triplets, len(names)))
