"""One subcommand a stage. No logic: parse, call, print."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from protoscore import __version__
from protoscore.errors import ConfigError, ImageError, ProtoscoreError
from protoscore.publishing import Kind

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
    out: Out,
    scorer: ScorerNames,
    dataset: Annotated[str | None, typer.Argument(help="A folder with a 'controls' config, or a Hub dataset id.")] = None,
    images: Annotated[Path | None, typer.Option(help="Your own pictures instead: a folder, or a list of files.")] = None,
    prompts: Annotated[Path | None, typer.Option(help="Their prompts: .csv .tsv .json .jsonl .parquet or .txt.")] = None,
    split: Annotated[str, typer.Option(help="Split of the dataset to score.")] = "test",
    limit: Annotated[int | None, typer.Option(min=1, help="Score the first N rows only.")] = None,
    form: Annotated[Literal["parquet", "csv", "json"], typer.Option("--format", help="Write this form as well.")] = "parquet",
    shard: Annotated[str | None, typer.Option(help="Part i/n only, e.g. 2/8; then run without it for the table.")] = None,
    retry: Annotated[list[str] | None, typer.Option(help="Try again what is invalid, refused, abstained, or all.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Pairs at once (default: the scorer's own).")] = None,
    engine: Annotated[str, typer.Option(help="'local', or 'ray' for a cluster (RAY_ADDRESS).")] = "local",
) -> None:
    """Score a dataset's four cells, or your own pictures, with one or more metrics. Also under torchrun, one GPU a process.

    Which prompt belongs to which of your pictures (the first rule that fits; what does not fit is refused by name):

    1. --prompts has a column file, file_name, filename, image, image_path or path: each line pairs that picture with its
    prompt, text or caption; a picture may have several lines, and so may a prompt.

    2. One prompt: it serves every picture.

    3. One picture: it is scored under every prompt.

    4. --prompts has a column id, prompt_id or key: pictures lie in a folder of that name (42/any.png) or carry it as their own
    (42.png, 42_0.png).

    5. As many prompts as pictures: one to one, file names in natural order (2 before 10), or in the order of the list.
    """
    from protoscore.reporting.tables import export
    from protoscore.scoring.cells import CellRows
    from protoscore.scoring.own_images import OwnImages
    from protoscore.scoring.sharding import Shard
    from protoscore.scoring.stage import score_named

    if (dataset is None) == (images is None) or (prompts is not None and images is None):
        raise ConfigError("give a DATASET, or --images with --prompts; see: protoscore score --help")
    own = OwnImages(images, prompts, limit) if images else None
    part = Shard.parse(shard) if shard else None
    rows = own or CellRows(str(dataset), split, limit)
    counts = score_named(rows, scorer, out, part, retry or [], batch_size, engine)
    if part:
        print(f"{out}: shard {shard} is done, {counts.scored_now} scores made now; after all shards: the same without --shard")
    if not counts.rows:  # a shard, or a rank that is not the first
        return
    failed = f", {counts.not_ok} without a number ({counts.reason or 'see the column reason'})" if counts.not_ok else ""
    if own:
        print(f"{len(own)} pairs, {own.rule}" + (f"; {len(own.unused)} pictures have no prompt" if own.unused else ""))
    print(f"{out / 'scores.parquet'}: {counts.rows} scores, {counts.scored_now} made now{failed}")
    if form != "parquet":
        print(export(out, form))
    print(f"Next: protoscore report {out}" + (f" --dataset {dataset}" if dataset else ""))


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="Folder that 'protoscore score' wrote.")],
    dataset: Annotated[str | None, typer.Option(help="The scored dataset, for the pictures of the worst pairs.")] = None,
    out: Annotated[Path | None, typer.Option(help="HTML file (default: RUN/report.html).")] = None,
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples.")] = 2000,
    human: Annotated[
        Path | None,
        typer.Option(help="People's choices: columns triplet, rendition, annotator, choice (correct, adversarial, tie)."),
    ] = None,
    human_ties: Annotated[
        Literal["left_out", "wrong"], typer.Option(help="What a majority without a preference is for kappa.")
    ] = "left_out",
    normalise: Annotated[Literal["none", "minmax", "rank"], typer.Option(help="Scale of the score distributions.")] = "minmax",
) -> None:
    """What a run found: a table here, a self-contained HTML page, JSON, and a leaderboard row a scorer."""
    from protoscore.reporting.report import make_report

    path = make_report(run, dataset, out, resamples, human, human_ties, normalise)
    print(f"Open {path} in a browser.")


@app.command()
def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="The run to compare with, e.g. the model in use.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="The run in question, e.g. the new checkpoint.")],
    out: Annotated[Path | None, typer.Option(help="HTML file (default: RUN_B/comparison.html); JSON comes beside it.")] = None,
    fail_if_worse: Annotated[bool, typer.Option("--fail-if-worse", help="Exit with 1 if B is worse on a metric.")] = False,
    fail_below: Annotated[
        float | None, typer.Option(metavar="DELTA", help="Exit with 1 if the whole interval of B - A is below DELTA.")
    ] = None,
    resamples: Annotated[int, typer.Option(min=1000, help="Bootstrap resamples and sign flips.")] = 10_000,
) -> None:
    """Did B get better or worse than A, prompt by prompt, on each metric? Both are runs of score --images.

    The exit code is 0, 1 if a --fail option says so, and 2 for an error.
    """
    from protoscore.reporting.comparison import compare as compare_runs
    from protoscore.reporting.comparison import print_comparison, write_comparison

    found = compare_runs(run_a, run_b, resamples)
    print_comparison(found)
    page = out or run_b / "comparison.html"
    write_comparison(found, run_a, run_b, page)
    print(f"Open {page} in a browser.")
    failed = (found.worse() if fail_if_worse else []) + (found.below(fail_below) if fail_below is not None else [])
    if failed:
        print(f"Failed: {', '.join(dict.fromkeys(failed))}")
        raise typer.Exit(1)


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
    for path, result in sorted(zip(pictures, scores), key=lambda p: (p[1].value is None, -sign * (p[1].value or 0.0))):
        print(f"{result.value:.4f}  {path}" if result.value is not None else f"{result.status}  {path}  {result.reason}")


@app.command()
def scorers(name: Annotated[str | None, typer.Argument(help="A scorer, for its whole card.")] = None) -> None:
    """Explain the metrics: what each answers, range, direction, licence, memory, speed, known bias."""
    from protoscore.reporting.scorer_cards import print_card, print_list

    print_card(name) if name else print_list()


@app.command()
def judge(
    protocol: Annotated[str, typer.Argument(help="BENCHMARK/NAME of a protocol, or your own protocol's .py file.")],
    items: Annotated[str, typer.Option(help="Dataset folder, folder of pictures (with metadata.csv), or Hub id.")],
    out: Out,
    judge_: Annotated[
        str, typer.Option("--judge", "-j", help="local, local:MODEL, chat:MODEL, chat:MODEL@URL or scripted:FILE.")
    ],
    option: Annotated[list[str], typer.Option("--option", "-o", help="NAME=VALUE for the judge. Repeat for several.")] = [],  # noqa: B006
    second: Annotated[str | None, typer.Option(help="A second judge, asked where the first one's replies differ.")] = None,
    second_option: Annotated[list[str], typer.Option(help="NAME=VALUE for the second judge.")] = [],  # noqa: B006
    split: Annotated[str, typer.Option(help="Split to judge.")] = "test",
    image: Annotated[list[str], typer.Option(help="Column of pictures, in order. Default: all of them.")] = [],  # noqa: B006
    field: Annotated[list[str], typer.Option(help="FIELD=COLUMN, where the prompt's name for it differs.")] = [],  # noqa: B006
    id_column: Annotated[str | None, typer.Option("--id", help="Column of unique names.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Judge the first N rows only.")] = None,
    variant: Annotated[list[str], typer.Option(help="Also ask with this wording of the prompt.")] = [],  # noqa: B006
    samples: Annotated[int, typer.Option(min=1, help="Ask each question N times.")] = 1,
    shuffle: Annotated[int | None, typer.Option(help="Seed: draw the order of labels anew for each item.")] = None,
    inject: Annotated[
        str | None, typer.Option(help="Try prompt injections in the 'text' or the 'picture' of each item.")
    ] = None,
    cascade: Annotated[str | None, typer.Option(help="Scorer that screens first; needs --low, --high, --accept-from.")] = None,
    low: Annotated[float | None, typer.Option(help="Cascade: reject at this score and below.")] = None,
    high: Annotated[float | None, typer.Option(help="Cascade: accept at this score and above.")] = None,
    accept_from: Annotated[int | None, typer.Option(help="Cascade: an answer of this and more accepts.")] = None,
    sensitive: Annotated[list[str], typer.Option(help="Cascade: COLUMN=VALUE,VALUE always goes to a judge.")] = [],  # noqa: B006
    max_calls: Annotated[int | None, typer.Option(min=1, help="Budget of the run: calls, retries included.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Budget of the run: tokens.")] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="Budget of the run: money, by the judge's price_in and price_out.")
    ] = None,
    ask_lost: Annotated[bool, typer.Option(help="Ask again what was in flight when a run was killed.")] = False,
) -> None:
    """Put a protocol's question about every item to a judge. Resumes; a reply is never paid for twice."""
    from protoscore.catalog import load
    from protoscore.judging.asking import Budget
    from protoscore.judging.asks import Robustness
    from protoscore.judging.cascade import Rule
    from protoscore.judging.cascade import cascade as run_cascade
    from protoscore.judging.injection import Injected
    from protoscore.judging.items import Items
    from protoscore.judging.options import listed, pairs, typed
    from protoscore.judging.protocol import load_protocol
    from protoscore.judging.stage import judge_items

    asked = load_protocol(protocol)
    source = Items(items, split, tuple(image), pairs(field, "--field"), id_column, limit)
    component = load("judges", judge_, **typed(option, "--option"))
    other = load("judges", second, **typed(second_option, "--second-option")) if second else None
    how = Robustness(("", *variant), samples, shuffle)
    budget = Budget(max_calls, max_tokens, max_cost)
    shown = Injected(asked, source, inject) if inject else source
    if cascade:
        rule = Rule.of(low, high, accept_from, listed(sensitive, "--sensitive"))
        outcome = run_cascade(
            asked, shown, load("scorers", cascade), component, out, rule, other, how, budget, ask_lost=ask_lost
        )
    else:
        outcome = judge_items(asked, shown, component, out, how, other, budget, ask_lost=ask_lost)
    counts = ", ".join(f"{n} {state}" for state, n in outcome.states.items())
    print(
        f"{out / 'verdicts.parquet'}: {counts} of {outcome.items} items; {outcome.asked_now} asked now. {outcome.spent.told()}"
    )
    print(f"Next: protoscore audit {out}")


