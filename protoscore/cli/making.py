"""From a taxonomy or a list of prompts to checked pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from protoscore.cli.options import Out
from protoscore.errors import ConfigError, DatasetError, UnknownName

if TYPE_CHECKING:
    from collections.abc import Iterable

    from protoscore.benchmarks.protobias.schema import Domain, Triplet
    from protoscore.generators import Wanted

app = typer.Typer()


@app.command()
def example(folder: Annotated[Path, typer.Argument(help="A folder that does not exist yet.")]) -> None:
    """Write a few drawn pictures with their prompts, to try the other commands on."""
    from protoscore.scenes.example import write_example

    text = write_example(folder)
    print(f"{folder}: one.png and two.png of one text; a/ and b/, six pictures each of two made-up models; prompts.csv")
    print(f'Next: protoscore rate "{text}" {folder}/one.png {folder}/two.png')


@app.command()
def triplets(
    out: Out,
    animals: Annotated[int, typer.Option(help="Triplets of the Animals domain.")] = 2932,
    demography: Annotated[int, typer.Option(help="Triplets of the Demography domain.")] = 3027,
    objects: Annotated[int, typer.Option(help="Triplets of the Objects domain.")] = 2266,
    seed: Annotated[int, typer.Option(help="The same seed writes the same triplets.")] = 0,
    taxonomy: Annotated[Path | None, typer.Option(help="Your own taxonomy YAML instead of the packaged one.")] = None,
    writer: Annotated[str, typer.Option(help="Writer by name.")] = "template",
) -> None:
    """Write validated ProtoBias triplets from a taxonomy (the defaults are the paper's counts)."""
    from rich.progress import track

    from protoscore.benchmarks.protobias.taxonomy import load_taxonomy
    from protoscore.benchmarks.protobias.triplets import write_triplets
    from protoscore.benchmarks.protobias.validator import require_valid
    from protoscore.catalog import load

    if min(animals, demography, objects) < 0:
        raise ConfigError("a number of triplets cannot be negative; give 0 to leave a domain out")
    loaded, by = load_taxonomy(taxonomy), load("benchmarks.protobias.writers", writer)
    counts: dict[Domain, int] = {"animals": animals, "demography": demography, "objects": objects}
    written: Iterable[Triplet] = require_valid(by.write(loaded, counts, seed), loaded)
    text = taxonomy.read_text(encoding="utf-8") if taxonomy else "packaged"
    written = track(written, description="writing", total=sum(counts.values()))
    parameters = {"counts": counts, "seed": seed, "taxonomy": text, "writer": {"name": by.name, "revision": by.revision}}
    count = write_triplets(out, written, parameters)
    print(f"{out}: {count} triplets. Draw them with: protoscore images {out} --out {out}.images")


@app.command()
def images(
    what: Annotated[
        str, typer.Argument(help="Folder of triplets, a list of prompts (.txt, .csv, .jsonl ...), or a benchmark by name.")
    ],
    out: Out,
    generator: Annotated[str, typer.Option(help="Generator by name.")] = "scene",
    option: Annotated[list[str], typer.Option("--option", "-o", help="NAME=VALUE for the generator. Repeat for several.")] = [],  # noqa: B006
    renditions: Annotated[int, typer.Option(min=1, help="Pictures of each description.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the pictures.")] = 0,
    retry: Annotated[
        list[str], typer.Option(help="Make again what ended in this state: error, invalid, refused. Repeat for several.")
    ] = [],  # noqa: B006
) -> None:
    """Make pictures with any generator. What is there is not made again."""
    from protoscore.catalog import load
    from protoscore.cli.named_values import pairs
    from protoscore.images import make_pictures
    from protoscore.schema import Status

    for state in retry:
        if state not in set(Status) - {Status.OK, Status.ABSTAINED}:
            raise UnknownName("state", state, ("error", "invalid", "refused"))
    wanted, parameters, parent = _wanted(what, renditions, seed)
    by = load("generators", generator, **pairs(option, "--option"))
    counts = make_pictures(wanted, by, out, parameters, parent, retry)
    print(f"{out}: " + ", ".join(f"{n} {status}" for status, n in counts.items()))
    print(f"Next: protoscore filter {out} --out {out}.filter, or protoscore score {out} -s SCORER --out RUN")


@app.command("filter")
def filter_(
    pictures: Annotated[Path, typer.Argument(help="Folder that 'protoscore images' wrote.")],
    out: Out,
    image_filter: Annotated[
        list[str], typer.Option("--filter", help="geometric, vlm:PROTOCOL:VLM ... Repeat it: all must agree.")
    ] = ["geometric"],  # noqa: B006
    option: Annotated[
        list[str], typer.Option("--option", "-o", help="NAME=VALUE for the filter; FILTER.NAME=VALUE where there are several.")
    ] = [],  # noqa: B006
    keep_from: Annotated[int, typer.Option(min=1, max=10, help="A picture is kept from this score on.")] = 8,
) -> None:
    """Score every picture 1-10 against its own description, and keep those that every filter gives enough."""
    from protoscore.catalog import load
    from protoscore.cli.named_values import pairs
    from protoscore.filters import filter_pictures

    options: dict[str, dict[str, Any]] = {spec: {} for spec in image_filter}
    if len(options) < len(image_filter):
        raise ConfigError("a filter is named twice; name each of them once")
    for name, value in pairs(option, "--option").items():
        prefix, dot, rest = name.rpartition(".")
        meant = [spec for spec in options if spec.partition(":")[0] == prefix] if dot else list(options)
        if not meant or (len(meant) > 1 and not dot):
            known = " or ".join(f"-o {spec.partition(':')[0]}.{rest}=..." for spec in options)
            raise ConfigError(f"-o {name}: say which filter it is for: {known}")
        for spec in meant:
            options[spec][rest] = value
    filters = [load("image_filters", spec, **given) for spec, given in options.items()]
    counts = filter_pictures(pictures, filters, out, keep_from)
    print(f"{out / 'kept.parquet'}: " + ", ".join(f"{n} {state}" for state, n in counts.items()))


def _wanted(what: str, renditions: int, seed: int) -> tuple[Iterable[Wanted], dict[str, Any], Path | None]:
    """What is to be drawn, what it was chosen by, and the folder of ours that it was read from."""
    from protoscore.catalog import load
    from protoscore.folder import MANIFEST, read_manifest

    place = Path(what)
    if place.is_file():
        return _of_prompts(place, renditions, seed)
    name, _, source = what.partition(":")
    if place.is_dir():
        name, source = read_manifest(place)["parameters"].get("benchmark", ""), what
        if not name:
            raise DatasetError(f"{place} says nothing of what is to be drawn; give triplets, a list of prompts or a benchmark")
    elif "/" in name or place.suffix:
        raise DatasetError(f"{what} does not exist; give a folder of triplets, a list of prompts, or a benchmark's name")
    asked = {key: value for key, value, usual in (("renditions", renditions, 1), ("seed", seed, 0)) if value != usual}
    benchmark = load("benchmarks", f"{name}:{source}" if source else name, **asked)
    wanted = list(benchmark.pictures())
    if not wanted:
        raise ConfigError(f"the pictures of {name} come with it; there is nothing to draw")
    parent = Path(source) if source and (Path(source) / MANIFEST).is_file() else None
    return wanted, {"benchmark": name, "renditions": renditions, "seed": seed}, parent


def _of_prompts(path: Path, renditions: int, seed: int) -> tuple[Iterable[Wanted], dict[str, Any], None]:
    from protoscore.generators import Wanted
    from protoscore.schema import content_id, derive_seed
    from protoscore.sources.prompts import read_prompts

    prompts = read_prompts(path)
    wanted = [
        Wanted(
            f"{one.id}-{number}" if renditions > 1 else one.id, one.text, derive_seed(seed, one.id, number),
            fields={"prompt_id": one.id, "rendition": str(number)},
        )
        for one in prompts
        for number in range(renditions)
    ]  # fmt: skip
    digest = content_id(*(part for one in prompts for part in one), length=32)
    return wanted, {"prompts": digest, "renditions": renditions, "seed": seed}, None
