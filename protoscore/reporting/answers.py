"""What a judge or a model answered, as estimates: for each closed field the share of each label, or the mean of a number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from protoscore.errors import DatasetError
from protoscore.folder import read_manifest
from protoscore.reporting.results import ALL, Results
from protoscore.schema import Status
from protoscore.stats.resampling import Estimate, mean
from protoscore.stats.small_samples import mean_of_units

NAN = float("nan")
USABLE = (Status.OK.value, Status.ABSTAINED.value)


def answer_results(run: Path, benchmark: str = "", resamples: int = 2000, seed: int = 0) -> Results:
    """The combined decision about each item of a run. An item without a usable reply is left out, and counted.

    Raises:
        DatasetError: ``run`` is not a finished run of questions.
    """
    manifest = read_manifest(run, "judge")
    path = Path(run) / "decisions.parquet"
    if not path.is_file():
        raise DatasetError(f"{run} holds no decisions.parquet; run 'protoscore judge' again, it goes on where it stopped")
    table = pq.read_table(path)
    usable = np.isin(table["state"].to_numpy(zero_copy_only=False).astype(str), USABLE)
    quantities: dict[str, Estimate] = {"usable replies": mean(usable.astype(float), None, resamples, seed)}
    for column in [name for name in table.column_names if name.startswith("answer_")]:
        field, values = column.removeprefix("answer_"), table[column].to_pylist()
        if numbers := [value for value in values if isinstance(value, int) and not isinstance(value, bool)]:
            quantities[f"{field} (mean)"] = mean_of_units(numbers, resamples, seed)._replace(
                left_out=len(values) - len(numbers), ties=0
            )
            continue
        for label, given in _shares(field, values):
            quantities[label] = mean(np.where(usable, given, NAN), None, resamples, seed)
    who = ", then ".join(judge["name"] for judge in manifest["parameters"]["judges"])
    details = {"states": {who: manifest["states"]}, "resamples": resamples}
    return Results(benchmark=benchmark, estimates={who: {ALL: quantities}}, details=details)


def _shares(field: str, values: list[Any]) -> Iterator[tuple[str, list[float]]]:
    """Whether each label was given, or the replies about an item differed."""
    given = [[] if v is None else [str(label) for label in (v if isinstance(v, list) else [v])] for v in values]
    for label in sorted({label for labels in given for label in labels}):
        yield f"{field}: {label}", [float(label in labels) for labels in given]
    if not all(given):
        yield f"{field}: no label", [float(not labels) for labels in given]
