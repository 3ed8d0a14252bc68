"""Build the ProtoBias dataset: ``python dataset_scripts/protobias/build.py --out FOLDER``.

taxonomy -> triplets -> pictures of all four cells -> filters -> Parquet + dataset card. Interrupted, the same command goes
on. The folder can be uploaded as it is; ``load_dataset(FOLDER, "pairs", split="test")`` reads it. ``--config FILE`` is YAML
with the keys of ``Config``; what is typed beside it goes before it.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from rich.progress import track

from protoscore.benchmarks.protobias import dataset
from protoscore.benchmarks.protobias.schema import DOMAINS, Domain, Triplet
from protoscore.benchmarks.protobias.tasks import eval_yaml
from protoscore.benchmarks.protobias.taxonomy import load_taxonomy
from protoscore.benchmarks.protobias.triplets import read_triplets, wanted_pictures, write_triplets
from protoscore.benchmarks.protobias.validator import require_valid
from protoscore.cli.named_values import typed
from protoscore.errors import ConfigError
from protoscore.filters import KEEP_FROM, filter_pictures
from protoscore.folder import MANIFEST, claimed, write_manifest, write_text
from protoscore.images import make_pictures
from protoscore.publishing.build_config import Component, Named, changed, read_config, read_text, run_script
from protoscore.publishing.dataset_card import write_card
from protoscore.publishing.datasets import drafted
from protoscore.scenes.sprites import manifest as sprites
from protoscore.schema import content_id
from protoscore.typed_yaml import Strict

CARD = Path(__file__).with_name("card.md.jinja")


class Config(Strict):
    """What is built. The defaults are the paper's counts, on scenes. A component is a name, or ``{name, options}``."""

    writer: Named = Component(name="template")
    generator: Named = Component(name="scene")
    filters: list[Named] = Field([Component(name="geometric")], min_length=1)
    keep_from: int = Field(KEEP_FROM, ge=1, le=10)  # a picture is kept when every filter gives it this or more
    triplets: int = Field(sum(dataset.PAPER_COUNTS.values()), ge=1)
    domains: list[Domain] = Field(list(DOMAINS), min_length=1)
    renditions: int = Field(3, ge=1)  # pictures of each cell (the paper uses three generators)
    train_pairs: int = Field(dataset.PAPER_TRAIN_PAIRS, ge=0)
    split: Literal["train", "test"] | None = None  # triplets of one side of the partition only
    nuisance: bool = False  # pictures of a triplet also differ in side, size, colours and people
    drawable: bool = False  # only triplets that the scene world can draw
    subjects: list[str] = []  # only triplets with one of these (the other subject may be any)
    taxonomy: Path | None = None
    card: Path = CARD
    seed: int = 0

    def parameters(self, *names: str) -> dict[str, Any]:
        """What decides a result; the taxonomy by its content."""
        text = read_text(self.taxonomy) if self.taxonomy else ""
        known = self.model_dump(mode="json") | {"taxonomy": content_id(text) if text else "packaged"}
        return {name: known[name] for name in names}


WRITTEN = ("writer", "triplets", "domains", "split", "drawable", "subjects", "taxonomy", "seed")
DRAWN = (*WRITTEN, "generator", "renditions", "nuisance")


