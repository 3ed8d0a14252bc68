"""What each metric is, for people: a list that fits the terminal, and the whole card of one."""

from __future__ import annotations

from rich import box
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from protoscore.catalog import added, module, names
from protoscore.errors import UnknownName
from protoscore.scorers import Facts, facts_of
from protoscore.scorers._custom import adopt

WIDE = 130  # columns from which a table reads better than blocks


def all_facts() -> dict[str, Facts]:
    """Facts of every metric by name, ours and those of other installed packages, without loading any weights."""
    return {name: _facts(name) for name in sorted({*names("scorers"), *added("scorers")})}


def _facts(name: str) -> Facts:
    found = module("scorers", name)
    return facts_of(found) if hasattr(found, "create") else adopt(found, name).facts


def print_list(console: Console | None = None) -> None:
    """Every metric: a table on a wide terminal, a block each on a narrow one."""
    console = console or Console()
    facts = all_facts()
    console.print(_table(facts) if console.width >= WIDE else Group(*(_block(name, f) for name, f in facts.items())))
    console.print("The whole card of one: protoscore scorers NAME", style="dim", highlight=False)


def print_card(name: str, console: Console | None = None) -> None:
    """Everything that is known about one metric.

    Raises:
        UnknownName: there is no such metric.
    """
    facts = all_facts()
    if name not in facts:
        raise UnknownName("scorer", name, facts)
    console = console or Console()
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for label, value in card(facts[name]).items():
        grid.add_row(label, Text(value))
    console.print(Text(name, style="bold"))
    console.print(Padding(grid, (0, 0, 1, 0)))
    console.print(f"Use it: protoscore score DATASET -s {name} --out RUN", style="dim", markup=False, highlight=False)


def card(facts: Facts) -> dict[str, str]:
    """The card of a metric, label by label."""
    lines = {
        "answers": facts.question,
        "range": f"{_range(facts)}, {_direction(facts)}",
        "variants": ", ".join(facts.variants),
        "model": f"{facts.hub_id or 'none to download'}{' at ' + facts.revision if facts.revision else ''}",
        "access": "gated: accept its terms on the Hub, then 'hf auth login'" if facts.gated else "",
        "licence": facts.licence,
        "memory": _memory(facts),
        "speed": facts.speed or "not measured here",
        "known bias": facts.known_bias,
        "paper": facts.paper,
    }
    return {label: value for label, value in lines.items() if value}


def _range(facts: Facts) -> str:
    low, high = (("unbounded" if bound is None else f"{bound:g}") for bound in (facts.low, facts.high))
    return "unbounded" if low == high == "unbounded" else f"{low} to {high}"


def _direction(facts: Facts) -> str:
    return "higher is better" if facts.higher_is_better else "lower is better"


def _memory(facts: Facts) -> str:
    """Of the weights; activations come on top and depend on the batch."""
    if facts.memory_gb is None:
        return "" if facts.hub_id is None else "not known"
    return f"{facts.memory_gb:.1f} GB of weights in float32, {facts.memory_gb / 2:.1f} GB in 16 bits"


def _block(name: str, facts: Facts) -> RenderableType:
    short = [_range(facts), _direction(facts), facts.licence]
    if facts.memory_gb is not None:
        short.append(f"{facts.memory_gb:.1f} GB")
    short.append(facts.speed or "speed not measured here")
    lines = [Text(facts.question), Text(" · ".join(short), style="dim"), Text(f"Known bias: {facts.known_bias}", style="dim")]
    return Group(Text(name, style="bold"), Padding(Group(*lines), (0, 0, 1, 2)))


def _table(facts: dict[str, Facts]) -> Table:
    table = Table(pad_edge=False, box=box.HORIZONTALS)
    for heading, ratio in (
        ("scorer", 0),
        ("answers", 4),
        ("range", 0),
        ("licence", 2),
        ("GB", 0),
        ("speed", 2),
        ("known bias", 4),
    ):
        table.add_column(
            heading, ratio=ratio or None, no_wrap=heading == "scorer", justify="right" if heading == "GB" else "left"
        )
    table.expand = True
    for name, f in facts.items():
        arrow = "↑" if f.higher_is_better else "↓"
        memory = "" if f.memory_gb is None else f"{f.memory_gb:.1f}"
        cells = (f.question, f"{_range(f)} {arrow}", f.licence, memory, f.speed or "not measured", f.known_bias)
        table.add_row(f"[bold]{escape(name)}[/bold]", *(Text(cell) for cell in cells), end_section=True)
    table.caption = "↑ higher is better, ↓ lower is better. GB: weights in float32; half of it in 16 bits."
    table.caption_justify = "left"
    return table
