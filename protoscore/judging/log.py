"""The audit of a run as tables for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from protoscore.folder import read_manifest
from protoscore.judging.audit import audit, read_verdicts
from protoscore.judging.injection import injection_rates
from protoscore.judging.positions import positions
from protoscore.judging.savings import savings
from protoscore.stats.resampling import Estimate


def print_audit(run: Path, state: str | None, repair: str | None, examples: int) -> None:
    """Counts by state, cause and repair, and the chosen examples with their raw replies."""
    found, console = audit(run, state, repair, examples), Console()
    counts = Table("what", "name", "verdicts", "share", title=f"{found.verdicts} verdicts, {found.repaired} of them repaired")
    for what, numbers in (
        ("state", found.states), ("cause", found.causes), ("repair", found.repairs), ("field withheld", found.withheld),
        ("field unmapped", found.unmapped),
    ):  # fmt: skip
        for name, count in numbers.items():
            counts.add_row(what, escape(name), str(count), f"{count / found.verdicts:.1%}")
    console.print(counts)
    for name in read_manifest(run).get("untaught", ()):
        console.print(escape(f"{name} was never taught this protocol, so its answers mean nothing"))
    if len(found.judges) > 1:
        for name, states in found.judges.items():
            console.print(escape(f"{name}: " + ", ".join(f"{n} {s}" for s, n in states.items())))
    for example in found.examples:
        console.print(
            f"\n[bold]{escape(example.item)}[/bold] ({escape(example.judge)}, {escape(example.asked)}): {example.state}"
        )
        for name in ("cause", "reason", "repairs", "answer", "raw"):
            if getattr(example, name):
                console.print(f"  {name:8} {escape(getattr(example, name))}", highlight=False)


def print_injections(run: Path) -> None:
    """How often each injection got its answer; nothing for a run without injections."""
    if "injection" not in read_verdicts(run).column_names:
        return
    table = Table("injection", "gave the wanted answer", "gave another than left alone", "still an answer", "n")
    for rate in injection_rates(run):
        table.add_row(rate.injection, _shown(rate.followed), _shown(rate.moved), _shown(rate.valid), str(rate.followed.n))
    Console().print(table)


def print_positions(run: Path) -> None:
    """How far the place of a label or an alternative moved answers; nothing where all stood in one order."""
    found = positions(run)
    if not found:
        return
    table = Table("judge", "field", "chose what stood first", "by chance", "n", "another answer in another order", "questions")
    for one in found:
        numbers = (_shown(one.first), f"{one.by_chance:.3f}", str(one.first.n), _shown(one.flips), str(one.flips.n))
        table.add_row(escape(one.judge), escape(one.field), *numbers)
    Console().print(table)


def print_savings(run: Path, full: Path, truth: Mapping[str, tuple[str, ...]], cluster: str) -> None:
    """A cascade beside the run that judged everything."""
    found = savings(run, full, truth or None, cluster)
    table = Table("", "cascade", "full run", title=f"{found.escalated} of {found.items} items went to a judge")
    for name, (ours, theirs) in found.used.items():
        table.add_row(name.replace("_", " "), f"{ours:,}", f"{theirs:,}")
    if found.accuracy:
        table.add_row("accuracy", *map(_shown, found.accuracy))
    console = Console()
    console.print(table)
    console.print(
        f"agreement of decisions {_shown(found.agreement)}, n {found.agreement.n}, left out {found.agreement.left_out}"
    )
    if found.difference:
        console.print(f"accuracy, cascade minus full run: {_shown(found.difference)}")


def _shown(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]".replace("[", "(").replace("]", ")")
