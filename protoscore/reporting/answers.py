"""What a judge or a model answered, as estimates: for each closed field the share of each label, or the mean of a number; and
where the truth is named, how often that was right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protoscore.judging.truth import Against, Answered, Confusion, Decisions, text_of
from protoscore.reporting.results import ALL, Results
from protoscore.reporting.terminal import TerminalTable, results_table, terminal_table
from protoscore.schema import Status
from protoscore.stats.agreement import cohen_kappa
from protoscore.stats.resampling import Estimate, means
from protoscore.stats.small_samples import mean_of_units

USABLE = (Status.OK.value, Status.ABSTAINED.value)
SCORES = ("claimed", "right", "right of claims", "right at worst", "right at best")


def answer_results(
    run: Path, benchmark: str = "", resamples: int = 2000, seed: int = 0, truth: Mapping[str, str] | None = None,
    cluster: str = "item",
) -> Results:  # fmt: skip
    """The combined decision about each item of a run. An item without a usable reply is left out, and counted.

    Args:
        truth: field -> the column of the items that holds what is true.
        cluster: column of what was sampled independently.

    Raises:
        DatasetError: ``run`` is not a finished run of questions, or a column holds no label of its field.
        UnknownName: there is no such field or column.
    """
    decisions = Decisions(run)
    against = {f"{field} vs {column}": decisions.against(field, column) for field, column in (truth or {}).items()}
    clusters = None if cluster == "item" else np.array([str(value) for value in decisions.column(cluster)])
    usable = np.isin(decisions.states, USABLE)
    quantities: dict[str, Estimate | None] = {"usable replies": None}  # in order; None: a mean of its column
    columns: dict[str, NDArray[Any]] = {"usable replies": usable.astype(float)}
    for field in decisions.fields().values():
        if field.kind == "integer":
            quantities[f"{field.field} (mean)"] = _mean(field, resamples, seed)
            continue
        columns |= {name: np.where(usable, given, np.nan) for name, given in _shares(field) if given[usable].any()}
    for name, one in against.items():
        columns |= {f"{name}: {what}": column for what, column in zip(SCORES, one.columns.T, strict=True)}
    found = dict(zip(columns, means(np.stack([*columns.values()], 1), clusters, resamples, seed), strict=True))
    estimates = {**{name: found.pop(name) if e is None else e for name, e in quantities.items()}, **found}
    for name, one in against.items():
        if one.answered.kind == "integer":
            estimates[f"{name}: kappa, quadratic weights"] = _kappa(one, (clusters, resamples, seed))
    who = ", then ".join(judge["name"] for judge in decisions.manifest["parameters"]["judges"])
    details = {
        "states": {who: decisions.manifest["states"]}, "resamples": resamples,
        "confusion": {name: one.confusion() for name, one in against.items() if one.answered.kind != "labels"},
    }  # fmt: skip
    return Results(benchmark=benchmark, estimates={who: {ALL: estimates}}, details=details)


def answer_tables(results: Results) -> list[TerminalTable]:
    """What a terminal shows of :func:`answer_results`."""
    confusions = results.details.get("confusion", {}).items()
    return [results_table(results), *(_confusion_table(name, confusion) for name, confusion in confusions)]


def _confusion_table(name: str, confusion: Confusion) -> TerminalTable:
    rows = [(true, *map(str, counts)) for true, counts in zip(confusion.truth, confusion.counts, strict=True)]
    return terminal_table(("truth", *confusion.given), rows, ("truth",), f"{name}: what was answered (columns)")


def _mean(field: Answered, resamples: int, seed: int) -> Estimate:
    """Of the numbers given; a field that withholds, or has none, is left out."""
    numbers = [float(given) if ok else np.nan for given, ok in zip(field.given, field.claimed, strict=True)]
    return mean_of_units(numbers, resamples, seed)._replace(ties=0)


def _kappa(one: Against, draw: tuple[Any, int, int]) -> Estimate:
    """Agreement with the truth on the field's own scale; abstentions, and truths off the scale, are left out."""
    scale = [label for label in one.answered.labels if label not in one.answered.withholding]
    given = [text if ok else None for text, ok in zip(one.answered.given, one.answered.claimed, strict=True)]
    true = [text if text in scale else None for text in one.truth]
    return cohen_kappa(given, true, scale, "quadratic", *draw)


def _shares(field: Answered) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Whether each label was given, in the order of the schema, or why none was."""
    pairs = zip(field.values, field.given, strict=True)
    given = [set(map(text_of, value)) if isinstance(value, list) and value else {text} for value, text in pairs]
    seen = set().union(*given)
    for label in [label for label in field.labels if label in seen] + sorted(seen - set(field.labels)):
        yield f"{field.field}: {label}", np.array([label in some for some in given])
