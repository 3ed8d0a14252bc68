"""Build the ProtoBias scene dataset: ``python dataset_scripts/protobias/build.py --out FOLDER``.

taxonomy -> triplets -> pictures of all four cells -> geometric filter -> Parquet + dataset card. Interrupted, the same
command goes on. The folder can be uploaded as it is; ``load_dataset(FOLDER, "pairs", split="test")`` reads it.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from assemble import assemble
from rich.progress import track

from protoscore.benchmarks.protobias.schema import DOMAINS, Domain
from protoscore.benchmarks.protobias.taxonomy import Contrast, Taxonomy, load_taxonomy
from protoscore.benchmarks.protobias.validator import require_valid
from protoscore.benchmarks.protobias.writers.template import write
from protoscore.catalog import load
from protoscore.errors import ProtoscoreError, UnknownName
from protoscore.filters import filter_images
from protoscore.images import render, write_triplets

PAPER_COUNTS: dict[Domain, int] = {"animals": 2932, "demography": 3027, "objects": 2266}  # section 4.1; 8,225 in all
PAPER_TRAIN_PAIRS = 12_000  # section 5


def domain_counts(total: int, domains: Sequence[Domain] = DOMAINS) -> dict[Domain, int]:
    """``total`` triplets over ``domains`` in the paper's proportions."""
    whole = sum(PAPER_COUNTS[domain] for domain in domains)
    counts = {domain: total * PAPER_COUNTS[domain] // whole for domain in domains}
    counts[domains[-1]] += total - sum(counts.values())
    return counts


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the dataset; work in progress goes to FOLDER.work")
    parser.add_argument("--triplets", type=int, default=8225, help="triplets to write (8,225 in the paper)")
    parser.add_argument("--domains", nargs="+", choices=DOMAINS, default=list(DOMAINS), help="domains to build")
    parser.add_argument("--renditions", type=int, default=3, help="pictures of each cell (the paper uses three generators)")
    parser.add_argument("--train-pairs", type=int, default=PAPER_TRAIN_PAIRS, help="at most this many training pairs")
    parser.add_argument("--split", choices=["train", "test"], help="write triplets of one side of the partition only")
    parser.add_argument("--drawable", action="store_true", help="write only triplets that the generator can draw")
    parser.add_argument(
        "--subjects", nargs="+", metavar="SUBJECT",
        help="only triplets with one of these subjects (the other may be any), e.g. those that a training run held out",
    )  # fmt: skip
    parser.add_argument("--taxonomy", type=Path, help="your own taxonomy file")
    parser.add_argument("--size", type=int, default=256, help="pixels a side")
    parser.add_argument("--seed", type=int, default=0, help="seed of triplets and pictures")
    options = parser.parse_args(arguments)
    for name in ("triplets", "renditions", "size"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1")
    return options


def with_subjects(taxonomy: Taxonomy, subjects: Sequence[str], domains: Sequence[Domain]) -> Callable[[Contrast], bool]:
    """Whether a contrast shows one of ``subjects``.

    Raises:
        UnknownName: one of them is in no contrast of ``domains``.
    """
    known = {subject for domain in domains for c in taxonomy.contrasts(domain) for subject in (c.non_subject, c.proto_subject)}
    for subject in subjects:
        if subject not in known:
            raise UnknownName("subject", subject, known)
    return lambda contrast: contrast.non_subject in subjects or contrast.proto_subject in subjects


def build(options: argparse.Namespace) -> None:
    taxonomy = load_taxonomy(options.taxonomy)
    generator = load("generators", "scene", size=options.size)
    work = options.out.with_name(options.out.name + ".work")
    counts = domain_counts(options.triplets, options.domains)
    parameters = {
        "counts": counts, "seed": options.seed, "split": options.split, "drawable": options.drawable,
        "taxonomy": options.taxonomy.read_text() if options.taxonomy else "packaged",
        **({"subjects": sorted(options.subjects)} if options.subjects else {}),
    }  # fmt: skip
    if not (work / "triplets" / "manifest.json").is_file():
        refuses = generator.refuses if options.drawable else lambda subject: None
        shows = with_subjects(taxonomy, options.subjects, options.domains) if options.subjects else lambda contrast: True
        valid = require_valid(write(taxonomy, counts, options.seed, options.split, refuses, shows), taxonomy)
        triplets = list(track(valid, description="writing", total=options.triplets))
        random.Random(options.seed).shuffle(triplets)  # so that what the training quota cuts off is no domain's alone
        write_triplets(work / "triplets", triplets, parameters)
    drawn = render(work / "triplets", work / "images", generator, renditions=options.renditions, seed=options.seed)
    checked = filter_images(work / "triplets", work / "images", work / "filter")
    rows = assemble(work, options.out, train_pairs=options.train_pairs)
    print(
        f"{options.out}: {rows['pairs/train']} training and {rows['pairs/test']} test pairs from {options.triplets} triplets; "
        f"{drawn.get('refused', 0)} pictures refused, {checked['rejected']} rejected by the filter"
    )


def main(arguments: list[str]) -> int:
    try:
        build(parse(arguments))
    except ProtoscoreError as error:
        print(f"build: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("build: stopped; the same command goes on from here", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
