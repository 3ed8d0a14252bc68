"""People beside automatic measures: whom they call more diverse, how far they agree, and which measure says the same."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from protoscore.benchmarks.diversity.comparison import ModelComparison, compare_models
from protoscore.benchmarks.diversity.set_scores import SetScores
from protoscore.benchmarks.diversity.votes import CHOICES, SideVote, VotedTask, Votes
from protoscore.sources.pictures import refuse
from protoscore.stats.agreement import krippendorff_alpha
from protoscore.stats.correlation import correlation
from protoscore.stats.diversity import autorater_accuracy, concept_outcomes, equal_auc
from protoscore.stats.resampling import Estimate, mean


class Autorater(NamedTuple):
    """One measure beside people. Intervals resample concepts."""

    accuracy: Estimate  # of the comparisons that people do not call equal
    accuracy_clear: Estimate  # of the quarter in which people's counts differ most
    equal_auc: Estimate


class People(NamedTuple):
    """People's votes, and the measures beside them."""

    comparison: ModelComparison
    annotators: int
    votes: int
    unable: int
    alpha: Estimate  # Krippendorff's, of left, equal, right as ordered
    count_and_choice: Estimate  # Spearman, of the difference of counts and the choice
    golden: Estimate  # share of answers to known tasks that are right
    equal: int  # comparisons that people call equal
    no_mode: int  # comparisons on which no answer leads
    autoraters: dict[str, Autorater]
    one_sided: list[str]


def beside_people(found: Votes, sets: SetScores, groups: Sequence[str]) -> People:
    """People's comparison of the models, and every automatic measure against it.

    Raises:
        DatasetError: a task is about a pair or a model that the run does not have.
    """
    place = {pair.id: p for p, pair in enumerate(sets.pairs)}
    known = [task for task in found.tasks.values() if not task.expected]
    strangers = {name for task in known for name in (task.left, task.right)} - set(sets.models)
    refuse(sorted(strangers), "{} model(s) of the tasks are not in this run")
    refuse(sorted({task.pair for task in known} - set(place)), "{} pair(s) of the tasks are not in this run")
    rows = [vote for vote in found.votes if not found.tasks[vote.task].expected]
    comparison = compare_models("people", _outcomes(rows, found.tasks, sets, place), sets.models, groups)
    modes, clear = _modes(rows), _gaps(rows)
    names = list(modes)
    human = np.array([modes[name] for name in names])
    concepts = [found.tasks[name].pair for name in names]
    gaps = np.array([clear[name] for name in names])
    raters = {}
    for measure, scores in sets.scores.items():
        first = np.array([_score(scores, sets, place, found.tasks[name], found.tasks[name].left) for name in names])
        second = np.array([_score(scores, sets, place, found.tasks[name], found.tasks[name].right) for name in names])
        finite = np.isfinite(gaps)
        top = finite & (gaps >= np.quantile(gaps[finite], 0.75)) if finite.any() else finite
        raters[measure] = Autorater(
            autorater_accuracy(first, second, human, concepts),
            autorater_accuracy(first, second, np.where(top, human, np.nan), concepts),
            equal_auc(first, second, human, concepts),
        )
    golden = [(vote, CHOICES[found.tasks[vote.task].expected]) for vote in found.votes if found.tasks[vote.task].expected]
    right = [float(vote.choice == expected) for vote, expected in golden]  # "unable" is not right
    counted, choices = [vote.counts[0] - vote.counts[1] for vote in rows], [vote.choice for vote in rows]
    tops = [_top(some) for some in _by_task(rows).values()]
    return People(
        comparison, len({vote.annotator for vote in found.votes}), len(found.votes), int(np.isnan(choices).sum()),
        _alpha(rows), correlation(counted, choices, "spearman", [found.tasks[vote.task].pair for vote in rows]),
        mean(right, [vote.task for vote, _ in golden]), sum(top == [0.0] for top in tops), sum(len(top) > 1 for top in tops),
        raters, found.one_sided,
    )  # fmt: skip


def _outcomes(
    rows: Sequence[SideVote], tasks: Mapping[str, VotedTask], sets: SetScores, place: Mapping[str, int]
) -> dict[tuple[str, str], NDArray]:
    """By pair of models, outcomes by concept: the mode over raters, then over side-by-side comparisons."""
    found = {}
    for i, a in enumerate(sets.models):
        for b in sets.models[i + 1 :]:
            some = [(vote, tasks[vote.task]) for vote in rows if {tasks[vote.task].left, tasks[vote.task].right} == {a, b}]
            signed = [vote.choice if task.left == a else -vote.choice for vote, task in some]
            by_concept = (
                concept_outcomes(signed, [task.pair for _, task in some], [vote.task for vote, _ in some]) if some else {}
            )
            found[a, b] = np.array([by_concept.get(pair, np.nan) for pair in place])
    return found


def _by_task(rows: Sequence[SideVote]) -> dict[str, list[SideVote]]:
    grouped: dict[str, list[SideVote]] = {}
    for vote in rows:
        grouped.setdefault(vote.task, []).append(vote)
    return grouped


def _top(votes: Sequence[SideVote]) -> list[float]:
    """The most frequent choices; several where none leads."""
    counts = Counter(vote.choice for vote in votes if vote.choice == vote.choice)
    return [choice for choice, n in counts.items() if n == max(counts.values())]


def _modes(rows: Sequence[SideVote]) -> dict[str, float]:
    """The mode of each task; without a single one it is equal, as in ``stats.diversity.concept_outcomes``."""
    tops = {task: _top(votes) for task, votes in _by_task(rows).items()}
    return {task: top[0] if len(top) == 1 else 0.0 if top else float("nan") for task, top in tops.items()}


def _gaps(rows: Sequence[SideVote]) -> dict[str, float]:
    """The mean difference of people's counts of each task, without its sign."""
    found = {}
    for task, votes in _by_task(rows).items():
        gaps = [vote.counts[0] - vote.counts[1] for vote in votes if np.isfinite(vote.counts).all()]
        found[task] = abs(float(np.mean(gaps))) if gaps else float("nan")
    return found


def _score(scores: NDArray, sets: SetScores, place: Mapping[str, int], task: VotedTask, model: str) -> float:
    if task.number >= scores.shape[2]:
        return float("nan")
    return float(scores[sets.models.index(model), place[task.pair], task.number])


def _alpha(rows: Sequence[SideVote]) -> Estimate:
    people = list(dict.fromkeys(vote.annotator for vote in rows))
    if len(people) < 2:
        return Estimate(math.nan, math.nan, math.nan, 0, len(_by_task(rows)))
    tasks = {task: row for row, task in enumerate(_by_task(rows))}
    table = np.full((len(tasks), len(people)), None, object)
    for vote in rows:
        if vote.choice == vote.choice:
            table[tasks[vote.task], people.index(vote.annotator)] = int(vote.choice)
    return krippendorff_alpha(table, "ordinal")
