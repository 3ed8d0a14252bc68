"""Training scripts as a user runs them, at their smallest."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

TRAIN = "training.protoscore.train"
SMALL = ["--pairs", "24", "--per_device_train_batch_size", "4", "--logging_steps", "1", "--dataloader_num_workers", "0",
         "--save_strategy", "steps", "--disable_tqdm", "true"]  # fmt: skip
STEPS = ["--save_steps", "3", "--eval_triplets", "6", "--eval_strategy", "steps", "--eval_steps", "3"]


def script(module: str, *arguments: str) -> int:
    """The module as ``python -m`` runs it, in this process: importing its libraries anew would cost more than the training.

    Returns:
        Its exit code.
    """
    from accelerate.state import AcceleratorState, GradientState

    def forget() -> None:
        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()

    forget()
    before, sys.argv = sys.argv, [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__")
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.argv = before
        forget()
    return 0


def train(*arguments: str, recipe: str = "tiny_paper") -> int:
    return script(TRAIN, "--recipe", recipe, *SMALL, *arguments)


def history(folder: Path, key: str = "loss") -> list[dict]:
    states = sorted(folder.glob("checkpoint-*/trainer_state.json"), key=lambda p: int(p.parent.name.split("-")[1]))
    return [entry for entry in json.loads(states[-1].read_text())["log_history"] if key in entry]


def losses(folder: Path) -> list[float]:
    return [entry["loss"] for entry in history(folder)]
