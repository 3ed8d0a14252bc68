"""Stage: scores in, numbers with intervals and a page to look at out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

import protoscore
from protoscore.benchmarks.protobias.annotations import Human, Ties, annotations_of, read_human
from protoscore.benchmarks.protobias.cells import CellRows
from protoscore.benchmarks.protobias.leaderboard import leaderboard, write_leaderboard
from protoscore.benchmarks.protobias.schema import Cell
from protoscore.benchmarks.protobias.study import (
    CELL_TITLES,
    QUARTILES,
    Normalisation,
    Study,
    make_study,
    numbers,
    read_seconds,
)
from protoscore.benchmarks.protobias.tables import CELLS, CellTable, read_scores
from protoscore.benchmarks.protobias.wording import Reading, reading
from protoscore.errors import DatasetError, ImageError
from protoscore.folder import manifest_hash, read_manifest, write_text
from protoscore.reporting.pages import environment, number, thumbnail
from protoscore.reporting.summary import make_summary
from protoscore.reporting.tables import is_own_images
from protoscore.sources.rows import Row

WORST = 6  # pairs shown a scorer
PAPER_PAIRS = 1_800  # text-image pairs of the paper's Table 10
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


def make_report(
    run: Path, dataset: str | None = None, out: Path | None = None, resamples: int = 2000, human: Path | None = None,
    human_ties: Ties = "left_out", normalise: Normalisation = "minmax",
) -> Path:  # fmt: skip
    """Print the table, write ``report.json``, ``leaderboard.jsonl`` and ``.parquet`` and the HTML page; return the page's path.

    A run over a team's own pictures has no cells to compare: it gets the page of :mod:`protoscore.reporting.summary`.

    Args:
        dataset: the scored dataset, for the pictures of the worst pairs, and for its annotations if it has some.
        human: people's choices on the pairs (see ``annotations``), for kappa as in the paper's Table 3.
        human_ties: whether a majority without a preference is left out of kappa, or counts as wrong.
        normalise: how scores of different scales are brought to one for the picture of their distributions.

    Raises:
        DatasetError: ``run`` is no finished run over a benchmark, ``dataset`` is not the one that was scored, or annotations
            do not fit.
    """
    if is_own_images(run):
        return make_summary(run, out, resamples)
    tables = read_scores(run)
    manifest = read_manifest(run)
    annotations = human or annotations_of(dataset)
    people = read_human(annotations, tables[0].ids) if annotations else None
    study = make_study(tables, people, human_ties, read_seconds(run), normalise, resamples)
    readings = {name: reading(groups["all"]) for name, groups in study.quantities.items()}
    _print(study, readings, manifest)
    pictures = _pictures(dataset, manifest, tables) if dataset else {}
    write_text(run / "report.json", json.dumps({"run": manifest_hash(run)} | numbers(study), indent=1) + "\n")
    write_leaderboard(leaderboard(study, manifest, run), run)
    path = out or run / "report.html"
    write_text(path, _page(study, readings, manifest, pictures, tables))
    return path


def _page(study: Study, readings: dict[str, Reading], manifest: dict[str, Any], pictures: dict, tables: list[CellTable]) -> str:
    domains = [name for name in next(iter(study.table3.values())) if name != "all"]
    return environment(Path(__file__).parent).get_template("report.html.jinja").render(
        study=study, readings=readings, manifest=manifest, pictures=pictures, quantities=QUANTITIES,
        version=protoscore.__version__,
        answer=answer(readings), states={t.scorer: t.states for t in tables}, order=by_understanding(study), domains=domains,
        quartiles=QUARTILES, cells=CELL_TITLES, paper_pairs=PAPER_PAIRS, annotated=_annotated(study.human),
        scored={t.scorer: sum(t.states.values()) for t in tables},
    )  # fmt: skip


def answer(readings: dict[str, Reading]) -> list[tuple[str, str, list[str]]]:
    """Scorers by verdict, the verdict's tone with them; good news first, then bad."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, r in readings.items():
        found.setdefault((r.verdict, r.tone), []).append(name)
    tones = ("good", "bad", "neutral")
    return [(verdict, tone, names) for (verdict, tone), names in sorted(found.items(), key=lambda f: tones.index(f[0][1]))]


