"""All tables of a run of FairJudge's protocols, or of several judges over the same pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from protoscore.benchmarks.fairjudge.answers import Answers, Items, abstention, in_set, read_answers, variants
from protoscore.benchmarks.fairjudge.people import Agreement, agreement, read_people
from protoscore.benchmarks.fairjudge.scores import ByGroup, Scores, by_group, field_scores, floors, overall
from protoscore.benchmarks.fairjudge.truth import Truth, attributes, column_of, group_values, labels_of, read_truth
from protoscore.errors import UnknownName
from protoscore.judging.positions import Position, positions
from protoscore.judging.truth import Answered
from protoscore.reporting.results import ALL, Estimates, Results, Task
from protoscore.stats.abstention import outcomes
from protoscore.stats.claims import SwapConsistency, consistency
from protoscore.stats.group_gaps import GroupGaps, group_gaps
from protoscore.stats.paired import difference, holm
from protoscore.stats.resampling import Draw, Estimate, mean
from protoscore.stats.sensitivity import Sensitivity, prompt_sensitivity

SET, SWAPPED = "set", "swapped"  # columns of counterfactual sets: the set's name, and what was swapped (empty for the base)


class JudgeComparison(NamedTuple):
    """A judge against the first one, on the same rows."""

    judge: str
    accuracy: Estimate  # difference
    p: float  # Holm-adjusted over all comparisons of the study


class Wording(NamedTuple):
    """How far the wording of the question moves one attribute."""

    names: tuple[str, ...]
    accuracy: Sensitivity
    flips: Estimate  # share of items whose answer is not the same under every wording


class AttributeStudy(NamedTuple):
    """One attribute. Judges come in the order of the runs."""

    labels: tuple[str, ...]
    withheld: str
    truth: Truth
    judges: dict[str, Scores]
    floors: dict[str, Scores]
    groups: dict[str, dict[str, ByGroup]]  # attribute that groups -> judge
    wording: dict[str, Wording]
    swaps: dict[str, SwapConsistency]
    people: Agreement | None
    compared: tuple[JudgeComparison, ...]
    states: dict[str, dict[str, int]]
    unmapped: dict[str, dict[str, int]]


class ScaleStudy(NamedTuple):
    """A grade, as a number in [-1, 1]: (grade - 3) / 2 of 1 to 5 (section 3.2.2)."""

    judges: dict[str, Estimate]
    groups: dict[str, dict[str, GroupGaps]]
    people: Agreement | None
    states: dict[str, dict[str, int]]


class FairStudy(NamedTuple):
    """Everything that a page shows."""

    attributes: dict[str, AttributeStudy]
    scales: dict[str, ScaleStudy]
    untold: tuple[str, ...]  # closed fields whose truth no column says
    overall: dict[str, tuple[Estimate, Estimate]]  # judge -> accuracy over attributes, and its worst case
    positions: dict[str, list[Position]]  # judge -> field by field, where labels were asked in several orders
    usage: dict[str, dict[str, float]]
    items: int
    sampled_by: str | None  # the column of what was sampled independently; None: each picture


class Choices(NamedTuple):
    """What the papers leave open, with our defaults."""

    truth: Mapping[str, str] = {}  # attribute -> column
    kind: str = ""  # "depicted" or "intended"; empty: the first that is there
    labels: str = ""  # score in this set of labels instead of the asked one
    groups: tuple[str, ...] = ()  # attributes to group by; empty: all that the items state
    cluster: str = ""  # column of what was sampled independently; empty: the counterfactual set where there is one
    min_group: int = 10
    human: Path | None = None
    resamples: int = 2000
    seed: int = 0


def make_study(runs: Sequence[Path], choices: Choices) -> FairStudy:
    """Read the runs and compute every table.

    Raises:
        DatasetError: a run is not finished, or is about other items than the first.
        ConfigError, UnknownName: a choice names what is not there.
    """
    items, answers = read_answers(runs)
    return _Maker(items, answers, choices).study()


class _Maker:
    def __init__(self, items: Items, answers: list[Answers], choices: Choices):
        self.items, self.answers, self.choices = items, answers, choices
        self.fields = answers[0].fields
        for name in choices.truth:
            if name not in self.fields:
                raise UnknownName("field that was judged", name, self.fields)
        if choices.cluster and choices.cluster not in items.columns:
            raise UnknownName("column of the items", choices.cluster, items.columns)
        self.sampled_by = choices.cluster or (SET if SET in items.columns else None)
        self.draw: Draw = (items.clusters(self.sampled_by), choices.resamples, choices.seed)
        self.groups = self._groups()
        self.people = read_people(choices.human, items.names, self.fields) if choices.human else {}

    def study(self) -> FairStudy:
        found, right = {}, {}
        for name, field in self.fields.items():
            column = self._column(name) if field.kind == "label" else None
            if column is not None:
                found[name], right[name] = self._attribute(name, field, column)
        scales = {name: self._scale(name, field) for name, field in self.fields.items() if field.kind == "integer"}
        together = {
            judge.name: overall({name: (some[judge.name], some[""]) for name, some in right.items()}, self.draw)
            for judge in self.answers
            if right
        }
        untold = tuple(name for name in self.fields if name not in found and name not in scales)
        usage = {judge.name: dict(judge.usage) for judge in self.answers}
        places = {judge.name: positions(judge.run, self.choices.resamples) for judge in self.answers}
        return FairStudy(_corrected(found), scales, untold, together, places, usage, len(self.items.names), self.sampled_by)

    def _column(self, attribute: str) -> str | None:
        return column_of(attribute, self.items.columns, self.choices.truth.get(attribute, self.choices.kind))

    def _groups(self) -> dict[str, NDArray]:
        """Attribute -> group of each row, of those that the items state for two groups or more."""
        wanted = self.choices.groups or tuple(attributes())
        found = {}
        for name in wanted:
            column = column_of(name, self.items.columns, self.choices.kind) or (name if name in self.items.columns else None)
            if column is None and self.choices.groups:
                raise UnknownName("attribute to group by", name, self.items.columns)
            groups = group_values(name, self.items.columns[column]) if column else np.array([], object)
            if len({group for group in groups if group is not None}) > 1:
                found[name] = groups
        return found

    def _attribute(self, name: str, field: Answered, column: str) -> tuple[AttributeStudy, dict[str, NDArray]]:
        labels, withheld = field.labels, abstention(field)
        if self.choices.labels:
            labels = labels_of(name, self.choices.labels) or labels
        truth = read_truth(name, column, self.items.columns[column], labels)
        known = np.array([label is not None for label in truth.labels], bool)
        said = {judge.name: in_set(name, judge.given[name].labels, labels) for judge in self.answers}
        sure = {judge.name: judge.given[name].confidence for judge in self.answers}
        right: dict[str, NDArray] = {judge: outcomes(some, truth.labels, withheld)[0] for judge, some in said.items()}
        others = {group: member for group, member in self.groups.items() if group != name}
        without = floors(truth, labels, withheld, self.choices.seed)
        study = AttributeStudy(
            labels, withheld, truth,
            {judge: field_scores(some, truth, labels, withheld, self.draw, sure[judge]) for judge, some in said.items()},
            {floor: field_scores(some, truth, labels, withheld, self.draw) for floor, some in without.items()},
            {
                group: {
                    judge: by_group(some, truth, labels, withheld, member, self.choices.min_group, self.draw)
                    for judge, some in said.items()
                }
                for group, member in others.items()
            },
            self._wording(name, truth, labels, withheld), self._swaps(said, truth),
            agreement(said, self.people[name], field, self.draw) if name in self.people else None,
            tuple(
                JudgeComparison(judge, *difference(some, right[self.answers[0].name], *self.draw))
                for judge, some in list(right.items())[1:]
            ),
            {judge.name: judge.given[name].states for judge in self.answers},
            {judge.name: judge.given[name].unmapped for judge in self.answers},
        )  # fmt: skip
        return study, right | {"": known}

    def _wording(self, name: str, truth: Truth, labels: tuple[str, ...], withheld: str) -> dict[str, Wording]:
        found = {}
        for judge in self.answers:
            asked = [v._replace(labels=in_set(name, v.labels, labels)) for v in variants(judge, name, self.items.names)]
            if not asked:
                continue
            correct = np.stack([outcomes(v.labels, truth.labels, withheld)[0] for v in asked], 1)
            given = list(zip(*(v.labels for v in asked), strict=True))
            flips = np.array([np.nan if None in row else float(len(set(row)) > 1) for row in given])
            names = tuple(v.name or "own wording" for v in asked)
            found[judge.name] = Wording(names, prompt_sensitivity(correct, *self.draw), mean(flips, *self.draw))
        return found

    def _swaps(self, said: Mapping[str, NDArray], truth: Truth) -> dict[str, SwapConsistency]:
        pairs = self._pairs
        if not len(pairs):
            return {}
        sets = self.items.clusters(SET)
        clusters = None if sets is None else sets[pairs[:, 0]]
        _, *rest = self.draw
        return {judge: consistency(some, truth.labels, pairs, clusters, *rest) for judge, some in said.items()}

    @property
    def _pairs(self) -> NDArray[np.int64]:
        """(pairs, 2) rows of each base and its variants."""
        columns = self.items.columns
        if SET not in columns or SWAPPED not in columns:
            return np.zeros((0, 2), int)
        base = {name: row for row, (name, what) in enumerate(zip(columns[SET], columns[SWAPPED], strict=True)) if not what}
        named = enumerate(zip(columns[SET], columns[SWAPPED], strict=True))
        return np.array([(base[name], row) for row, (name, what) in named if what and name in base], int).reshape(-1, 2)

    def _scale(self, name: str, field: Answered) -> ScaleStudy:
        low, high = (float(field.labels[end]) for end in (0, -1))
        values = {
            judge.name: np.array(
                [np.nan if g is None else 2 * (float(g) - low) / (high - low) - 1 for g in judge.given[name].labels]
            )
            for judge in self.answers
        }
        return ScaleStudy(
            {judge: mean(some, *self.draw) for judge, some in values.items()},
            {
                group: {judge: group_gaps(some, member, self.choices.min_group, *self.draw) for judge, some in values.items()}
                for group, member in self.groups.items()
            },
            agreement({j.name: j.given[name].labels for j in self.answers}, self.people[name], field, self.draw)
            if name in self.people else None,
            {judge.name: judge.given[name].states for judge in self.answers},
        )  # fmt: skip


def _corrected(found: dict[str, AttributeStudy]) -> dict[str, AttributeStudy]:
    """With Holm's correction over all comparisons of all attributes."""
    flat = [one.p for study in found.values() for one in study.compared]
    adjusted = iter(holm(flat).tolist())
    return {
        name: study._replace(compared=tuple(one._replace(p=next(adjusted)) for one in study.compared))
        for name, study in found.items()
    }


