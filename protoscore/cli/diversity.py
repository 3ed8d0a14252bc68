"""Which of several models is more diverse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from protoscore.cli.options import Out

app = typer.Typer()
_HELP = "A model, SPEC or NAME=SPEC: a folder of pictures, or a generator such as simulated:3."


@app.command()
def diversity(
    out: Out,
    a: Annotated[str, typer.Option("--a", help=_HELP)],
    b: Annotated[str, typer.Option("--b", help="The second model.")],
    c: Annotated[str | None, typer.Option("--c", help="A third.")] = None,
    d: Annotated[str | None, typer.Option("--d", help="A fourth.")] = None,
    e: Annotated[str | None, typer.Option("--e", help="A fifth.")] = None,
    pairs: Annotated[
        str | None,
        typer.Option(help="photos (86 pairs), scenes (40), or a table. Default: scenes, where a model is simulated."),
    ] = None,
    pictures: Annotated[int, typer.Option(min=2, help="Pictures of each pair, where they are drawn.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the pictures.")] = 0,
    set_size: Annotated[int, typer.Option(min=2, help="Pictures of a set.")] = 8,
    set_number: Annotated[int, typer.Option(min=1, help="Side-by-side comparisons of each pair and two models.")] = 2,
    set_seed: Annotated[int, typer.Option(help="Seed of the draw of sets.")] = 0,
    order: Annotated[float, typer.Option(min=0, help="Order of the Vendi score's entropy.")] = 1.0,
    embedder: Annotated[list[str], typer.Option("--embedder", "-e", help="As of 'protoscore embed'. Repeat it.")] = ["scene"],  # noqa: B006
    judge: Annotated[str | None, typer.Option("--judge", "-j", help="Judge of each picture's value, e.g. local.")] = None,
    scorer: Annotated[str | None, typer.Option("--scorer", "-s", help="A picture counts only where it scores enough.")] = None,
    keep_from: Annotated[float | None, typer.Option(help="... from this score on.")] = None,
    votes: Annotated[list[str], typer.Option(help="People's votes, as a table; repeat for several.")] = [],  # noqa: B006
    tasks: Annotated[Path | None, typer.Option(help="What they were asked about. Default: OUT/tasks.csv.")] = None,
    annotate: Annotated[Path | None, typer.Option(help="Folder to write for people: a page of tasks, and their key.")] = None,
    condition: Annotated[str, typer.Option(help="What people are asked: count, aspect (named, no count), none.")] = "count",
    task_limit: Annotated[int | None, typer.Option(min=1, help="So many comparisons for people, drawn by --set-seed.")] = None,
    golden: Annotated[str | None, typer.Option(help="Folder of the golden set; its tasks are mixed in.")] = None,
    only_plan: Annotated[bool, typer.Option("--plan", help="Say what would be done, and do nothing.")] = False,
) -> None:
    """Compare models by how much the attribute of a concept varies in their pictures. Resumes."""
    from rich.console import Console
    from rich.text import Text

    from protoscore.benchmarks import report
    from protoscore.benchmarks.diversity import Diversity
    from protoscore.benchmarks.diversity.models import read_models
    from protoscore.benchmarks.diversity.pairs import read_pairs
    from protoscore.benchmarks.diversity.running import Measures, plan, run
    from protoscore.benchmarks.diversity.set_scores import Drawing
    from protoscore.benchmarks.diversity.template import Template

    models = read_models([spec for spec in (a, b, c, d, e) if spec])
    listed = pairs or ("scenes" if any(model.simulated for model in models) else "photos")
    how, measures = Drawing(set_size, set_number, set_seed, order), Measures(tuple(embedder), judge, scorer, keep_from)
    measures.check()
    if only_plan:
        for name, count in plan(models, read_pairs(listed), pictures, how, measures)._asdict().items():
            print(f"{count:>9,} {name.replace('_', ' ')}")
        return
    run(models, listed, out, pictures, how, measures, seed)
    benchmark = Diversity(votes=",".join(votes), tasks=str(tasks) if tasks else "")
    benchmark.folders = {model.name: model.spec for model in models if model.is_folder}
    results, page = report(out, benchmark)
    if annotate:
        template = Template(condition, task_limit, set_seed, golden)  # type: ignore[arg-type]
        count = benchmark.write_tasks(out, annotate, template)
        print(f"{annotate / 'page' / 'index.html'}: {count} tasks; {annotate / 'tasks.csv'} is their key, keep it")
    console = Console()
    for part in benchmark.shown(results):
        console.print(part, soft_wrap=isinstance(part, Text))
    print(f"Open {page} in a browser.")