def by_understanding(study: Study) -> list[str]:
    """Scorers from the most to the least semantically sensitive; by the paper's accuracy where there are two cells only."""

    def key(name: str) -> float:
        q = study.quantities[name]["all"]
        value = q.sensitivity.value if study.four_cells else q.incongruent.value
        return -value if np.isfinite(value) else 1.0

    return sorted(study.scorers, key=key)


def _annotated(human: Human | None) -> dict[str, int] | None:
    if human is None:
        return None
    ties = int(sum(label == "tie" for label in human.majority))
    return {"pairs": int(human.rated.sum()), "annotators": human.annotators, "ties": ties, "unknown": human.unknown}


def _short(value: float) -> str:
    """Two digits in as little room as a terminal of 80 columns has: ``.93``, ``-.81``, ``1.0``."""
    return "1.0" if value >= 0.995 else f"{value:.2f}".replace("0.", ".")


def _print(study: Study, readings: dict[str, Reading], manifest: dict[str, Any]) -> None:
    kind = "drawn scenes, not photographs" if manifest["scenes"] else "pictures"
    title = f"Five quantities on {kind}; 95 % intervals below"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for name in ("scorer", *QUANTITIES):
        table.add_column(name, no_wrap=True)
    for name in by_understanding(study):
        short = name if len(name) < 19 else f"…{name[-17:]}"
        values = study.quantities[name]["all"]._asdict().items()
        table.add_row(Text(short), *(_value(q, e.value) for q, e in values))
        table.add_row("", *(f"{_short(e.low)}–{_short(e.high)}" if e.value == e.value else "" for _, e in values), style="dim")
    console = Console()
    console.print(table)
    if study.human is not None:
        _print_people(console, study)
    for verdict, tone, names in answer(readings):
        style = {"good": "green", "bad": "red", "neutral": ""}[tone]
        console.print(Text(f"{verdict}: ", style=f"bold {style}") + Text(", ".join(names)), soft_wrap=True)
    if len(readings) < 4:
        for name, r in readings.items():
            console.print(Text(f"{name}: ", style="bold") + Text(r.text))


def _value(quantity: str, value: float) -> str:
    return "-" if value != value else f"{value:+.3f}" if quantity == "gap" else f"{value:.3f}"


def _print_people(console: Console, study: Study) -> None:
    """Table 3 of the paper: kappa with the human majority and accuracy, by domain."""
    table = Table(
        title="Kappa with people, and accuracy, on the annotated pairs",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    domains = list(study.table3["people"])
    for name in ("", *domains):
        table.add_column(name, no_wrap=True)
    for name, row in study.table3.items():
        kappas = [kappa.value if (kappa := row[d].kappa) else float("nan") for d in domains]
        cells = [
            f"{number(k, True, 2)}  {number(row[d].accuracy.value, digits=2)}" for k, d in zip(kappas, domains, strict=True)
        ]
        table.add_row(Text(name), *cells, style="bold" if name == "people" else "")
    console.print(table)


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
    found: dict[str, dict[str, Row]] = {}
    for row in CellRows(dataset, manifest["parameters"]["split"]).rows() if wanted else ():
        if (pair := row.fields["pair"]) in wanted:
            found.setdefault(pair, {})[row.fields["cell"]] = row
        elif len(found) == len(wanted):
            break
    if wanted - found.keys():
        raise DatasetError(f"{dataset} is not the dataset of this run (it has no row {min(wanted - found.keys())})")
    return {name: [_shown(m, found[m.id]) for m in some] for name, some in worst.items()}


def _shown(mistake: Mistake, cells: dict[str, Row]) -> dict[str, Any]:
    shown = {side: cells[cell.value] for side, cell in (("right", mistake.right), ("wrong", mistake.wrong))}
    pictures = {side: _thumbnail(row.images[0]) for side, row in shown.items()}
    about = shown["right"].fields
    return {"text": about["text"], "kind": mistake.kind, "margin": -mistake.margin, "knob": about["knob"], **pictures}


def _thumbnail(image: bytes) -> str:
    try:
        return thumbnail(image)
    except ImageError as error:  # it was scored, so the dataset has changed since
        raise DatasetError(f"a picture of the dataset cannot be read any more ({error}); score it again") from error