def study_results(study: FairStudy, resamples: int) -> Results:
    """The estimates of every judge; floors and the ceiling are in the details, so that no leaderboard ranks them."""
    estimates: Estimates = {}
    told: list[AttributeStudy | ScaleStudy] = [*study.attributes.values(), *study.scales.values()]
    judges = list(dict.fromkeys(judge for one in told for judge in one.judges))
    for judge in judges:
        whole: dict[str, Estimate] = {}
        if judge in study.overall:
            whole["accuracy"], whole["accuracy_worst_case"] = study.overall[judge]
        whole |= {f"{name}_{q}": one.judges[judge].quantities[q] for name, one in study.attributes.items() for q in HEADLINE}
        whole |= {name: one.judges[judge] for name, one in study.scales.items()}
        estimates[judge] = {ALL: whole}
        for name, one in study.attributes.items():
            estimates[judge][name] = one.judges[judge].quantities | _more(one, judge)
            for group, some in one.groups.items():
                estimates[judge] |= {f"{name} by {group}: {g.group}": {"accuracy": g.mean} for g in some[judge].accuracy.groups}
        for name, scale in study.scales.items():
            for group, gaps in scale.groups.items():
                estimates[judge] |= {f"{name} by {group}: {g.group}": {"mean": g.mean} for g in gaps[judge].groups}
    tasks = [Task(id="accuracy")] if study.attributes else [Task(id=name) for name in study.scales]
    floors_ = {n: {f: scores.quantities for f, scores in one.floors.items()} for n, one in study.attributes.items()}
    details: dict[str, Any] = {
        "resamples": resamples, "floors": floors_, "sampled_by": study.sampled_by, "truth_not_stated": list(study.untold),
        "states_by_field": {name: one.states for name, one in zip([*study.attributes, *study.scales], told, strict=True)},
        "unmapped": {n: one.unmapped for n, one in study.attributes.items()},
        "truth": {n: one.truth._asdict() | {"labels": None, "offered": None} for n, one in study.attributes.items()},
    }  # fmt: skip
    return Results(benchmark="fairjudge", estimates=estimates, tasks=tasks, columns=study.usage, details=details)


HEADLINE = ("accuracy", "claim_precision", "claim_coverage", "macro_f1_reference")


def _more(one: AttributeStudy, judge: str) -> dict[str, Estimate]:
    """What depends on groups, swaps, wordings and people."""
    found: dict[str, Estimate] = {}
    for group, some in one.groups.items():
        f1, gaps = some[judge]
        found |= {f"gmf1_by_{group}_{rule}": scores.gmf1 for rule, scores in f1.rules.items()}
        found |= {f"worst_accuracy_by_{group}": gaps.worst, f"accuracy_gap_by_{group}": gaps.gap}
    if judge in one.swaps:
        found |= {f"swap_{name}": e for name, e in one.swaps[judge]._asdict().items()}
    if judge in one.wording:
        found |= {"wording_spread": one.wording[judge].accuracy.spread, "wording_flips": one.wording[judge].flips}
    if one.people:
        found["kappa_with_people"] = one.people.judges[judge]
    return found
