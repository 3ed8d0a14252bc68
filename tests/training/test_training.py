"""The training path at its smallest: the loss is the paper's, evaluation is that of the saved model, runs resume and split."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from trl import RewardConfig

from protoscore.benchmarks.protobias.schema import Cell
from protoscore.modeling.protoscore import ProtoScore
from tests.conftest import ROOT, run
from tests.training.support import SMALL, STEPS, TRAIN, history, losses, train
from training.protoscore.pairs import PairArguments, evaluation_cells, training_pairs
from training.protoscore.reward import PairCollator, PairTrainer, last_whole_checkpoint


def test_evaluation_during_training_gives_the_five_quantities_of_the_saved_model(trained):
    """Against scores of the final weights by the public class, on the same cells."""
    from protoscore.stats.pairwise import five_quantities

    logged = history(trained, "eval_incongruent")
    assert [entry["step"] for entry in logged] == [3, 6]
    cells = evaluation_cells(PairArguments(**read_pairs(trained)))
    model = ProtoScore.from_pretrained(trained)
    order = [Cell.NON_CORRECT, Cell.PROTO_VIOLATED, Cell.PROTO_CORRECT, Cell.NON_VIOLATED]
    rows = [cells[i] for i in range(len(cells))]
    scores = [model.score([row[cell.value] for row in rows], [row["text"] for row in rows]) for cell in order]
    expected = five_quantities(*scores, clusters=[row["cluster"] for row in rows], resamples=100)
    for name, estimate in expected._asdict().items():
        assert logged[-1][f"eval_{name}"] == pytest.approx(estimate.value), name
        assert logged[-1][f"eval_{name}_n"] == estimate.n
    assert logged[-1]["eval_triplets"] == 6


def read_pairs(folder: Path) -> dict:
    return json.loads((folder / "training_run.json").read_text())["pairs"]


def test_the_loss_is_softplus_of_margin_minus_difference():
    """One batch through the trainer's own compute_loss, against the formula of the paper's section 5."""
    from protoscore.modeling.tiny import tiny_model, tiny_processor

    pairs = training_pairs(PairArguments(pairs=6, margin=0.5))
    processor = tiny_processor(pairs.with_format(None)["text"])
    model = tiny_model(processor)
    with torch.no_grad():
        model.score.weight.mul_(40)
    config = RewardConfig(output_dir="unused", use_cpu=True, bf16=False, report_to="none", save_strategy="no")
    trainer = PairTrainer(model=model, args=config, train_dataset=pairs, processor=processor)
    rows = [pairs[i] for i in range(6)]
    loss = trainer.compute_loss(trainer.model, PairCollator(processor)(rows))
    scorer = ProtoScore(model, processor)
    texts = [row["text"] for row in rows]
    difference = np.array(scorer.score([r["chosen"] for r in rows], texts)) - scorer.score([r["rejected"] for r in rows], texts)
    assert np.abs(difference).max() > 0.05
    assert float(loss.detach()) == pytest.approx(float(np.log1p(np.exp(0.5 - difference)).mean()), abs=1e-5)


def whole(checkpoint: Path) -> bool:
    """Its state is what the trainer writes last."""
    try:
        return bool(json.loads((checkpoint / "trainer_state.json").read_text()))
    except (OSError, ValueError):
        return False


def test_killed_and_resumed_it_ends_with_the_same_losses_and_weights(trained, tmp_path):
    """SIGKILL in the middle, and a checkpoint that was cut short lies about."""
    command = [sys.executable, "-m", TRAIN, "--recipe", "tiny_paper", *SMALL, *STEPS, "--output_dir", str(tmp_path)]
    with (tmp_path.parent / "killed.log").open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
    deadline = time.monotonic() + 500
    while not whole(tmp_path / "checkpoint-3"):
        assert process.poll() is None and time.monotonic() < deadline, (tmp_path.parent / "killed.log").read_text()[-2000:]
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL and not (tmp_path / "checkpoint-6").exists()
    (tmp_path / "checkpoint-5").mkdir()
    (tmp_path / "checkpoint-5" / "trainer_state.json").write_text('{"epoch": 0.')
    assert Path(last_whole_checkpoint(str(tmp_path))).name == "checkpoint-3"
    assert train("--output_dir", str(tmp_path), *STEPS, "--resume_from_checkpoint", "last") == 0
    assert len(losses(tmp_path)) == 6
    np.testing.assert_allclose(losses(tmp_path), losses(trained), atol=1e-4)
    weights, expected = (load_file(folder / "model.safetensors") for folder in (tmp_path, trained))
    assert max(float((weights[key] - expected[key]).abs().max()) for key in expected) <= 1e-5


def test_two_processes_train_as_one(trained, tmp_path):
    """accelerate launch, gloo; two rows per process instead of four in one. The five quantities are those of all rows."""
    result = run(
        "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "-m", TRAIN, "--recipe", "tiny_paper",
        *SMALL, *STEPS,
        "--per_device_train_batch_size", "2", "--per_device_eval_batch_size", "2", "--output_dir", str(tmp_path),
        env={"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    np.testing.assert_allclose(losses(tmp_path), losses(trained), atol=1e-4)
    ours, theirs = (history(folder, "eval_incongruent") for folder in (tmp_path, trained))
    for name in ("eval_incongruent", "eval_congruent", "eval_preference", "eval_triplets", "eval_sensitivity_n"):
        assert [entry[name] for entry in ours] == [entry[name] for entry in theirs], name
