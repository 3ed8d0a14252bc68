"""The table of scores of a run, as arrays over prompts, and as CSV and JSON."""

from __future__ import annotations

import csv
import json
import unicodedata
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from protoscore.errors import DatasetError
from protoscore.folder import read_manifest, read_rows, whole_file
from protoscore.schema import Status

FORMULA = ("=", "+", "-", "@", "|", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # full-width forms too: Excel reads them alike


class PromptTable(NamedTuple):
    """Scores of one scorer over a team's own pictures, a row a picture and prompt; NaN where there is no number."""

    scorer: str
    prompts: NDArray[np.str_]
    images: NDArray[np.str_]
    scores: NDArray[np.float64]
    states: dict[str, int]

    def by_prompt(self) -> tuple[NDArray[np.str_], NDArray[np.float64]]:
        """Each prompt and the mean of its pictures that have a score; NaN where none has."""
        prompts, index = np.unique(self.prompts, return_inverse=True)
        valid = np.isfinite(self.scores)
        with np.errstate(invalid="ignore", divide="ignore"):
            return prompts, np.bincount(index, np.where(valid, self.scores, 0.0)) / np.bincount(index, valid)


def is_own_images(run: Path) -> bool:
    """Whether a run scored a team's own pictures, and not the four cells of a benchmark."""
    return "prompt" in pq.read_schema(scores_file(run)).names


def read_prompts(run: Path) -> list[PromptTable]:
    """Every scorer's table of a run over own pictures.

    Raises:
        DatasetError: the folder is not a finished run, or a run over a benchmark.
    """
    if not is_own_images(run):
        raise DatasetError(f"{run} is a run over a benchmark; this needs one made with 'protoscore score --images'")
    table = pq.read_table(scores_file(run))
    names = table["scorer"].to_numpy(zero_copy_only=False)
    return [_own(str(name), table.filter(names == name)) for name in dict.fromkeys(names)]


def _own(name: str, table: pa.Table) -> PromptTable:
    prompts, images = (np.array(table[key].to_pylist(), dtype=str) for key in ("prompt", "image"))
    prompts = np.array([unicodedata.normalize("NFC", prompt) for prompt in prompts], dtype=str)  # as two runs may write one
    return PromptTable(name, prompts, images, numbers_of(table), states_of(table))


def numbers_of(table: pa.Table) -> NDArray[np.float64]:
    ok = table["status"].to_numpy(zero_copy_only=False) == Status.OK.value
    return np.where(ok, table["score"].to_numpy(zero_copy_only=False), np.nan).astype(float)


def states_of(table: pa.Table) -> dict[str, int]:
    found = {row["values"]: row["counts"] for row in table["status"].value_counts().to_pylist()}
    return {state: found[state] for state in sorted(found)}


def scores_file(run: Path) -> Path:
    read_manifest(run, "score")
    path = run / "scores.parquet"
    if not path.is_file():
        raise DatasetError(f"{run} holds no scores.parquet; run 'protoscore score' again, it goes on where it stopped")
    return path


def export(run: Path, form: Literal["csv", "json"]) -> Path:
    """Write a run's table as ``scores.csv`` or ``scores.json`` (a list of objects) beside it, row by row.

    Text of a CSV cell that a spreadsheet would run as a formula gets a leading apostrophe.
    """
    source, target = scores_file(run), run / f"scores.{form}"
    with whole_file(target) as temporary, temporary.open("w", encoding="utf-8", newline="") as handle:
        if form == "csv":
            writer = csv.writer(handle)
            writer.writerow(pq.read_schema(source).names)
            writer.writerows([_harmless(value) for value in row.values()] for row in read_rows([source]))
        else:
            between = "[\n"
            for row in read_rows([source]):
                handle.write(between + json.dumps(row, ensure_ascii=False))
                between = ",\n"
            handle.write("\n]\n")
    return target


def _harmless(value: Any) -> Any:
    risky = isinstance(value, str) and (value.lstrip()[:1] in FORMULA or value[:1] in ("\t", "\r", "\n"))
    return f"'{value}" if risky else value
