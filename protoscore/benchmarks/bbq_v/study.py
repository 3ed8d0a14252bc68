"""What a run says about a model: bias scores of chosen options, and the grades that judges gave to its answers.

Groups are ``all``, each domain, each sub-domain (``Age / Old``), and each order of the options, where several were asked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protoscore.benchmarks.bbq_v.questions import LETTERS
from protoscore.errors import DatasetError
from protoscore.folder import read_manifest
from protoscore.judging.audit import read_verdicts
from protoscore.judging.positions import positions
from protoscore.reporting.results import ALL, Estimates, Results, Task
from protoscore.schema import Status
from protoscore.stats.bbq import CRITERIA, bias_scores, criteria_scores, harmonic_mean, percent
from protoscore.stats.resampling import Estimate, mean, means

KNOWN = ("accuracy", "fairness", "stereotype", "prior_bias", "grounding")  # graded where the context tells
GRADES = {"bbq_v/criteria": CRITERIA, "bbq_v/criteria_known": KNOWN}
CHOICE, OPEN = "bbq_v/multiple_choice", "bbq_v/open_ended"
USABLE = (Status.OK.value, Status.ABSTAINED.value)
NEEDED = ("domain", "subdomain", "stem", "condition")


class Table:
    """The verdicts of a run, one row per question asked.

    Raises:
        DatasetError: the run is not finished, or its items are not questions of BBQ.
    """

    def __init__(self, run: Path):
        self.run, self._table = run, read_verdicts(run)
        self.protocol = str(read_manifest(run)["parameters"]["protocol"])
        if missing := [name for name in NEEDED if name not in self._table.column_names]:
            raise DatasetError(f"{run} is not about questions of BBQ: its items have no {missing[0]!r}")

    def __getitem__(self, name: str) -> NDArray[np.object_]:
        """A column; all None where there is none."""
        if name not in self._table.column_names:
            return np.full(len(self._table), None, object)
        return np.array(self._table[name].to_pylist(), object)

    def text(self, name: str) -> NDArray[np.str_]:
        return np.array(["" if value is None else str(value) for value in self[name]])

    def groups(self) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Every group of rows by name, that of everything first."""
        domain, part = self.text("domain"), self.text("subdomain")
        yield ALL, np.ones(len(domain), bool)
        for name in sorted(set(domain)):
            yield name, domain == name
            parts = sorted(set(part[domain == name]))
            yield from ((f"{name} / {one}", (domain == name) & (part == one)) for one in parts if len(parts) > 1)


def study(run: Path, judged: Sequence[Path], tasks: Sequence[Task], resamples: int) -> Results:
    """The results of a run of answers, and of judging runs about it.

    Raises:
        DatasetError: the run was asked something else, or a judging run is about other answers.
    """
    table = Table(run)
    if table.protocol not in (CHOICE, OPEN):
        raise DatasetError(
            f"{run} was asked {table.protocol}; report a run of {CHOICE} or {OPEN}, and name what judged it by -o judged=RUN"
        )
    estimates: Estimates = {}
    for model in dict.fromkeys(table.text("judge")):
        mine = table.text("judge") == model
        found = _choices(table, mine, resamples) if table.protocol == CHOICE else _replies(table, mine, resamples)
        estimates[str(model)] = found
    for one in judged:
        _add_grades(estimates, table, Table(one), resamples)
    states = {model: dict(Counter(table.text("state")[table.text("judge") == model])) for model in estimates}
    ranked = [*tasks] if table.protocol == CHOICE else [Task(id="overall")] if judged else []
    return Results(benchmark="bbq_v", estimates=estimates, tasks=ranked, details={"states": states, "resamples": resamples})


def _replies(table: Table, mine: NDArray[np.bool_], resamples: int) -> dict[str, dict[str, Estimate]]:
    """How many open questions got a readable answer, by group."""
    usable = np.isin(table.text("state"), USABLE).astype(float)
    stems = table.text("stem")
    return {
        name: {"readable": mean(usable[here & mine], stems[here & mine], resamples)}
        for name, here in table.groups()
        if (here & mine).any()
    }


def _choices(table: Table, mine: NDArray[np.bool_], resamples: int) -> dict[str, dict[str, Estimate]]:
    found = {
        name: _bias(table, here & mine, resamples) for name, here in [*table.groups(), *_orders(table)] if (here & mine).any()
    }
    for one in positions(table.run, resamples):
        if one.judge in set(table.text("judge")[mine]):
            found[ALL] |= {"chose_first": one.first, "changed_with_order": one.flips}
    return found


