"""Stage: scores in, numbers with intervals and a page to look at out."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table

import protoscore
from protoscore.cells import rows
from protoscore.errors import DatasetError
from protoscore.folder import manifest_hash, read_manifest, write_text
from protoscore.reading import reading
from protoscore.schema import DOMAINS, KNOBS, Cell
from protoscore.scoring import open_image
from protoscore.stats.pairwise import FiveQuantities
from protoscore.stats.resampling import Estimate
from protoscore.tables import CELLS, CellTable, read_scores

WORST = 6  # pairs shown a scorer
THUMBNAIL = 192  # px
COMPARISONS = {  # what a pair is called -> (right cell, wrong cell)
    "the paper's pair": (Cell.NON_CORRECT, Cell.PROTO_VIOLATED),
    "congruent pair": (Cell.PROTO_CORRECT, Cell.NON_VIOLATED),
    "same unusual subject": (Cell.NON_CORRECT, Cell.NON_VIOLATED),
    "same typical subject": (Cell.PROTO_CORRECT, Cell.PROTO_VIOLATED),
}
QUANTITIES = {
    "incongruent": "Incongruent accuracy",
    "congruent": "Congruent accuracy",
    "sensitivity": "Semantic sensitivity",
    "preference": "Prototype preference",
    "gap": "Bias gap",
}


class Mistake(NamedTuple):
    """A pair that a scorer ordered wrongly."""

    id: str
    kind: str
    right: Cell
    wrong: Cell
    margin: float  # in standard deviations of the scorer's scores


def make_report(run: Path, dataset: str | None = None, out: Path | None = None, resamples: int = 2000) -> Path:
    """Print the table, write ``report.json`` and the HTML page, and return the page's path.

    Raises:
        DatasetError: ``run`` is no finished run, or ``dataset`` is not the one that was scored.
    """
    tables = read_scores(run)
    manifest = read_manifest(run)
    results = {table.scorer: _by_group(table, resamples) for table in track(tables, description="resampling")}
    _print(results, manifest)
    pictures = _pictures(dataset, manifest, tables) if dataset else {}
    write_text(run / "report.json", _numbers(run, results, len(np.unique(tables[0].triplets)), resamples))
    timing = run / "timing.json"
    page = _environment().get_template("report.html.jinja").render(
        results=results, quantities=QUANTITIES, manifest=manifest, version=protoscore.__version__, pictures=pictures,
        readings={name: reading(groups["all"]) for name, groups in results.items()}, resamples=resamples,
        states={t.scorer: t.states for t in tables}, triplets=len(np.unique(tables[0].triplets)), images=tables[0].scores.size,
        seconds=json.loads(timing.read_text())["scoring_seconds"] if timing.is_file() else {},
    )  # fmt: skip
    path = out or run / "report.html"
    write_text(path, page)
    return path


def _numbers(run: Path, results: dict[str, dict[str, FiveQuantities]], triplets: int, resamples: int) -> str:
    """The whole table as JSON: scorer -> group -> quantity -> value, low, high, n, left_out, ties."""
    scorers = {
        name: {group: {q: e._asdict() for q, e in five._asdict().items()} for group, five in groups.items()}
        for name, groups in results.items()
    }
    body = {"run": manifest_hash(run), "triplets": triplets, "resamples": resamples, "scorers": scorers}
    return json.dumps(body, indent=1) + "\n"


def _by_group(table: CellTable, resamples: int) -> dict[str, FiveQuantities]:
    """The five quantities over everything, by domain, by knob, and by both."""
    groups = {"all": table.quantities(resamples=resamples)}
    for domain in _present(DOMAINS, table.domains):
        groups[domain] = table.quantities(table.domains == domain, resamples)
    for knob in _present(KNOBS, table.knobs):
        groups[knob] = table.quantities(table.knobs == knob, resamples)
    for domain in _present(DOMAINS, table.domains):
        for knob in _present(KNOBS, table.knobs):
            here = (table.domains == domain) & (table.knobs == knob)
            if here.any():
                groups[f"{domain} / {knob}"] = table.quantities(here, resamples)
    return groups


def _short(value: float) -> str:
    """Two digits in as little room as a terminal of 80 columns has: ``.93``, ``-.81``, ``1.0``."""
    return "1.0" if value >= 0.995 else f"{value:.2f}".replace("0.", ".")


def _present(order: tuple[str, ...], values: NDArray[np.str_]) -> list[str]:
    """The distinct values, known ones first and in their usual order."""
    found = set(values.tolist())
    return [name for name in order if name in found] + sorted(found - set(order))


def _print(results: dict[str, dict[str, FiveQuantities]], manifest: dict[str, Any]) -> None:
    kind = "drawn scenes, not photographs" if manifest["scenes"] else "pictures"
    title = f"Five quantities on {kind}; 95 % intervals below"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for name in ("scorer", *QUANTITIES):
        table.add_column(name, no_wrap=True)
    for name, groups in results.items():
        short = name if len(name) < 19 else f"…{name[-17:]}"
        values = groups["all"]._asdict().items()
        table.add_row(short, *(f"{e.value:+.3f}" if q == "gap" else f"{e.value:.3f}" for q, e in values))
        table.add_row("", *(f"{_short(e.low)}–{_short(e.high)}" for _, e in values), style="dim")
    console = Console()
    console.print(table)
    for name, groups in results.items():
        console.print(f"[bold]{name}[/bold]: {reading(groups['all']).text}", highlight=False)


def mistakes(table: CellTable, count: int = WORST) -> list[Mistake]:
    """The pairs that a scorer got most wrong, at most one a row, worst first."""
    spread = np.nanstd(table.scores)
    if not np.isfinite(spread) or spread == 0:
        return []
    found: dict[str, Mistake] = {}
    for kind, (right, wrong) in COMPARISONS.items():
        margins = (table.scores[:, CELLS.index(right.value)] - table.scores[:, CELLS.index(wrong.value)]) / spread
        for index in np.flatnonzero(margins < 0):
            name = str(table.ids[index])
            if name not in found or margins[index] < found[name].margin:
                found[name] = Mistake(name, kind, right, wrong, float(margins[index]))
    return sorted(found.values(), key=lambda m: (m.margin, m.id))[:count]


def _pictures(dataset: str, manifest: dict[str, Any], tables: list[CellTable]) -> dict[str, list[dict[str, Any]]]:
    """For each scorer its worst pairs, with thumbnails as data URIs."""
    worst = {table.scorer: mistakes(table) for table in tables}
    wanted = {m.id for found in worst.values() for m in found}
    found: dict[str, dict] = {}
    for row in rows(dataset, manifest["parameters"]["split"]):
        name = f"{row['triplet']}-{row['rendition']}"
        if name in wanted:
            found[name] = row
        if len(found) == len(wanted):
            break
    if wanted - found.keys():
        raise DatasetError(f"{dataset} is not the dataset of this run (it has no row {min(wanted - found.keys())})")
    return {name: [_shown(m, found[m.id]) for m in some] for name, some in worst.items()}


def _shown(mistake: Mistake, row: dict) -> dict[str, Any]:
    pictures = {side: _thumbnail(row[f"{cell.value}_image"]["bytes"]) for side, cell in
                (("right", mistake.right), ("wrong", mistake.wrong))}  # fmt: skip
    return {"text": row["text"], "kind": mistake.kind, "margin": -mistake.margin, "knob": row["knob"], **pictures}


def _thumbnail(data: bytes) -> str:
    image = open_image(data)
    image.thumbnail((THUMBNAIL, THUMBNAIL))
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=85)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()


def _environment() -> Environment:
    environment = Environment(loader=PackageLoader("protoscore", "templates"), autoescape=True, undefined=StrictUndefined)
    environment.filters["interval"] = lambda e: f"[{e.low:.3f}, {e.high:.3f}]"
    environment.tests["number"] = lambda e: isinstance(e, Estimate) and np.isfinite(e.value)
    return environment
