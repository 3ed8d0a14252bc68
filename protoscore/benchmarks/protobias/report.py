"""ProtoBias in words and pictures: the page of a run, and what a terminal shows of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.text import Text

import protoscore
from protoscore.benchmarks.protobias.annotations import Human
from protoscore.benchmarks.protobias.cells import CellRows
from protoscore.benchmarks.protobias.schema import ELEMENTS, Cell, Foil
from protoscore.benchmarks.protobias.study import CELL_TITLES, QUARTILES, Study, read
from protoscore.benchmarks.protobias.tables import CELLS, FOILS, CellTable, read_scores
from protoscore.benchmarks.protobias.wording import Reading
from protoscore.errors import DatasetError, ImageError
from protoscore.figures import number
from protoscore.folder import read_manifest
from protoscore.reporting.pages import environment, thumbnail
from protoscore.reporting.results import ALL
from protoscore.reporting.terminal import TerminalTable, terminal_table
from protoscore.sources.rows import Row
from protoscore.stats.resampling import Estimate

if TYPE_CHECKING:
    from rich.console import RenderableType

WORST = 6  # pairs shown a scorer
PAPER_PAIRS = 1_800  # text-image pairs of the paper's Table 10
COMPARISONS: dict[str, list[tuple[Cell, Cell | Foil]]] = {  # what a pair is called -> (right, wrong) pictures
    "the paper's pair": [(Cell.NON_CORRECT, Cell.PROTO_VIOLATED)],
    "congruent pair": [(Cell.PROTO_CORRECT, Cell.NON_VIOLATED)],
    "same unusual subject": [(Cell.NON_CORRECT, Cell.NON_VIOLATED)],
    "same typical subject": [(Cell.PROTO_CORRECT, Cell.PROTO_VIOLATED)],
    **{f"another {element}": [(foil.correct, foil) for foil in Foil if foil.element == element] for element in ELEMENTS},
}
QUANTITIES = {
    "incongruent": "Incongruent accuracy",
    "congruent": "Congruent accuracy",
    "sensitivity": "Semantic sensitivity",
    "preference": "Prototype preference",
    "gap": "Bias gap",
}
ELEMENT_TITLES = {"extra": "another thing", "environment": "another place", "subject": "another subject", "all": "all three"}


class Mistake(NamedTuple):
    """A pair that a scorer ordered wrongly."""

    id: str
    kind: str
    right: Cell
    wrong: Cell | Foil
    margin: float  # in standard deviations of the scorer's scores


def page(study: Study, run: Path, dataset: str | None = None) -> str:
    """The page of a run.

    Args:
        dataset: the scored dataset, for the pictures of the worst pairs.

    Raises:
        DatasetError: ``dataset`` is not the one that was scored.
    """
    tables, manifest = read_scores(run), read_manifest(run)
    readings = readings_of(study)
    domains = [name for name in next(iter(study.table3.values())) if name != ALL]
    return environment(Path(__file__).parent).get_template("report.html.jinja").render(
        study=study, readings=readings, manifest=manifest, pictures=_pictures(dataset, manifest, tables) if dataset else {},
        quantities=QUANTITIES, elements=ELEMENT_TITLES, version=protoscore.__version__,
        answer=answer(readings), states={t.scorer: t.states for t in tables}, order=by_understanding(study), domains=domains,
        quartiles=QUARTILES, cells=CELL_TITLES, paper_pairs=PAPER_PAIRS, annotated=_annotated(study.human),
        scored={t.scorer: sum(t.states.values()) for t in tables},
    )  # fmt: skip


def readings_of(study: Study) -> dict[str, Reading]:
    """Each scorer's quantities in words."""
    return {name: read(study, name) for name in study.scorers}


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
        q = study.quantities[name][ALL]
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


def shown(study: Study, run: Path) -> list[RenderableType]:
    """The five quantities, kappa with people where there is some, and the verdicts, for a terminal."""
    readings = readings_of(study)
    kind = "drawn scenes, not photographs" if read_manifest(run)["scenes"] else "pictures"
    order = by_understanding(study)
    rows = [row for name in order for row in _two_lines(name, study.quantities[name][ALL]._asdict())]
    headings = ("scorer", *QUANTITIES)
    parts: list[RenderableType] = [
        terminal_table(headings, rows, headings, f"Five quantities on {kind}; 95 % intervals below"),
        *([_people(study)] if study.human is not None else []),
    ]
    if study.elements:
        rows = [row for name in order for row in _two_lines(name, study.elements[name][ALL]._asdict())]
        headings = ("scorer", *ELEMENT_TITLES.values())
        parts.insert(1, terminal_table(headings, rows, headings, "Element sensitivity: right against one noun wrong"))
    for verdict, tone, names in answer(readings):
        style = {"good": "green", "bad": "red", "neutral": ""}[tone]
        parts.append(Text(f"{verdict}: ", style=f"bold {style}") + Text(", ".join(names)))
    if len(readings) < 4:
        parts += [Text(f"{name}: ", style="bold") + Text(r.text) for name, r in readings.items()]
    return parts


def _two_lines(name: str, estimates: dict[str, Estimate]) -> list[list[Text]]:
    """A scorer's values, and their intervals below."""
    values = [Text(name if len(name) < 19 else f"…{name[-17:]}"), *(Text(_value(q, e.value)) for q, e in estimates.items())]
    bounds = (f"{_short(e.low)}–{_short(e.high)}" if e.value == e.value else "" for e in estimates.values())
    return [values, [Text(""), *(Text(text, style="dim") for text in bounds)]]


def _value(quantity: str, value: float) -> str:
    return "-" if value != value else f"{value:+.3f}" if quantity == "gap" else f"{value:.3f}"


def _people(study: Study) -> TerminalTable:
    """Table 3 of the paper: kappa with the human majority and accuracy, by domain."""
    domains = list(study.table3["people"])
    rows = []
    for name, row in study.table3.items():
        kappas = [kappa.value if (kappa := row[d].kappa) else float("nan") for d in domains]
        cells = (f"{number(k, True, 2)}  {number(row[d].accuracy.value, digits=2)}" for k, d in zip(kappas, domains))
        rows.append([Text(cell, style="bold" if name == "people" else "") for cell in (name, *cells)])
    headings = ("", *domains)
    return terminal_table(headings, rows, headings, "Kappa with people, and accuracy, on the annotated pairs")


def mistakes(table: CellTable, count: int = WORST) -> list[Mistake]:
    """The pairs that a scorer got most wrong, at most one a row, worst first."""
    scores = np.hstack([table.scores, table.foils.reshape(-1, len(FOILS))])
    column = {name: number for number, name in enumerate(CELLS + FOILS)}
    spread = np.nanstd(scores)
    if not np.isfinite(spread) or spread == 0:
        return []
    found: dict[str, Mistake] = {}
    for kind, right, wrong in ((kind, *pair) for kind, pairs in COMPARISONS.items() for pair in pairs):
        margins = (scores[:, column[right.value]] - scores[:, column[wrong.value]]) / spread
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
