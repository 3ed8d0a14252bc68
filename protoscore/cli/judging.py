"""Questions to a judge, and what became of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from protoscore.cli.inputs import (
    SOURCE_HELP,
    About,
    Config,
    Fields,
    FileColumn,
    IdColumn,
    ImageColumns,
    Images,
    Limit,
    PromptColumn,
    Prompts,
    Split,
    rows_from,
)  # fmt: skip
from protoscore.cli.options import Out, Truth

app = typer.Typer()


@app.command()
def judge(
    protocol: Annotated[
        str, typer.Argument(help="BENCHMARK/NAME or BENCHMARK/NAME:SET of a protocol, or your own protocol's .py file.")
    ],
    out: Out,
    judge_: Annotated[
        str, typer.Option("--judge", "-j", help="local, local:MODEL, chat:MODEL, chat:MODEL@URL or scripted:FILE.")
    ],
    items: Annotated[str | None, typer.Option(help=SOURCE_HELP)] = None,
    images: Images = None,
    prompts: Prompts = None,
    prompt_column: PromptColumn = None,
    file_column: FileColumn = None,
    protocol_option: Annotated[list[str], typer.Option(help="NAME=VALUE for the protocol, e.g. labels=appendix.")] = [],  # noqa: B006
    option: Annotated[list[str], typer.Option("--option", "-o", help="NAME=VALUE for the judge. Repeat for several.")] = [],  # noqa: B006
    second: Annotated[str | None, typer.Option(help="A second judge, asked where the first one's replies differ.")] = None,
    second_option: Annotated[list[str], typer.Option(help="NAME=VALUE for the second judge.")] = [],  # noqa: B006
    split: Split = "test",
    config: Config = None,
    image: ImageColumns = [],  # noqa: B006
    field: Fields = [],  # noqa: B006
    id_column: IdColumn = None,
    about: About = None,
    limit: Limit = None,
    variant: Annotated[list[str], typer.Option(help="Also ask with this wording of the prompt.")] = [],  # noqa: B006
    samples: Annotated[int, typer.Option(min=1, help="Ask each question N times.")] = 1,
    shuffle: Annotated[int | None, typer.Option(help="Seed: draw the order of labels anew for each item.")] = None,
    orders: Annotated[str, typer.Option(help="'all': ask with every order of the labels.")] = "given",
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
    retry: Annotated[list[str], typer.Option(help="Ask again, once, where the reply is in this state, e.g. invalid.")] = [],  # noqa: B006
    ask_lost: Annotated[bool, typer.Option(help="Ask again what was in flight when a run was killed.")] = False,
) -> None:
    """Put a protocol's question about every item to a judge. Resumes; a reply is never paid for twice."""
    from protoscore.asking.dispatch import Budget
    from protoscore.asking.protocol import load_protocol
    from protoscore.asking.questions import Robustness
    from protoscore.catalog import load
    from protoscore.cli.named_values import listed, pairs, typed
    from protoscore.errors import ConfigError, UnknownName
    from protoscore.judging.cascade import Rule
    from protoscore.judging.cascade import cascade as run_cascade
    from protoscore.judging.injection import Injected
    from protoscore.judging.stage import judge_items
    from protoscore.schema import Status

    if orders not in ("given", "all"):
        raise ConfigError(f"--orders is 'given' or 'all', not {orders!r}; an order that is drawn comes from --shuffle SEED")
    asked = load_protocol(protocol, **typed(protocol_option, "--protocol-option"))
    named = {"prompt": prompt_column, "file": file_column}
    source = rows_from(items, images, prompts, named, split, limit, image, field, id_column, about, config)
    component = load("vlms", judge_, **pairs(option, "--option"))
    other = load("vlms", second, **pairs(second_option, "--second-option")) if second else None
    how = Robustness(("", *variant), samples, shuffle, orders == "all")
    for state in retry:
        if state not in set(Status):
            raise UnknownName("state", state, [known.value for known in Status])
    again = [Status(state) for state in retry]
    budget = Budget(max_calls, max_tokens, max_cost)
    shown = Injected(asked, source, inject) if inject else source
    if cascade:
        rule = Rule.of(low, high, accept_from, listed(sensitive, "--sensitive"))
        outcome = run_cascade(
            asked, shown, load("scorers", cascade), component, out, rule, other, how, budget, ask_lost=ask_lost
        )
    else:
        outcome = judge_items(asked, shown, component, out, how, other, budget, ask_lost=ask_lost, retry=again)
    counts = ", ".join(f"{n} {state}" for state, n in outcome.states.items())
    print(
        f"{out / 'verdicts.parquet'}: {counts} of {outcome.items} items; {outcome.asked_now} asked now. {outcome.spent.told()}"
    )
    print(f"Next: protoscore audit {out}")


@app.command()
def audit(
    run: Annotated[Path, typer.Argument(help="Folder that 'protoscore judge' wrote.")],
    state: Annotated[
        str | None, typer.Option(help="Examples of this state only: ok abstained unmapped invalid refused error.")
    ] = None,
    repair: Annotated[str | None, typer.Option(help="Examples that took this repair only.")] = None,
    examples: Annotated[int, typer.Option(min=0, help="How many examples to show.")] = 5,
    against: Annotated[Path | None, typer.Option(help="For a cascade: the run that judged everything.")] = None,
    accept: Annotated[list[str], typer.Option(help="With --against: COLUMN=VALUE,VALUE for which accepting is right.")] = [],  # noqa: B006
    truth: Truth = [],  # noqa: B006
    cluster: Annotated[str, typer.Option(help="Column of what was sampled independently.")] = "item",
) -> None:
    """The parser log of a run: states, causes, repairs, raw replies; what was answered, and how much of it is right; how
    injections fared; what a cascade saved."""
    from rich.console import Console

    from protoscore.cli.named_values import listed, pairs
    from protoscore.judging.log import print_audit, print_injections, print_positions, print_savings
    from protoscore.reporting.answers import answer_results, answer_tables

    results = answer_results(run, truth=pairs(truth, "--truth"), cluster=cluster)
    print_audit(run, state, repair, examples)
    Console().print(*answer_tables(results), sep="\n")
    print_injections(run)
    print_positions(run)
    if against:
        print_savings(run, against, listed(accept, "--accept"), cluster)
