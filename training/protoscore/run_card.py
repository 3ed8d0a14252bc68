"""What a training run leaves beside the weights: ``training_run.json`` (how it was made), and a card that claims no more."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from huggingface_hub import DatasetCard
from huggingface_hub.errors import HfHubHTTPError
from transformers import TrainerState
from trl import RewardConfig

from protoscore import __version__
from protoscore.folder import write_text
from training.protoscore.pairs import KINDS, PairArguments

RECORD = "training_run.json"
SETTINGS = (
    "learning_rate", "weight_decay", "warmup_steps", "max_grad_norm", "num_train_epochs", "per_device_train_batch_size",
    "gradient_accumulation_steps", "world_size", "bf16", "seed",
)  # fmt: skip


LICENCES = {"cc-by-sa-4.0": "CC BY-SA 4.0", "unknown": "not known to the program that wrote this card"}
HAIR = 0.05  # shares of pairs that differ by less say nothing about a shortcut


def write_record(folder: str, base: str, pairs: PairArguments, config: RewardConfig, state: TrainerState) -> dict[str, Any]:
    """Write ``training_run.json`` and ``README.md`` into ``folder``; no path of this machine gets into them."""
    entries = [entry for entry in state.log_history if "eval_incongruent" in entry]
    record = {
        "protoscore": __version__,
        "base": base if _on_the_hub(base) else Path(base).name,
        "adapter": (Path(folder) / "adapter_config.json").is_file(),
        "pairs": asdict(pairs) | {"dataset": pairs.dataset if _on_the_hub(pairs.dataset) else Path(pairs.dataset).name},
        "licence": data_licence(pairs.dataset),
        "settings": {name: getattr(config, name) for name in SETTINGS} | {"scheduler": str(config.lr_scheduler_type.value)},
        "steps": state.global_step,
        "last_evaluation": entries[-1] if entries else None,
    }
    write_text(Path(folder) / RECORD, json.dumps(record, indent=2, sort_keys=True) + "\n")
    write_text(Path(folder) / "README.md", card(record))
    return record


def data_licence(dataset: str) -> str:
    """The licence of what was trained on, as the Hub spells it: of our scenes, or what the dataset's card says."""
    if dataset == "scenes":
        return "cc-by-sa-4.0"
    try:
        path = Path(dataset) / "README.md"
        said = (DatasetCard.load(path if path.is_file() else dataset)).data.license
    except (OSError, ValueError, HfHubHTTPError):  # no card, or none that can be had now
        return "unknown"
    return (said[0] if isinstance(said, list) and said else said) or "unknown"


def card(record: dict[str, Any]) -> str:
    """A card for the Hub before anything was measured on a test set."""
    pairs, base = record["pairs"], record["base"]
    shares = ", ".join(f"{100 * pairs[kind]:.0f} % {kind.replace('_', ' ')}" for kind in KINDS)
    licence = f"That of the pictures it was trained on: {LICENCES.get(record['licence'], record['licence'])}."
    start = "nothing" if base == "tiny" else f"`{base}`, which has a licence of its own"
    lines = [
        "---", f"library_name: {'peft' if record['adapter'] else 'transformers'}", f"license: {record['licence']}",
        "pipeline_tag: text-classification", "language: en", *([f"base_model: {base}"] if "/" in base else []),
        "tags: [protoscore, reward-model, text-to-image]", "---", "", "# A ProtoScore checkpoint", "",
        f"Scores how well a picture shows what a text states; trained by protoscore {record['protoscore']} from {start}, on",
        f"{pairs['pairs']:,} pairs of `{pairs['dataset']}` ({shares}; margin {pairs['margin']}), {record['steps']:,} steps.",
        "How exactly is in `training_run.json`.", "", *_shortcut(pairs["incongruent"], pairs["congruent"]),
        *_evaluation(record["last_evaluation"] or {}),
        f"**Licence.** {licence}", "",
        "**It was not measured on a test set.** `protoscore score` and `protoscore report` do that; use no score before.", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _shortcut(incongruent: float, congruent: float) -> list[str]:
    """What the subject alone gives away, where one kind of pair is more frequent than the other."""
    if abs(incongruent - congruent) < HAIR:
        return []
    ways = [(incongruent, "less"), (congruent, "more")]
    (more, subject), (fewer, other) = sorted(ways, reverse=True)
    return [
        f"**Shortcut.** In {100 * more:.0f} % of its pairs the right picture shows the {subject} typical subject, in",
        f"{100 * fewer:.0f} % the {other} typical one. Such a model may prefer the {subject} typical subject instead of",
        "reading the text, and pairwise accuracy does not show it.", "",
    ]  # fmt: skip


def _evaluation(found: dict[str, float]) -> list[str]:
    """The last evaluation as a table; of two pictures per row only the first quantity is known."""
    known = [name for name in ("incongruent", "congruent", "sensitivity", "preference", "gap") if f"eval_{name}" in found]
    if not known:
        return []
    lines = ["Measured during training on triplets of the train side (no test result), with 95 % intervals:", ""]
    lines += ["| quantity | value | comparisons |", "|---|---|---|"]
    for name in known:
        value, low, high, n = (found[f"eval_{name}{part}"] for part in ("", "_low", "_high", "_n"))
        lines.append(f"| {name} | {value:.3f} [{low:.3f}, {high:.3f}] | {n} |")
    return [*lines, ""]


def _on_the_hub(name: str) -> bool:
    return not Path(name).exists() and name.count("/") <= 1
