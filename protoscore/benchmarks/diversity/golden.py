"""The golden set: sets whose number of values is known, as a test of any rater, of people, counts or embeddings.

Of each of 10 pairs eight pictures in three configurations: the attribute varies and the concept does not (8 values are
expected), the concept varies and the attribute does not (1), both vary (8). A rater is right where it finds the first and the
third set more diverse than the second, and the first and the third equal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
from pydantic import Field, RootModel

from protoscore.benchmarks.diversity.set_scores import mean_distance
from protoscore.benchmarks.protobias.taxonomy import with_article
from protoscore.embedding import TABLE
from protoscore.errors import DatasetError, UnknownName
from protoscore.folder import read_manifest
from protoscore.generators import Wanted
from protoscore.reporting.results import ALL, Results
from protoscore.scenes.alone import Alone
from protoscore.schema import Status, derive_seed
from protoscore.stats.diversity import vendi
from protoscore.stats.resampling import Estimate, mean
from protoscore.typed_yaml import Strict, load_yaml

EXPECTED = {"attribute": 8, "concept": 1, "both": 8}  # what varies -> values of the attribute
CONFIGURATION = "configuration"
LISTS = {"golden": "photos", "golden-scenes": "scenes"}


class GoldenPair(Strict):
    """Eight concepts by eight values of one attribute."""

    concept: str
    attribute: str
    concepts: list[str] = Field(min_length=8, max_length=8)
    values: list[str] = Field(min_length=8, max_length=8)
    phrase: str = ""
    place: str = ""  # of scenes in which it does not vary
    looks_alike: list[list[str]] = []

    def scene(self, concept: str, value: str) -> Alone | None:
        if self.attribute == "color" and self.place:
            return Alone(key=concept, environment=self.place, color=value, count=1)
        return Alone(key=concept, environment=value, count=1) if self.attribute == "place" else None

    def text(self, concept: str, value: str) -> str:
        if self.phrase:
            said = self.phrase.format(concept=concept, value=value)
            return f"A photorealistic image of {said}."
        named, told = concept.replace("_", " "), value.replace("_", " ")
        return f"An image of {with_article(f'{told} {named}' if self.attribute == 'color' else f'{named}, place: {told}')}."


class _Golden(RootModel[dict[str, list[GoldenPair]]]):
    pass


def golden_pairs(name: str) -> list[GoldenPair]:
    """The pairs of ``golden`` (for photographs) or ``golden-scenes``.

    Raises:
        UnknownName: it is neither.
    """
    if name not in LISTS:
        raise UnknownName("golden set", name, LISTS)
    path = Path(str(files("protoscore.benchmarks.diversity") / "golden.yaml"))
    return load_yaml(path, _Golden).root[LISTS[name]]


def golden_pictures(name: str, seed: int = 0) -> Iterator[Wanted]:
    """The 240 pictures of the golden set."""
    for pair in golden_pairs(name):
        for what in EXPECTED:
            for n in range(8):
                concept = pair.concepts[0 if what == "attribute" else n]
                value = pair.values[0 if what == "concept" else n]
                who = f"{pair.concept}-{pair.attribute}".replace(" ", "_")
                fields = {
                    "pair": who, CONFIGURATION: what, "concept": pair.concept, "attribute": pair.attribute,
                    "shown_concept": concept, "shown_value": value, "expected": str(EXPECTED[what]),
                    "values": json.dumps([one.replace("_", " ") for one in pair.values]),
                }  # fmt: skip
                where = f"{who}-{what}-{n}"
                yield Wanted(where, pair.text(concept, value), derive_seed(seed, where), pair.scene(concept, value), fields)


class GoldenScores(NamedTuple):
    """What a rater finds in the three sets of each pair; NaN where it finds nothing."""

    scores: dict[str, dict[str, float]]  # pair -> configuration -> score
    tolerance: float  # relative difference up to which two scores are equal


def golden_results(run: Path) -> Results:
    """How right a rater is: an embedding run, or one of judged values or counts of sets by pair and configuration.

    Raises:
        DatasetError: the run has neither.
    """
    raters = _of_vectors(run) if read_manifest(run)["stage"] == "embed" else _of_judge(run)
    who = {name: {ALL: accuracies(found)} for name, found in raters.items()}
    return Results(
        benchmark="diversity", estimates=who, details={"golden": {name: found.scores for name, found in raters.items()}}
    )


def accuracies(found: GoldenScores) -> dict[str, Estimate]:
    """Shares of pairs on which a rater is right; of counts, also how many are exact."""
    rows = list(found.scores.values())
    right = {
        "varies_above_fixed": [_above(row["attribute"], row["concept"], found.tolerance) for row in rows],
        "both_above_fixed": [_above(row["both"], row["concept"], found.tolerance) for row in rows],
        "both_equal": [_equal(row["both"], row["attribute"], found.tolerance) for row in rows],
    }
    every = [value for values in right.values() for value in values]
    clusters = [pair for _ in right for pair in found.scores]
    exact = {"exact_counts": exact_counts(found.scores)} if found.tolerance == 0 else {}
    return {"accuracy": mean(every, clusters), **{name: mean(values) for name, values in right.items()}, **exact}


def is_golden(run: Path) -> bool:
    """Whether a run is about the golden set."""
    if read_manifest(run)["stage"] == "embed":
        ids = pq.read_table(run / TABLE, columns=["id"])["id"].to_pylist()
        return bool(ids) and all(name.rsplit("-", 2)[1:2] and name.rsplit("-", 2)[1] in EXPECTED for name in ids)
    decisions = run / "decisions.parquet"
    return decisions.is_file() and CONFIGURATION in pq.read_schema(decisions).names


def _above(first: float, second: float, tolerance: float) -> float:
    return float("nan") if np.isnan(first + second) else float(first > second * (1 + tolerance))


def _equal(first: float, second: float, tolerance: float) -> float:
    return float("nan") if np.isnan(first + second) else float(abs(first - second) <= tolerance * max(first, second))


def _of_vectors(run: Path) -> dict[str, GoldenScores]:
    rows = pq.read_table(run / TABLE).to_pylist()
    name = read_manifest(run)["parameters"]["embedder"]["name"]
    sets: dict[str, dict[str, list[list[float]]]] = {}
    for row in rows:
        pair, what = row["id"].rsplit("-", 2)[:2]
        sets.setdefault(pair, {}).setdefault(what, []).extend([row["vector"]] if row["status"] == Status.OK else [])
    kinds: dict[str, Callable[[list[list[float]]], float]] = {
        f"vendi_{name}": vendi, f"distance_{name}": lambda x: float(mean_distance(np.array([x]))[0]),
    }  # fmt: skip
    return {
        kind: GoldenScores({pair: {w: _score(found, one) for w, one in some.items()} for pair, some in sets.items()}, 0.05)
        for kind, found in kinds.items()
    }


def _score(found: Callable[[list[list[float]]], float], vectors: list[list[float]]) -> float:
    return found(vectors) if len(vectors) == 8 else float("nan")


def _of_judge(run: Path) -> dict[str, GoldenScores]:
    table = pq.read_table(run / "decisions.parquet")
    if CONFIGURATION not in table.column_names or not {"answer_count", "answer_value"} & set(table.column_names):
        raise DatasetError(f"{run} is not about the golden set; judge it by --sets pair,{CONFIGURATION}")
    name = ", ".join(judge["name"] for judge in read_manifest(run)["parameters"]["judges"])
    counted: dict[str, dict[str, float]] = {}
    seen: dict[tuple[str, str], set[str]] = {}
    for row in table.to_pylist():
        scores = counted.setdefault(row["pair"], dict.fromkeys(EXPECTED, float("nan")))
        if "answer_count" in row:
            scores[row[CONFIGURATION]] = float("nan") if row["answer_count"] is None else float(row["answer_count"])
        elif row["state_value"] == Status.OK:
            seen.setdefault((row["pair"], row[CONFIGURATION]), set()).add(row["answer_value"])
            scores[row[CONFIGURATION]] = float(len(seen[row["pair"], row[CONFIGURATION]]))
    return {name: GoldenScores(counted, 0.0)}


def exact_counts(scores: Mapping[str, Mapping[str, float]]) -> Estimate:
    """Share of the sets whose count is the expected one; intervals resample pairs."""
    rows = [
        (pair, float(value == EXPECTED[what]))
        for pair, some in scores.items()
        for what, value in some.items()
        if value == value
    ]
    return mean([right for _, right in rows], [pair for pair, _ in rows])
