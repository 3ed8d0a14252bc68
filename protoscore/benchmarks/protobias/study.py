"""The numbers of a run with one scorer or many: what Tables 3 and 10 of ProtoBias report, and what they leave open."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from protoscore.benchmarks.protobias.annotations import Human, Ties
from protoscore.benchmarks.protobias.schema import DOMAINS, KNOBS, Cell
from protoscore.benchmarks.protobias.tables import CELLS, CellTable
from protoscore.benchmarks.protobias.tasks import TASKS
from protoscore.benchmarks.protobias.wording import Reading, reading
from protoscore.errors import DatasetError
from protoscore.reporting.results import ALL, Results
from protoscore.stats.paired import holm, minmax, rank_normalise
from protoscore.stats.pairwise import ElementSensitivity, FiveQuantities
from protoscore.stats.panel import ChoiceComparison, Draws, Groups, compare_choices, elements_by_group, five_quantities_by_group
from protoscore.stats.resampling import Estimate, mean

Normalisation = Literal["none", "minmax", "rank"]
NC, PV, PC, NV = (CELLS.index(c.value) for c in (Cell.NON_CORRECT, Cell.PROTO_VIOLATED, Cell.PROTO_CORRECT, Cell.NON_VIOLATED))
QUARTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
CELL_TITLES = {  # in the order of telling: what should score high first
    Cell.NON_CORRECT.value: "unusual, right",
    Cell.PROTO_CORRECT.value: "typical, right",
    Cell.NON_VIOLATED.value: "unusual, wrong",
    Cell.PROTO_VIOLATED.value: "typical, wrong",
}


class Compared(NamedTuple):
    """Two scorers on the same pairs; ``p_holm`` is corrected for all pairs of scorers of the study."""

    first: str
    second: str
    difference: Estimate
    kappa: Estimate
    p_holm: float


class Reference(NamedTuple):
    """A scorer, or people, in one group of Table 3."""

    accuracy: Estimate
    kappa: Estimate | None  # with the human majority; among annotators for people


class Study(NamedTuple):
    """Everything that a report shows, computed."""

    scorers: list[str]
    quantities: dict[str, dict[str, FiveQuantities]]  # scorer -> group -> five quantities
    elements: dict[str, dict[str, ElementSensitivity]]  # the same, of the nouns; empty without foils
    table3: dict[str, dict[str, Reference]]  # scorer, or "people" -> "all" or domain
    human: Human | None
    accuracy_pairs: list[Compared]  # on the paper's pairs
    sensitivity_pairs: list[Compared]  # on pairs of one subject
    distributions: dict[str, dict[str, list[float]]]  # scorer -> cell -> quantiles of QUARTILES
    normalisation: Normalisation
    seconds: dict[str, float]  # spent on scoring, by scorer
    pictures: int
    triplets: int
    resamples: int
    four_cells: bool  # whether the two control pictures are there


def make_study(
    tables: list[CellTable], human: Human | None = None, ties: Ties = "left_out", seconds: dict[str, float] | None = None,
    normalisation: Normalisation = "minmax", resamples: int = 10_000, seed: int = 0,
) -> Study:  # fmt: skip
    """Compute a study from tables over the same rows.

    Raises:
        DatasetError: the tables are not over the same rows.
    """
    first = tables[0]
    if any(not np.array_equal(table.ids, first.ids) for table in tables):
        raise DatasetError("the scorers of this run did not score the same rows; run 'protoscore score' again")
    scores = np.stack([table.scores for table in tables])
    draws = Draws(first.triplets, resamples, seed)
    names = [table.scorer for table in tables]
    everything = np.ones(len(first.ids), bool)
    domains = {ALL: everything} | {d: first.domains == d for d in present(DOMAINS, first.domains)}
    found = five_quantities_by_group(scores, draws, groups_of(first))
    pairs = (_choices(scores, [(NC, PV)]), _choices(scores, [(NC, NV), (PC, PV)]))
    accuracy, sensitivity = (_compared(names, compare_choices(c, draws, {ALL: everything})[ALL]) for c in pairs)
    pictures = sum(int(np.isfinite([getattr(t, kind) for t in tables]).any(0).sum()) for kind in ("scores", "foils"))
    return Study(
        names, dict(zip(names, found, strict=True)), _elements(tables, draws),
        _table3(names, found, pairs[0], human, ties, first, draws, domains),
        human, accuracy, sensitivity, {t.scorer: _distribution(t, normalisation) for t in tables}, normalisation, seconds or {},
        pictures, draws.units, resamples, bool(np.isfinite(scores[:, :, [PC, NV]]).any()),
    )  # fmt: skip


def _elements(tables: list[CellTable], draws: Draws) -> dict[str, dict[str, ElementSensitivity]]:
    foils = np.stack([table.foils for table in tables])
    if not np.isfinite(foils).any():
        return {}
    correct = np.stack([table.scores[:, [NC, PC]] for table in tables])
    found = elements_by_group(correct, foils, draws, groups_of(tables[0]))
    return dict(zip((table.scorer for table in tables), found, strict=True))


def groups_of(table: CellTable) -> dict[str, NDArray[np.bool_]]:
    """Everything, each domain, each knob, and each domain with each knob."""
    groups = {ALL: np.ones(len(table.ids), bool)}
    domains = {d: table.domains == d for d in present(DOMAINS, table.domains)}
    knobs = {k: table.knobs == k for k in present(KNOBS, table.knobs)}
    both = {f"{d} / {k}": domains[d] & knobs[k] for d in domains for k in knobs}
    return groups | domains | knobs | {name: rows for name, rows in both.items() if rows.any()}


def present(order: tuple[str, ...], values: NDArray[np.str_]) -> list[str]:
    """The distinct values, known ones first and in their usual order."""
    found = set(values.tolist())
    return [name for name in order if name in found] + sorted(found - set(order))


def _choices(scores: NDArray, cells: list[tuple[int, int]]) -> NDArray[np.float64]:
    """(rows, comparisons, scorers): 1 where the first cell scores strictly higher, NaN where a score is missing."""
    columns = []
    for right, wrong in cells:
        a, b = scores[:, :, right], scores[:, :, wrong]
        columns.append(np.where(np.isfinite(a) & np.isfinite(b), a > b, np.nan).T)
    return np.stack(columns, axis=1)


def _compared(names: list[str], pairings: list[ChoiceComparison]) -> list[Compared]:
    adjusted = holm([pairing.p for pairing in pairings])
    return [
        Compared(names[p.first], names[p.second], p.difference, p.kappa, float(corrected))
        for p, corrected in zip(pairings, adjusted, strict=True)
    ]


def _table3(
    names: list[str], found: list[dict[str, FiveQuantities]], choices: NDArray, human: Human | None, ties: Ties,
    table: CellTable, draws: Draws, domains: Groups,
) -> dict[str, dict[str, Reference]]:  # fmt: skip
    """Accuracy by domain; with annotations on the annotated pairs only, and with kappa, as the paper does."""
    if human is None:
        return {n: {d: Reference(q[d].incongruent, None) for d in domains} for n, q in zip(names, found, strict=True)}
    groups = {name: rows & human.rated for name, rows in domains.items()}
    clusters, people = table.triplets, len(names)
    judged = np.concatenate([choices, human.choices(ties)[:, None, None]], axis=2)
    agreed = compare_choices(judged, draws, groups, [(number, people) for number in range(people)])
    rows = {"people": {d: Reference(human.accuracy(g, clusters), human.agreement(g, clusters)) for d, g in groups.items()}}
    for number, name in enumerate(names):
        right = choices[:, 0, number]
        rows[name] = {d: Reference(mean(right[g], clusters[g]), agreed[d][number].kappa) for d, g in groups.items()}
    return rows


def _distribution(table: CellTable, normalisation: Normalisation) -> dict[str, list[float]]:
    """Quantiles of the scores of each cell, after a normalisation over all of the scorer's scores."""
    flat = table.scores.ravel()
    scores = {"none": lambda: flat, "minmax": lambda: minmax(flat), "rank": lambda: rank_normalise(flat)}[normalisation]()
    scores = scores.reshape(table.scores.shape)
    found = {}
    for column, cell in enumerate(CELLS):
        values = scores[:, column][np.isfinite(scores[:, column])]
        found[cell] = [float(np.quantile(values, q)) for q in QUARTILES] if len(values) else []
    return found