@app.command()
def audit(
    run: Annotated[Path, typer.Argument(help="Folder that 'protoscore judge' wrote.")],
    state: Annotated[str | None, typer.Option(help="Examples of this state only: ok abstained invalid refused error.")] = None,
    repair: Annotated[str | None, typer.Option(help="Examples that took this repair only.")] = None,
    examples: Annotated[int, typer.Option(min=0, help="How many examples to show.")] = 5,
    against: Annotated[Path | None, typer.Option(help="For a cascade: the run that judged everything.")] = None,
    truth: Annotated[list[str], typer.Option(help="With --against: COLUMN=VALUE,VALUE for which accepting is right.")] = [],  # noqa: B006
    cluster: Annotated[str, typer.Option(help="With --against: column of what was sampled independently.")] = "item",
) -> None:
    """The parser log of a run: states, causes, repairs, raw replies; how injections fared; what a cascade saved."""
    from protoscore.judging.log import print_audit, print_injections, print_savings
    from protoscore.judging.options import listed

    print_audit(run, state, repair, examples)
    print_injections(run)
    if against:
        print_savings(run, against, listed(truth, "--truth"), cluster)


@app.command()
def publish(
    kind: Annotated[Kind, typer.Argument(help="What the folder is. 'results' adds figures to a model's repository.")],
    folder: Annotated[Path, typer.Argument(help="Folder to publish; for results a run or a results file.")],
    repo_id: Annotated[str, typer.Option("--repo-id", help="Where to, as ORG/NAME.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and list the files; send nothing.")] = False,
    public: Annotated[bool, typer.Option("--public", help="Show it to everybody (else a new repository is private).")] = False,
    pull_request: Annotated[bool, typer.Option("--pull-request", help="Propose the change instead of making it.")] = False,
    tag: Annotated[str | None, typer.Option(help="Name for the published revision. A tag is never moved.")] = None,
    collection: Annotated[str | None, typer.Option(help="Title or slug of a collection to put it into.")] = None,
    expect_revision: Annotated[str | None, typer.Option(help="The revision there that may be replaced.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace whatever is there.")] = False,
    benchmark: Annotated[str | None, typer.Option(help="Of results: the dataset, as ORG/NAME or ORG/NAME@REVISION.")] = None,
    scorer: Annotated[str | None, typer.Option(help="Of results: whose, where the file has several.")] = None,
) -> None:
    """Check a folder and put it on the Hub in one commit; the same command goes on after a broken upload."""
    from protoscore.publishing import stage

    options = stage.Options(public, pull_request, tag, collection, expect_revision, overwrite, benchmark, scorer)
    with stage.pack(kind, folder, repo_id, options) as parcel:
        print("\n".join(stage.listing(parcel)))
        if dry_run:
            print("nothing was sent (--dry-run)")
        else:
            print("\n".join(stage.report(parcel, stage.publish(parcel, options), options)))


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
    from protoscore.scoring.stage import load_scorers

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
        traceback.print_exc()  # a bug of ours; 2 all the same, since 1 is the answer "worse"
        raise SystemExit(2) from error


def _stop(message: str) -> None:
    print(f"protoscore: {' '.join(message.split())}", file=sys.stderr)
    raise SystemExit(2)
