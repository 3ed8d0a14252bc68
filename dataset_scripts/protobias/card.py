"""The dataset card, filled from the manifest and the triplets and from nothing else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml
from datasets import Features
from jinja2 import Environment, FileSystemLoader, StrictUndefined

import protoscore
from protoscore.benchmarks.protobias.schema import DOMAINS, KNOBS, Triplet
from protoscore.benchmarks.protobias.tasks import eval_yaml
from protoscore.folder import write_text

WHAT = {
    "pairs": "the paper's pair: right but unusual, typical but wrong",
    "controls": "all four pictures: both subjects, right and wrong",
    "triplets": "texts only, also of what is not drawn",
    "human": "a pair for human annotation, sides fixed",
    "rejected": "a picture that the filter refused, with its reason",
}


def write_card(
    folder: Path,
    manifest: dict[str, Any],
    triplets: list[Triplet],
    columns: dict[str, Features],
    repo_id: str | None = None,
) -> None:
    """Write ``README.md`` and ``eval.yaml`` into a dataset folder. Every field of the template must be filled."""
    rows = {key: count for key, count in manifest["rows"].items() if count}
    splits: dict[str, list[str]] = {}
    for key in rows:
        config, split = key.split("/")
        splits.setdefault(config, []).append(split)
    configs = [{"name": c, "splits": splits[c], "default": c == "pairs"} for c in WHAT if c in splits]
    counts = Counter((t.domain, t.knob) for t in triplets)
    by_domain = [
        {"domain": d, "counts": [counts[d, k] for k in KNOBS], "total": sum(counts[d, k] for k in KNOBS)} for d in DOMAINS
    ]
    table = [{"config": c, "split": s, "rows": rows[f"{c}/{s}"], "what": WHAT[c]} for c in WHAT for s in splits.get(c, [])]
    info = [
        {
            "config_name": config,
            "features": columns[config]._to_yaml_list(),
            **_sizes(folder, config, {split: rows[f"{config}/{split}"] for split in names}),
        }
        for config, names in splits.items()
    ]
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, keep_trailing_newline=True
    )
    card = environment.get_template("card.md.jinja").render(
        dataset_info=yaml.safe_dump({"dataset_info": info}, sort_keys=False).rstrip(),
        configs=configs, table=table, by_domain=by_domain, knobs=KNOBS,
        refused_text=_refusals(manifest["refusals"]),
        filter=manifest["filter"], version=protoscore.__version__, repo_id=repo_id or folder.name.removesuffix(".draft"),
        size=manifest["parameters_of_images"]["generator_parameters"]["size"], size_category=_size(sum(rows.values())),
    )  # fmt: skip
    write_text(folder / "README.md", card)
    if {"pairs/test", "controls/test"} <= rows.keys():
        write_text(folder / "eval.yaml", eval_yaml("ProtoBias (scenes)"))


def _sizes(folder: Path, config: str, rows: dict[str, int]) -> dict[str, Any]:
    """Rows and bytes of the splits as the library wants them: ``num_bytes`` unpacked, ``download_size`` on disk."""
    files = {split: sorted((folder / config).glob(f"{split}-*.parquet")) for split in rows}
    unpacked = {split: sum(map(_unpacked, paths)) for split, paths in files.items()}
    return {
        "splits": [{"name": split, "num_bytes": unpacked[split], "num_examples": n} for split, n in rows.items()],
        "download_size": sum(path.stat().st_size for paths in files.values() for path in paths),
        "dataset_size": sum(unpacked.values()),
    }


def _unpacked(path: Path) -> int:
    facts = pq.read_metadata(path)
    return sum(facts.row_group(group).total_byte_size for group in range(facts.num_row_groups))


def _refusals(refusals: dict[str, int]) -> str:
    if not refusals:
        return "No picture was refused."
    named = "; ".join(f"{reason} ({count})" for reason, count in sorted(refusals.items()))
    return f"Refused by the scene generator, in pictures: {named}."


def _size(rows: int) -> str:
    """The Hub's size category."""
    for limit, name in ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M")):
        if rows < limit:
            return name
    return "n>1M"
