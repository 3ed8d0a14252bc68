"""From a taxonomy to checked pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protoscore.cli.options import Out
from protoscore.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from protoscore.benchmarks.protobias.schema import Domain, Triplet

app = typer.Typer()


@app.command()
def triplets(
    out: Out,
    animals: Annotated[int, typer.Option(help="Triplets of the Animals domain.")] = 2932,
    demography: Annotated[int, typer.Option(help="Triplets of the Demography domain.")] = 3027,
    objects: Annotated[int, typer.Option(help="Triplets of the Objects domain.")] = 2266,
    seed: Annotated[int, typer.Option(help="The same seed writes the same triplets.")] = 0,
    taxonomy: Annotated[Path | None, typer.Option(help="Your own taxonomy YAML instead of the packaged one.")] = None,
) -> None:
    """Write validated ProtoBias triplets from a taxonomy (the defaults are the paper's counts)."""
    from rich.progress import track

    from protoscore.benchmarks.protobias.taxonomy import load_taxonomy
    from protoscore.benchmarks.protobias.validator import require_valid
    from protoscore.benchmarks.protobias.writers.template import write
    from protoscore.images import write_triplets

    if min(animals, demography, objects) < 0:
        raise ConfigError("a number of triplets cannot be negative; give 0 to leave a domain out")
    loaded = load_taxonomy(taxonomy)
    counts: dict[Domain, int] = {"animals": animals, "demography": demography, "objects": objects}
    written: Iterable[Triplet] = require_valid(write(loaded, counts, seed), loaded)
    text = taxonomy.read_text(encoding="utf-8") if taxonomy else "packaged"
    written = track(written, description="writing", total=sum(counts.values()))
    count = write_triplets(out, written, {"counts": counts, "seed": seed, "taxonomy": text})
    print(f"{out}: {count} triplets. Draw them with: protoscore images {out} --out {out}.images")


@app.command()
def images(
    source: Annotated[Path, typer.Argument(help="Folder of triplets.")],
    out: Out,
    generator: Annotated[str, typer.Option(help="Generator by name.")] = "scene",
    renditions: Annotated[int, typer.Option(min=1, help="Pictures of each cell.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the pictures.")] = 0,
) -> None:
    """Make the pictures of all four cells of every triplet."""
    from protoscore.catalog import load
    from protoscore.folder import read_manifest
    from protoscore.images import render

    read_manifest(source, "triplets")
    counts = render(source, out, load("generators", generator), renditions=renditions, seed=seed)
    print(f"{out}: " + ", ".join(f"{n} {status}" for status, n in counts.items()))


@app.command("filter")
def filter_(
    triplets_folder: Annotated[Path, typer.Argument(metavar="TRIPLETS", help="Folder of triplets.")],
    images_folder: Annotated[Path, typer.Argument(metavar="IMAGES", help="Folder of their pictures.")],
    out: Out,
    image_filter: Annotated[str, typer.Option("--filter", help="Image filter by name.")] = "geometric",
) -> None:
    """Score every picture 1-10 against its own description; 8 and more is kept."""
    from protoscore.filters import filter_images
    from protoscore.folder import read_manifest

    read_manifest(triplets_folder, "triplets")
    read_manifest(images_folder, "images")
    counts = filter_images(triplets_folder, images_folder, out, image_filter)
    print(f"{out}: " + ", ".join(f"{n} {status}" for status, n in counts.items()))
