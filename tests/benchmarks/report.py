"""The statistics of a report at the size of the paper: 45,400 pairs of 8,225 triplets, 10 scorers, 10,000 resamples.

    python tests/benchmarks/report.py

Prints wall and processor seconds and peak memory of this process, without the drawing of the page. Scores are random numbers;
what they are does not matter to the time. 900 pairs have three annotations each.
"""

from __future__ import annotations

import resource
import time

import numpy as np

from protoscore.benchmarks.protobias.annotations import CHOICES, Human
from protoscore.benchmarks.protobias.schema import DOMAINS, KNOBS
from protoscore.benchmarks.protobias.study import make_study
from protoscore.benchmarks.protobias.tables import CellTable
from protoscore.stats.agreement import majority

PAIRS, TRIPLETS, SCORERS, RESAMPLES, ANNOTATED = 45_400, 8_225, 10, 10_000, 900


def tables() -> list[CellTable]:
    rng = np.random.default_rng(0)
    triplet = np.sort(rng.integers(0, TRIPLETS, PAIRS))
    ids = np.array([f"{t:05d}-{i}" for i, t in enumerate(triplet)])
    names = np.array([f"{t:05d}" for t in triplet])
    domains, knobs = np.array(DOMAINS)[triplet % 3], np.array(KNOBS)[triplet % 5]
    drawn = rng.normal(0, 1, (SCORERS, PAIRS, 4)) + rng.normal(0, 1, (PAIRS, 1))
    return [CellTable(f"scorer {n}", ids, names, domains, knobs, scores, {"ok": 4 * PAIRS}) for n, scores in enumerate(drawn)]


def people() -> Human:
    rng = np.random.default_rng(1)
    ratings = np.full((PAIRS, 3), None, object)
    ratings[:ANNOTATED] = rng.choice(np.array(CHOICES, object), (ANNOTATED, 3), p=[0.15, 0.05, 0.8])
    return Human(ratings, majority(ratings, tie="tie"), 3, 0)


def main() -> None:
    given, human = tables(), people()
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    study = make_study(given, human, resamples=RESAMPLES)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    intervals = sum(len(groups) * 5 for groups in study.quantities.values())
    print(f"{PAIRS:,} pairs, {TRIPLETS:,} triplets, {SCORERS} scorers, {RESAMPLES:,} resamples:")
    print(f"  {intervals:,} intervals, {len(study.accuracy_pairs)} differences and kappas on two quantities, kappa with people")
    print(f"  {wall:.1f} s wall, {used:.1f} s processor, {after.ru_maxrss / 1e6:.2f} GB at its peak (goal: 10 s, 1 GB)")


if __name__ == "__main__":
    main()