def read(study: Study, name: str) -> Reading:
    """One scorer's quantities in words."""
    return reading(study.quantities[name][ALL], study.elements[name][ALL] if study.elements else None)


def _named(elements: ElementSensitivity | None) -> dict[str, Estimate]:
    """Element sensitivity under the names that results have: ``elements`` over all three, and one of each."""
    found = elements._asdict() if elements else {}
    return {"elements" if name == ALL else f"element_{name}": estimate for name, estimate in found.items()}


def study_results(study: Study) -> Results:
    """A study in the form that every benchmark has."""
    human = study.human
    columns: dict[str, dict[str, Any]] = {}
    for name in study.scorers:
        reference = study.table3[name].items()
        columns[name] = {"verdict": read(study, name).verdict}
        columns[name] |= {f"accuracy_{domain}": found.accuracy.value for domain, found in reference}
        columns[name] |= {f"kappa_{domain}": None if found.kappa is None else found.kappa.value for domain, found in reference}
    details = {
        key: value for key, value in study._asdict().items() if key not in ("scorers", "quantities", "elements", "human")
    }
    details["annotated"] = None if human is None else {"pairs": int(human.rated.sum()), "annotators": human.annotators}
    estimates = {
        name: {group: q._asdict() | _named(study.elements.get(name, {}).get(group)) for group, q in groups.items()}
        for name, groups in study.quantities.items()
    }
    return Results(benchmark="protobias", estimates=estimates, tasks=list(TASKS), columns=columns, details=details)
