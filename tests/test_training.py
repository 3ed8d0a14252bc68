"""The training path at its smallest: the loss is the paper's, the mix is what was asked for, the recipes run and resume."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from datasets import load_dataset

from protoscore.errors import ConfigError
from protoscore.modeling.protoscore import ProtoScore
from protoscore.schema import Cell, SceneSpec
from tests.conftest import ROOT, run

sys.path.insert(0, str(ROOT / "training"))

from pairs import PairArguments, training_pairs
from recipes import recipe_to_config

SMALL = ["--pairs", "24", "--per_device_train_batch_size", "4", "--logging_steps", "1", "--dataloader_num_workers", "0",
         "--save_strategy", "steps"]  # fmt: skip


def train(*arguments: str, recipe: str = "tiny_paper"):
    return run("training/train_protoscore.py", "--recipe", recipe, *SMALL, "--disable_tqdm", "true", *arguments)


def history(folder: Path) -> list[dict]:
    states = sorted(folder.glob("checkpoint-*/trainer_state.json"), key=lambda p: int(p.parent.name.split("-")[1]))
    return [entry for entry in json.loads(states[-1].read_text())["log_history"] if "loss" in entry]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("trained")
    result = train("--output_dir", str(out), "--save_steps", "3")
    assert result.returncode == 0, result.stderr[-2000:]
    return out


def test_a_run_leaves_a_whole_checkpoint_and_no_foreign_card(trained):
    assert np.isfinite(ProtoScore.from_pretrained(trained).score([picture()], ["A bird."])).all()
    assert {"model.safetensors", "config.json", "tokenizer.json", "chat_template.jinja"} <= {p.name for p in trained.iterdir()}
    assert not (trained / "README.md").exists(), "TRL's card speaks of a text model"


def picture():
    from PIL import Image

    return Image.new("RGB", (96, 96), "red")


def test_the_loss_is_softplus_of_margin_minus_difference():
    """One batch through the trainer's own compute_loss, against the formula of the paper's section 5."""
    from reward import PairCollator, PairTrainer
    from trl import RewardConfig

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


def test_pairs_are_the_train_split_and_differ_as_the_mix_says():
    args = PairArguments(pairs=600, incongruent=0.2, congruent=0.3, same_subject=0.5, pair_seed=3)
    rows = training_pairs(args).with_format(None)
    kinds = {"incongruent": 0, "congruent": 0, "same_subject": 0}
    from protoscore.benchmarks.protobias.taxonomy import load_taxonomy

    contrasts = [c for d in ("animals", "objects", "demography") for c in load_taxonomy().contrasts(d)]
    order = {(c.non_subject, c.proto_subject) for c in contrasts}
    for row in rows:
        chosen, rejected = (SceneSpec.model_validate_json(row[side]) for side in ("chosen", "rejected"))
        differing = {k for k in ("count", "color_tone", "layout_relation", "spatial", "scale_size")
                     if getattr(chosen, k) != getattr(rejected, k)}  # fmt: skip
        assert len(differing) == 1 and (chosen.extra, chosen.environment) == (rejected.extra, rejected.environment)
        if chosen.subject == rejected.subject:
            kinds["same_subject"] += 1
        else:
            # Muslim and Christian people may be either side, by the pole of their attribute.
            kinds["incongruent" if (chosen.subject, rejected.subject) in order else "congruent"] += 1
    assert kinds["same_subject"] / 600 == pytest.approx(0.5, abs=0.07)
    again = training_pairs(args)
    assert again[5]["chosen"].tobytes() == training_pairs(args)[5]["chosen"].tobytes()
    assert again[5]["margin"] == 0.5 and again[5]["chosen"].tobytes() != again[5]["rejected"].tobytes()


def test_training_texts_never_occur_in_the_test_split(dataset, tmp_path):
    rows = training_pairs(PairArguments(pairs=4000)).with_format(None)
    test = load_dataset(str(dataset), "triplets", split="test", cache_dir=str(tmp_path))
    assert not set(rows["text"]) & set(test["text"])


def test_a_published_dataset_trains_too(dataset):
    shares = {"incongruent": 0.0, "congruent": 1.0, "same_subject": 0.0}
    rows = training_pairs(PairArguments(dataset=str(dataset), pairs=8, **shares))
    assert len(rows) == 8
    known = load_rows(dataset)
    for row in (rows[i] for i in range(8)):
        cells = known[row["chosen"].tobytes()], known[row["rejected"].tobytes()]
        assert cells == (Cell.PROTO_CORRECT, Cell.NON_VIOLATED)


def load_rows(dataset) -> dict[bytes, Cell]:
    import io

    import pyarrow.parquet as pq
    from PIL import Image

    found = {}
    for row in pq.read_table(dataset / "controls" / "train-00000.parquet").to_pylist():
        for cell in Cell:
            found[Image.open(io.BytesIO(row[f"{cell.value}_image"]["bytes"])).convert("RGB").tobytes()] = cell
    return found


def test_killed_and_resumed_it_ends_with_the_same_losses_and_weights(trained, tmp_path):
    stopped = train("--output_dir", str(tmp_path), "--save_steps", "3", "--max_steps", "3", "--lr_scheduler_type", "constant")
    assert stopped.returncode == 0, stopped.stderr[-2000:]
    whole = train("--output_dir", str(tmp_path / "whole"), "--save_steps", "3", "--lr_scheduler_type", "constant")
    resumed = train(
        "--output_dir", str(tmp_path), "--save_steps", "3", "--lr_scheduler_type", "constant",
        "--resume_from_checkpoint", str(tmp_path / "checkpoint-3"),
    )  # fmt: skip
    assert whole.returncode == resumed.returncode == 0, resumed.stderr[-2000:]
    losses = [[entry["loss"] for entry in history(folder)] for folder in (tmp_path / "whole", tmp_path)]
    assert len(losses[0]) == 6
    np.testing.assert_allclose(*losses, atol=1e-4)


@pytest.mark.parametrize("recipe", ["paper", "counterbalanced"])
def test_the_papers_recipe_runs_with_adapters_at_tiny_size(trained, tmp_path, recipe):
    """Everything but the size: LoRA, accumulation, bf16 autocast, activation checkpointing, ProtoScore's wording."""
    result = train(
        "--model_name_or_path", str(trained), "--image_size", "64", "--use_cpu", "true", "--output_dir", str(tmp_path),
        "--max_steps", "2", "--per_device_train_batch_size", "1", "--gradient_accumulation_steps", "4",
        recipe=recipe,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-2000:]
    adapter = json.loads((tmp_path / "adapter_config.json").read_text())
    assert (adapter["r"], adapter["lora_alpha"], adapter["lora_dropout"]) == (16, 32, 0.05)
    assert "score" in adapter["modules_to_save"]
    assert "everything that the following sentence" in (tmp_path / "chat_template.jinja").read_text()


