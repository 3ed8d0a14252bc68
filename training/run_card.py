"""What a training run leaves beside the weights: ``training_run.json`` (how it was made), and a card that claims no more."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pairs import KINDS, PairArguments
from transformers import TrainerState
from trl import RewardConfig

from protoscore import __version__
from protoscore.folder import write_text

RECORD = "training_run.json"
SETTINGS = (
    "learning_rate", "weight_decay", "warmup_steps", "max_grad_norm", "num_train_epochs", "per_device_train_batch_size",
    "gradient_accumulation_steps", "world_size", "bf16", "seed",
)  # fmt: skip


def write_record(folder: str, base: str, pairs: PairArguments, config: RewardConfig, state: TrainerState) -> dict[str, Any]:
    """Write ``training_run.json`` and ``README.md`` into ``folder``; no path of this machine gets into them."""
    entries = [entry for entry in state.log_history if "eval_incongruent" in entry]
    record = {
        "protoscore": __version__,
        "base": base if _on_the_hub(base) else Path(base).name,
        "pairs": asdict(pairs) | {"dataset": pairs.dataset if _on_the_hub(pairs.dataset) else Path(pairs.dataset).name},
        "settings": {name: getattr(config, name) for name in SETTINGS} | {"scheduler": str(config.lr_scheduler_type.value)},
        "steps": state.global_step,
        "last_evaluation": entries[-1] if entries else None,
    }
    write_text(Path(folder) / RECORD, json.dumps(record, indent=2, sort_keys=True) + "\n")
    write_text(Path(folder) / "README.md", card(record))
    return record


def card(record: dict[str, Any]) -> str:
    """A card for the Hub before anything was measured on a test set."""
    pairs, base = record["pairs"], record["base"]
    shares = ", ".join(f"{100 * pairs[kind]:.0f} % {kind.replace('_', ' ')}" for kind in KINDS)
    lines = [
        "---", "library_name: transformers", "license: apache-2.0", "pipeline_tag: text-classification",
        *([f"base_model: {base}"] if "/" in base else []), "tags: [protoscore, reward-model, text-to-image]", "---", "",
        "# A ProtoScore checkpoint", "",
        f"Scores how well a picture shows what a text states; trained by protoscore {record['protoscore']} from `{base}` on",
        f"{pairs['pairs']:,} pairs of `{pairs['dataset']}` ({shares}; margin {pairs['margin']}), {record['steps']:,} steps.",
        "How exactly is in `training_run.json`.", "",
    ]  # fmt: skip
    if pairs["incongruent"] > pairs["congruent"]:
        lines += [
            "**Shortcut.** In most of its pairs the right picture shows the less typical subject. Such a model may prefer the",
            "less typical subject instead of reading the text, and pairwise accuracy does not show it.", "",
        ]  # fmt: skip
    if record["last_evaluation"]:
        lines += ["Measured during training on triplets of the train side (no test result), with 95 % intervals:", ""]
        lines += ["| quantity | value | comparisons |", "|---|---|---|"]
        found = record["last_evaluation"]
        for name in ("incongruent", "congruent", "sensitivity", "preference", "gap"):
            value, low, high, n = (found[f"eval_{name}{part}"] for part in ("", "_low", "_high", "_n"))
            lines.append(f"| {name} | {value:.3f} [{low:.3f}, {high:.3f}] | {n} |")
        lines.append("")
    lines += [
        "**It was not measured on a test set.** `protoscore score` and `protoscore report` do that; use no score before.",
        "",
    ]
    return "\n".join(lines)


def _on_the_hub(name: str) -> bool:
    return not Path(name).exists() and name.count("/") <= 1