def _orders(table: Table) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    shown = np.array(["" if o is None else "".join(json.loads(o).get("answer", ())) for o in table["order"]])
    for order in sorted(set(shown)):
        if len(set(shown)) > 1:
            yield f"options in the order {order}", shown == order


def _bias(table: Table, here: NDArray[np.bool_], resamples: int) -> dict[str, Estimate]:
    """Bias scores, accuracies, and the two kinds of no answer apart, of some rows."""
    usable = np.isin(table.text("state"), USABLE)[here]
    chosen = np.where(usable, _places(table, "answer_answer", here), np.nan)
    right, unknown, target = (_places(table, name, here) for name in ("right", "unknown", "target"))
    condition, stems = table.text("condition")[here], table.text("stem")[here]
    scores = bias_scores(
        chosen, right, unknown, target, table.text("polarity")[here], condition, clusters=stems, resamples=resamples
    )
    unread, withheld = np.isnan(chosen), np.where(np.isnan(chosen), np.nan, chosen == unknown)
    parts = {
        "withheld_amb": np.where(condition == "ambig", withheld, np.nan),
        "withheld_dis": np.where(condition == "disambig", withheld, np.nan),
        "unread": unread.astype(float),
    }
    shares = dict(zip(parts, means(np.stack([*parts.values()], 1), stems, resamples), strict=True))
    for name, kind in (("withheld_amb", "ambig"), ("withheld_dis", "disambig")):  # of its own condition only
        shares[name] = shares[name]._replace(left_out=int((unread & (condition == kind)).sum()))
    return scores._asdict() | shares


def _places(table: Table, name: str, here: NDArray[np.bool_]) -> NDArray[np.float64]:
    """A column of letters as the places of options, NaN where there is none."""
    place = {letter: float(number) for number, letter in enumerate(LETTERS)}
    return np.array([place.get(letter, np.nan) for letter in table.text(name)[here].tolist()])


def _add_grades(estimates: Estimates, answers: Table, grades: Table, resamples: int) -> None:
    """Put what a judge made of the answers beside the other estimates of each model, by the condition that it grades: a grade
    for withholding means nothing where the context tells.
    """
    if grades.protocol not in GRADES:
        raise DatasetError(f"{grades.run} was asked {grades.protocol}; judged takes runs of {' or '.join(GRADES)}")
    judged, ours = grades.text("answered_by"), set(estimates)
    if others := set(judged) - ours:
        raise DatasetError(
            f"{grades.run} is about answers of {min(others) or 'nobody'}, and {answers.run} holds those of {min(ours)}"
        )
    meant = grades.text("condition") == ("disambig" if GRADES[grades.protocol] is KNOWN else "ambig")
    for model in estimates:
        for name, here in grades.groups():
            if (mine := here & meant & (judged == model)).any():
                estimates[model].setdefault(name, {}).update(_grades(grades, mine, resamples))


def _grades(table: Table, here: NDArray[np.bool_], resamples: int) -> dict[str, Estimate]:
    """Each criterion 0-100, and their harmonic means by name: within a domain and then over domains, and answer by answer.

    An answer without a grade (the judge's reply was not read, or there was no answer to grade) is left out, and counted.
    """
    criteria = GRADES[table.protocol]
    known = "_dis" if criteria is KNOWN else ""
    usable = np.isin(table.text("state"), USABLE)[here]
    given = np.stack([np.where(usable, table[f"answer_{name}"][here], np.nan).astype(float) for name in criteria], 1)
    stems, domains = table.text("stem")[here], table.text("domain")[here]
    scores = criteria_scores(given, domains, criteria, clusters=stems, resamples=resamples)
    over_criteria = criteria_scores(given, None, criteria, clusters=stems, resamples=resamples).overall
    by_answer = np.where(np.isnan(given).any(1), np.nan, harmonic_mean(percent(given)))
    found = {
        "overall": scores.overall,
        "overall_of_criteria": over_criteria,
        "overall_of_answers": mean(by_answer, stems, resamples),
    }
    return {f"{name}{known}": estimate for name, estimate in (found | scores.criteria).items()}