def test_recipes_hold_the_papers_values():
    """Section 5: LoRA r 16, alpha 32, dropout 0.05; AdamW 1e-5, decay 0.01, cosine, 3 % warm-up, clipping 1.0, 1 x 16."""
    for name in ("paper", "counterbalanced"):
        recipe = yaml.safe_load((ROOT / "training" / "recipes" / f"{name}.yaml").read_text())
        expected = dict(
            lora_r=16, lora_alpha=32, lora_dropout=0.05, learning_rate=1e-5, weight_decay=0.01, max_grad_norm=1.0,
            lr_scheduler_type="cosine", warmup_steps=0.03, num_train_epochs=1, per_device_train_batch_size=1,
            gradient_accumulation_steps=16, image_size=512, margin=0.5, pairs=12000, bf16=True,
        )  # fmt: skip
        assert {key: recipe[key] for key in expected} == expected


def test_bad_recipes_and_mixes_are_one_line():
    result = train(recipe="papper")
    assert result.returncode == 2 and "no recipe 'papper'" in result.stderr and "Traceback" not in result.stderr
    with pytest.raises(ConfigError, match="sum to 1"):
        training_pairs(PairArguments(pairs=4, incongruent=0.7, congruent=0.7))
    with pytest.raises(ConfigError, match="known: "):
        recipe_to_config(["--recipe"])
