"""All tables of a comparison of models, from the folder that ``protoscore diversity`` wrote."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from protoscore.benchmarks.diversity.comparison import (
    Contradiction,
    ModelComparison,
    compare_models,
    contradictions,
    kendall,
    mean_scores,
    outcomes_of,
    weakest,
)
from protoscore.benchmarks.diversity.measured import MeasuredModel, read_measured
from protoscore.benchmarks.diversity.pairs import ConceptPair, read_pairs
from protoscore.benchmarks.diversity.people import People, beside_people
from protoscore.benchmarks.diversity.running import STAGE, folders_of
from protoscore.benchmarks.diversity.set_scores import Drawing, SetScores, score_sets
from protoscore.benchmarks.diversity.votes import read_votes
from protoscore.errors import DatasetError
from protoscore.folder import read_manifest
from protoscore.reporting.results import ALL, Estimates, Results, Task
from protoscore.schema import content_id
from protoscore.stats.resampling import Estimate


class DiversityStudy(NamedTuple):
    """Everything that a page shows."""

    run: Path
    manifest: dict[str, Any]
    sets: SetScores
    measured: list[MeasuredModel]
    means: dict[str, dict[str, Estimate]]  # measure -> model
    comparisons: dict[str, ModelComparison]  # measure, the main one first
    misled: list[Contradiction]
    agreement: dict[tuple[str, str], float]  # two measures -> Kendall's tau-b of their rankings
    weak: dict[str, list[tuple[str, float]]]  # model -> its least diverse concepts by the main measure
    people: People | None

    @property
    def main(self) -> str:
        """The measure by which all is ordered: people's, else what a judge saw, else the first embedder's Vendi score."""
        return next(iter(self.comparisons))


def make_study(run: Path, votes: Sequence[Path] = (), asked: Path | None = None, pairs_of: str | None = None) -> DiversityStudy:
    """Read a run and compute every table.

    Raises:
        DatasetError: the run is not finished, or its list of pairs is another one by now.
    """
    manifest = read_manifest(run, STAGE)
    parameters = manifest["parameters"]
    pairs = pairs_of_run(run, parameters, pairs_of)
    vectors, judged, scored = folders_of(run)
    measured = [read_measured(name, vectors[name], judged.get(name), scored.get(name)) for name in parameters["models"]]
    sets = score_sets(measured, pairs, Drawing(**parameters["sets"]))
    means = {measure: mean_scores(sets, measure) for measure in sets.scores}
    groups = [pair.group for pair in pairs]
    comparisons = {
        measure: compare_models(
            measure,
            outcomes_of(scores, sets.models),
            sets.models,
            groups,
            {name: e.value for name, e in means[measure].items()},
        )
        for measure, scores in sets.scores.items()
    }
    people = beside_people(read_votes(votes, asked or run / "tasks.csv"), sets, groups) if votes else None
    if people:
        comparisons = {"people": people.comparison} | comparisons
    names = list(comparisons)
    main = next(measure for measure in comparisons if measure != "people")
    return DiversityStudy(
        run, manifest, sets, measured, means, comparisons, contradictions(list(comparisons.values())),
        {(a, b): kendall(comparisons[a], comparisons[b]) for i, a in enumerate(names) for b in names[i + 1 :]},
        {model: weakest(sets, main, model) for model in sets.models}, people,
    )  # fmt: skip


def pairs_of_run(run: Path, parameters: dict[str, Any], pairs_of: str | None = None) -> list[ConceptPair]:
    """The list of pairs that a run was made from.

    Raises:
        DatasetError: it changed, or is not at hand.
    """
    pairs = read_pairs(pairs_of or run / "pairs.csv")
    if content_id(*pairs, length=24) != parameters["pairs"]:
        raise DatasetError(
            f"{run} was made from other pairs than {parameters['list']!r} has now; make it again into another --out"
        )
    return pairs


def study_results(study: DiversityStudy) -> Results:
    """The study in the form of all benchmarks: by model, means of every measure and win rates against all others."""
    estimates: Estimates = {}
    for model in study.comparisons[study.main].models:
        whole = {measure: found[model] for measure, found in study.means.items()}
        by_group = {
            group: {"win_rate": estimate}
            for (name, group), estimate in study.comparisons[study.main].groups.items()
            if name == model
        }
        estimates[model] = {ALL: whole, **by_group}
    tests = {
        measure: [
            {"first": a, "second": b, "direction": one.direction(a, b), **test._asdict()} for (a, b), test in one.tests.items()
        ]
        for measure, one in study.comparisons.items()
    }
    details = {
        "main": study.main, "ranking": {measure: one.models for measure, one in study.comparisons.items()}, "tests": tests,
        "never_worse": {measure: one.never_worse() for measure, one in study.comparisons.items()},
        "power": {measure: {"at": one.power, "least_wins": one.least} for measure, one in study.comparisons.items()},
        "subsets": {measure: one.subsets for measure, one in study.comparisons.items()},
        "misled": study.misled, "kendall": [[*names, tau] for names, tau in study.agreement.items()], "weakest": study.weak,
        "left_out": {one.name: one.left_out for one in study.measured}, "without_a_set": study.sets.without,
        "people": {k: v for k, v in study.people._asdict().items() if k != "comparison"} if study.people else None,
    }  # fmt: skip
    tasks = [Task(id=measure) for measure in study.means]
    return Results(benchmark="diversity", estimates=estimates, tasks=tasks, details=details)