def parse(arguments: list[str]) -> tuple[Path, Config]:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], argument_default=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, required=True, help="folder of the dataset; work in progress goes to FOLDER.work")
    parser.add_argument("--config", type=Path, default=None, help="YAML file with any of the following, and more")
    parser.add_argument("--writer", help="writer of triplets, by name")
    parser.add_argument("--generator", default=None, help="generator of pictures, by name")
    parser.add_argument("-o", "--option", action="append", default=[], metavar="NAME=VALUE", help="for the generator")
    parser.add_argument("--filter", dest="filters", action="append", metavar="FILTER", help="repeat it: all must agree")
    parser.add_argument("--keep-from", type=int, help="score from which a picture is kept (8)")
    parser.add_argument("--triplets", type=int, help="triplets to write (8,225, as in the paper)")
    parser.add_argument("--domains", nargs="+", choices=DOMAINS, help="domains to build")
    parser.add_argument("--renditions", type=int, help="pictures of each cell (3: the paper uses three generators)")
    parser.add_argument("--train-pairs", type=int, help="at most this many training pairs (12,000)")
    parser.add_argument("--split", choices=["train", "test"], help="write triplets of one side of the partition only")
    parser.add_argument("--drawable", action="store_true", help="write only triplets that the scene generator can draw")
    parser.add_argument(
        "--nuisance", action="store_true", help="let a triplet's pictures differ in side, size, colours, people too"
    )
    parser.add_argument("--subjects", nargs="+", help="only triplets with one of these subjects, e.g. those held out")
    parser.add_argument("--taxonomy", type=Path, help="your own taxonomy file")
    parser.add_argument("--size", type=int, default=None, help="pixels of a side, as -o size=256")
    parser.add_argument("--seed", type=int, help="seed of triplets and pictures (0)")
    given = vars(parser.parse_args(arguments))
    out, config = given.pop("out"), read_config(Config, given.pop("config"))
    size, options = given.pop("size"), typed(given.pop("option"), "--option")
    generator = config.generator.but(given.pop("generator"), options | ({} if size is None else {"size": size}))
    return out, changed(config, given | {"generator": generator})


def written(config: Config) -> list[Triplet]:
    taxonomy = load_taxonomy(config.taxonomy)
    writer = config.writer.make("benchmarks.protobias.writers")
    refuses = sprites().refused.get if config.drawable else lambda subject: None
    shows = dataset.with_subjects(taxonomy, config.subjects, config.domains)
    counts = dataset.domain_counts(config.triplets, config.domains)
    valid = require_valid(writer.write(taxonomy, counts, config.seed, config.split, refuses, shows), taxonomy)
    triplets = list(track(valid, description="writing", total=config.triplets))
    random.Random(config.seed).shuffle(triplets)  # so that what the training quota cuts off is no domain's alone
    return triplets


def build(arguments: list[str]) -> None:
    out, config = parse(arguments)
    generator = config.generator.make("generators")
    filters = [one.make("image_filters") for one in config.filters]
    if generator.photographic and config.card == CARD:
        raise ConfigError("the card that comes with this script describes drawn scenes; name your own template: 'card: FILE'")
    work = out.with_name(out.name + ".work")
    texts, pictures, filtered = (work / name for name in ("triplets", "images", "filter"))
    fresh = None if (texts / MANIFEST).is_file() else written(config)  # where that fails, nothing is left behind
    with claimed(work, "dataset", config.parameters(*DRAWN)):
        if fresh is not None:
            write_triplets(texts, fresh, config.parameters(*WRITTEN))
        triplets = read_triplets(texts)
        wanted = list(wanted_pictures(triplets, config.renditions, config.seed, nuisance=config.nuisance))
        make_pictures(
            wanted, generator, pictures, {"benchmark": "protobias"} | config.parameters("renditions", "nuisance", "seed"), texts
        )
        filter_pictures(pictures, filters, filtered, config.keep_from)
        with drafted(out, work) as draft:
            facts = dataset.write_configs(texts, pictures, filtered, draft, config.train_pairs)
            rows, said = facts["rows"], dataset.card_facts(facts, triplets) | {"nuisance": config.nuisance}
            write_card(draft, config.card, dataset.config_features(), rows, default="pairs", repo_id=out.name, **said)
            if rows["pairs/test"] and rows["controls/test"]:
                write_text(draft / "eval.yaml", eval_yaml("ProtoBias (scenes)"))
            parameters = config.parameters(*DRAWN, "filters", "keep_from", "train_pairs")
            write_manifest(draft, "dataset", {"benchmark": "protobias"} | parameters, filtered, **facts)
    print(
        f"{out}: {rows['pairs/train']} training and {rows['pairs/test']} test pairs from {len(triplets)} triplets; "
        f"{sum(facts['refusals'].values())} pictures refused, {facts['filter']['rejected']} rejected by the filter"
    )


if __name__ == "__main__":
    raise SystemExit(run_script(build, sys.argv[1:]))
