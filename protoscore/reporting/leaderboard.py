"""One row per scorer or model that can be published: what was measured, on what, with which weights, in the Hub's words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

import protoscore
from protoscore.folder import manifest_hash, read_manifest, write_table, write_text
from protoscore.reporting.results import ALL, Results, plain
from protoscore.stats.resampling import Estimate

PICTURES = {True: "drawn scenes, not photographs", False: "pictures", None: "pictures of unstated origin"}


def leaderboard(results: Results, run: Path) -> list[dict[str, Any]]:
    """One flat row per scorer or model, in the order of the run; a number that is not defined is null.

    ``model_id`` is the Hub id of the weights, null where there is none or others were named. ``value`` is the first task's, and
    ``notes`` says the rest in words: with the keys that begin with ``dataset_`` that is what an entry of
    ``.eval_results/*.yaml`` needs besides its date and source.
    """
    manifest = read_manifest(run)
    parameters, scenes = manifest["parameters"], manifest.get("scenes")
    about = {made["name"]: made for kind in ("scorers", "judges") for made in parameters.get(kind, [])}
    seconds, main = read_seconds(run), results.tasks[0] if results.tasks else None
    rows = []
    for name, groups in results.estimates.items():
        facts, whole = about.get(name, {}), groups.get(ALL, {})
        value = whole.get(main.id) if main else None
        row = {
            "benchmark": results.benchmark, "scorer": name, "model_id": None if ":" in name else facts.get("hub_id"),
            "revision": facts.get("revision"), "parameters": json.dumps(facts.get("parameters", {}), sort_keys=True),
            "dataset_id": parameters.get("source"), "dataset_task_id": main.id if main else None,
            "dataset_revision": parameters.get("revision"), "split": parameters.get("split"), "scenes": scenes,
        }  # fmt: skip
        for quantity, e in whole.items():
            row |= {quantity: e.value, f"{quantity}_low": e.low, f"{quantity}_high": e.high, f"{quantity}_n": e.n}
            row |= {f"{quantity}_left_out": e.left_out}
        row |= results.columns.get(name, {})
        row |= {"seconds": seconds.get(name), "protoscore": protoscore.__version__, "run": manifest_hash(run)}
        rows.append(plain(row | {"value": value.value if value else None, "notes": _notes(whole, PICTURES[scenes])}))
    return rows


def write_leaderboard(rows: list[dict[str, Any]], folder: Path) -> None:
    """Write ``leaderboard.jsonl`` and ``leaderboard.parquet``."""
    write_text(folder / "leaderboard.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    write_table(folder / "leaderboard.parquet", pa.Table.from_pylist(rows))


def read_seconds(run: Path) -> dict[str, float]:
    """Seconds that scoring took, by scorer; empty where a run does not say."""
    path = run / "timing.json"
    return json.loads(path.read_text(encoding="utf-8"))["scoring_seconds"] if path.is_file() else {}


def _notes(whole: dict[str, Estimate], where: str) -> str:
    """The measurement in a sentence, with its intervals and its kind of pictures, for whoever sees the value alone."""
    defined = [f"{name} {e} (n = {e.n:,})" for name, e in whole.items() if e.value == e.value]
    return f"on {where}: {'; '.join(defined)}" if defined else f"on {where}: nothing could be measured"
