"""What a cascade saves and what it costs, against judging everything with the same protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from protoscore.errors import DatasetError
from protoscore.folder import read_manifest
from protoscore.stats.resampling import Estimate, cluster_bootstrap, exact_bound, interval

_USAGE = ("calls", "tokens", "cost", "seconds", "screening_seconds")


class Savings(NamedTuple):
    """A cascade beside the full run. Accuracies and their paired difference are over items that both decided."""

    items: int
    escalated: int
    used: dict[str, tuple[float, float]]  # calls, tokens, cost, seconds, screening_seconds: cascade, full run
    agreement: Estimate  # of decisions with the full run's
    accuracy: tuple[Estimate, Estimate] | None  # cascade, full run, against the truth
    difference: Estimate | None  # cascade minus full run


def savings(
    run: Path, full: Path, truth: Mapping[str, tuple[str, ...]] | None = None, cluster: str = "item", resamples: int = 2000
) -> Savings:
    """What a cascade saves and costs against judging everything with the same protocol.

    Args:
        truth: column -> values for which accepting is right, e.g. ``{"made": ("right",)}``.
        cluster: column of what was sampled independently.

    Raises:
        DatasetError: ``run`` is not a cascade, or the two share no decided item.
    """
    rule = read_manifest(run, "judge")["parameters"].get("cascade")
    plain = read_manifest(full, "judge")["parameters"]
    if rule is None or "cascade" in plain:
        raise DatasetError(f"{run} must be a cascade and {full} a run without one; make them with protoscore judge")
    ours = {row["item"]: row for row in pq.read_table(Path(run) / "decisions.parquet").to_pylist()}
    theirs = _accepted(Path(full), rule["accept_from"])
    shared = [name for name, row in ours.items() if row["decision"] and theirs.get(name) is not None]
    if not shared:
        raise DatasetError(f"{run} and {full} share no item that both decided")
    mine = np.array([ours[name]["decision"] == "accept" for name in shared])
    full_ = np.array([theirs[name] for name in shared])
    clusters = [str(ours[name][cluster]) for name in shared]
    correct = None
    if truth:
        right = np.array([any(str(ours[n].get(c)) in values for c, values in truth.items()) for n in shared])
        correct = np.stack([mine == right, full_ == right], 1).astype(float)
    columns = np.column_stack([mine == full_, *([] if correct is None else correct.T)]).astype(float)
    drawn = cluster_bootstrap(columns, np.ones_like(columns), clusters, resamples)
    left = len(ours) - len(shared)
    estimates = [_estimate(columns[:, k], drawn[:, k], clusters, left) for k in range(columns.shape[1])]
    difference = None
    if correct is not None:
        low, high = interval(drawn[:, 1] - drawn[:, 2])
        difference = Estimate(estimates[1].value - estimates[2].value, low, high, len(shared), left)
    usage = [_usage(Path(folder)) for folder in (run, full)]
    both = {name: (usage[0][name], usage[1][name]) for name in _USAGE}
    accuracy = None if correct is None else (estimates[1], estimates[2])
    escalated = sum(row["route"] != "cheap" for row in ours.values())
    return Savings(len(ours), escalated, both, estimates[0], accuracy, difference)


def _accepted(full: Path, accept_from: int) -> dict[str, bool | None]:
    table = pq.read_table(full / "decisions.parquet")
    answers = [name for name in table.column_names if name.startswith("answer_")]
    rows = table.select(["item", answers[0]]).to_pylist()
    return {row["item"]: None if row[answers[0]] is None else row[answers[0]] >= accept_from for row in rows}


def _usage(run: Path) -> dict[str, Any]:
    return json.loads((run / "usage.json").read_text(encoding="utf-8"))


def _estimate(hits: np.ndarray, drawn: np.ndarray, clusters: list[str], left: int) -> Estimate:
    value = float(hits.mean())
    low, high = interval(drawn)
    bound = exact_bound(len(set(clusters)))
    return Estimate(value, 1 - bound if value == 1 else low, bound if value == 0 else high, len(hits), left)
