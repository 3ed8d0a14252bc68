"""One subcommand a stage. No logic: parse, call, print."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protoscore import __version__
from protoscore.errors import ConfigError, ImageError, ProtoscoreError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from protoscore.schema import Domain, Triplet

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Can I trust this text-to-image metric? Start with: protoscore score DATASET --scorer protoscore --out RUN",
)  # fmt: skip

Out = Annotated[Path, typer.Option("--out", help="Folder for the results; the same command goes on where it stopped.")]
ScorerNames = Annotated[
    list[str],
    typer.Option("--scorer", "-s", help="A scorer: NAME, NAME:FOLDER_OR_HUB_ID, or your own FILE.py. Repeat for several."),
]


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
    from protoscore.images import write_triplets
    from protoscore.writers.template import write

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


@app.command()
def score(
    dataset: Annotated[str, typer.Argument(help="A folder with a 'controls' config, or a Hub dataset id.")],
    out: Out,
    scorer: ScorerNames,
    split: Annotated[str, typer.Option(help="Split to score.")] = "test",
    limit: Annotated[int | None, typer.Option(min=1, help="Score the first N rows only.")] = None,
    shard: Annotated[str | None, typer.Option(help="Part i/n only, e.g. 2/8; then run without it for the table.")] = None,
    retry: Annotated[list[str] | None, typer.Option(help="Try again what is invalid, refused, abstained, or all.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Pairs at once (default: the scorer's own).")] = None,
    engine: Annotated[str, typer.Option(help="'local', or 'ray' for a cluster (RAY_ADDRESS).")] = "local",
) -> None:
    """Score the four cells of a dataset with one or more metrics. Also under torchrun, one GPU a process."""
    from protoscore.cells import CellRows
    from protoscore.scoring import score_named
    from protoscore.sharding import Shard

    part = Shard.parse(shard) if shard else None
    counts = score_named(CellRows(dataset, split, limit), scorer, out, part, retry or [], batch_size, engine)
    if part:
        print(f"{out}: shard {shard} is done, {counts.scored_now} scores made now; after all shards: the same without --shard")
    if not counts.rows:  # a shard, or a rank that is not the first
        return
    failed = f", {counts.not_ok} without a number ({counts.reason or 'see the column reason'})" if counts.not_ok else ""
    print(f"{out / 'scores.parquet'}: {counts.rows} scores, {counts.scored_now} made now{failed}")
    print(f"Next: protoscore report {out} --dataset {dataset}")


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="Folder that 'protoscore score' wrote.")],
    dataset: Annotated[str | None, typer.Option(help="The scored dataset, for the pictures of the worst pairs.")] = None,
    out: Annotated[Path | None, typer.Option(help="HTML file (default: RUN/report.html).")] = None,
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples.")] = 2000,
) -> None:
    """The five quantities with intervals: a table here, and a self-contained HTML page."""
    from protoscore.report import make_report

    path = make_report(run, dataset, out, resamples)
    print(f"Open {path} in a browser.")


@app.command()
def rate(
    text: Annotated[str, typer.Argument(help="What the pictures should show.")],
    pictures: Annotated[list[Path], typer.Argument(help="Image files.")],
    scorer: Annotated[str, typer.Option("--scorer", "-s", help="Name of a scorer, or NAME:FOLDER_OR_HUB_ID.")] = "protoscore",
) -> None:
    """Score a few image files against one text, best first."""
    from protoscore.catalog import load
    from protoscore.decoding import open_image

    opened = []
    for path in pictures:
        try:
            opened.append(open_image(path.read_bytes()))
        except OSError as error:
            raise ImageError(f"{path}: {error.strerror}; give the path of an image file") from error
        except ImageError as error:
            raise ImageError(f"{path}: {error}; give a PNG, JPEG or WebP file") from error
    component = load("scorers", scorer)
    scores = component.score(opened, [text] * len(opened))
    sign = 1 if component.facts.higher_is_better else -1
    for path, result in sorted(zip(pictures, scores), key=lambda pair: -sign * (pair[1].value or 0.0)):
        print(f"{result.value:.4f}  {path}" if result.value is not None else f"{result.status}  {path}  {result.reason}")


@app.command()
def scorers() -> None:
    """List the metrics: what each answers, its range, its licence, its known bias."""
    from importlib import import_module

    from rich.console import Console
    from rich.table import Table

    from protoscore.catalog import names
    from protoscore.scorers import facts_of

    table = Table("scorer", "answers", "range", "licence", "known bias")
    for name in names("scorers"):
        facts = facts_of(import_module(f"protoscore.scorers.{name}"))
        low, high = ("-inf" if facts.low is None else facts.low), ("inf" if facts.high is None else facts.high)
        table.add_row(name, facts.question, f"{low} .. {high}", facts.licence, facts.known_bias)
    Console().print(table)


@app.command()
def transfer(
    benchmark: Annotated[str, typer.Argument(help="winoground, tifa160 or genai_bench.")],
    out: Out,
    scorer: ScorerNames,
    source: Annotated[str | None, typer.Option(help="Folder or Hub id, instead of the benchmark's own place.")] = None,
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples.")] = 2000,
) -> None:
    """How metrics fare on benchmarks that others made (paper, Table 11), with intervals."""
    from protoscore.benchmarks.transfer._run import run, show
    from protoscore.catalog import load
    from protoscore.scoring import load_scorers

    rows = load("benchmarks.transfer", f"{benchmark}:{source}" if source else benchmark)
    show(run(rows, list(load_scorers(scorer).values()), out, resamples))
    print(f"All groups and numbers: {out / 'transfer.json'}")


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(f"protoscore {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the CLI: a user's error is one line and exit code 2; Ctrl-C says how to go on."""
    try:
        code = app(standalone_mode=False)
        if code == 130:  # how typer hands over Ctrl-C
            raise KeyboardInterrupt
        raise SystemExit(code or 0)
    except ProtoscoreError as error:
        _stop(str(error))
    except (typer.Abort, KeyboardInterrupt):
        _stop("stopped; what is finished is kept, and the same command goes on from here")
    except Exception as error:
        if type(error).__module__.startswith(("click", "typer")):  # wrong usage: typer's own one-line message
            _stop(f"{error.format_message()}; see: protoscore --help")  # type: ignore[attr-defined]
        raise


def _stop(message: str) -> None:
    print(f"protoscore: {' '.join(message.split())}", file=sys.stderr)
    raise SystemExit(2)
