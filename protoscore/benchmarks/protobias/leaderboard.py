"""A row a scorer that can be published: what was measured, on what, with which weights, in the Hub's words where it has any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

import protoscore
from protoscore.benchmarks.protobias.study import Study
from protoscore.benchmarks.protobias.wording import reading
from protoscore.folder import manifest_hash, write_table, write_text

TASK = "controls"  # the config that was scored; task id of the dataset's eval.yaml


def leaderboard(study: Study, manifest: dict[str, Any], run: Path) -> list[dict[str, Any]]:
    """One flat row a scorer, in the order of scoring; a number that is not defined is null.

    ``model_id`` is the Hub id of the metric's own weights, null where it has none or others were named in ``scorer``. The keys
    that begin with ``dataset_``, ``value`` and ``notes`` are what an entry of ``.eval_results/*.yaml`` needs besides its date
    and source: the paper's accuracy, and the rest in words.
    """
    about = {s["name"]: s for s in manifest["parameters"]["scorers"]}
    rows = []
    for name in study.scorers:
        q, facts = study.quantities[name]["all"], about[name]
        row = {
            "scorer": name, "model_id": None if ":" in name else facts.get("hub_id"), "revision": facts.get("revision"),
            "parameters": json.dumps(facts.get("parameters", {}), sort_keys=True),
            "dataset_id": manifest["parameters"]["source"], "dataset_task_id": TASK,
            "dataset_revision": manifest["parameters"].get("revision"), "split": manifest["parameters"].get("split"),
            "scenes": manifest.get("scenes"), "triplets": study.triplets, "pairs": q.incongruent.n,
            "left_out": q.incongruent.left_out, "ties": q.incongruent.ties, "verdict": reading(q).verdict,
        }  # fmt: skip
        for quantity, e in q._asdict().items():
            row |= {quantity: _defined(e.value), f"{quantity}_low": _defined(e.low), f"{quantity}_high": _defined(e.high)}
        for domain, reference in study.table3[name].items():
            row |= {f"accuracy_{domain}": _defined(reference.accuracy.value)}
            row |= {f"kappa_{domain}": None if reference.kappa is None else _defined(reference.kappa.value)}
        row |= {"seconds": study.seconds.get(name), "protoscore": protoscore.__version__, "run": manifest_hash(run)}
        row |= {"value": _defined(q.incongruent.value), "notes": _notes(row)}
        rows.append(row)
    return rows


def write_leaderboard(rows: list[dict[str, Any]], folder: Path) -> Path:
    """Write ``leaderboard.jsonl`` and ``leaderboard.parquet`` and return the first."""
    path = folder / "leaderboard.jsonl"
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    write_table(folder / "leaderboard.parquet", pa.Table.from_pylist(rows))
    return path


def _notes(row: dict[str, Any]) -> str:
    """The measurement in a sentence, with its interval and its kind of pictures, for whoever sees the value alone."""
    where = {True: "drawn scenes, not photographs", False: "pictures", None: "pictures of unstated origin"}[row["scenes"]]
    if row["incongruent"] is None:
        return f"no pair of {where} could be scored"
    parts = [f"incongruent accuracy [{row['incongruent_low']:.3f}, {row['incongruent_high']:.3f}], n = {row['pairs']}, {where}"]
    parts += [
        f"{name} {row[name]:.3f} [{row[f'{name}_low']:.3f}, {row[f'{name}_high']:.3f}]"
        for name in ("congruent", "sensitivity", "preference", "gap")
        if row[name] is not None
    ]
    return "; ".join(parts)


def _defined(value: float) -> float | None:
    return value if value == value else None
