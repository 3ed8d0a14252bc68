"""The training path at its smallest: the loss is the paper's, the mix is what was asked for, the recipes run and resume."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import yaml
from accelerate.state import AcceleratorState, GradientState
from datasets import load_dataset
from PIL import Image
from safetensors.torch import load_file

from protoscore.benchmarks.protobias.schema import Cell
from protoscore.errors import ConfigError
from protoscore.modeling.protoscore import ProtoScore
from protoscore.scenes.spec import SceneSpec
from tests.conftest import ROOT, run

sys.path.insert(0, str(ROOT / "training"))

from pairs import PairArguments, evaluation_cells, training_pairs
from recipes import recipe_to_config
from reward import last_whole_checkpoint

SMALL = ["--pairs", "24", "--per_device_train_batch_size", "4", "--logging_steps", "1", "--dataloader_num_workers", "0",
         "--save_strategy", "steps", "--disable_tqdm", "true"]  # fmt: skip
STEPS = ["--save_steps", "3", "--eval_triplets", "6", "--eval_strategy", "steps", "--eval_steps", "3"]
SCRIPT = str(ROOT / "training" / "train_protoscore.py")


def train(*arguments: str, recipe: str = "tiny_paper"):
    """The script as a user runs it, in this process: importing its libraries anew would cost more than the training."""
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    before, sys.argv = sys.argv, [SCRIPT, "--recipe", recipe, *SMALL, *arguments]
    try:
        runpy.run_path(SCRIPT, run_name="__main__")
    except SystemExit as end:
        return SimpleNamespace(returncode=end.code)
    finally:
        sys.argv = before
        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()
    return SimpleNamespace(returncode=0)


def history(folder: Path, key: str = "loss") -> list[dict]:
    states = sorted(folder.glob("checkpoint-*/trainer_state.json"), key=lambda p: int(p.parent.name.split("-")[1]))
    return [entry for entry in json.loads(states[-1].read_text())["log_history"] if key in entry]


def losses(folder: Path) -> list[float]:
    return [entry["loss"] for entry in history(folder)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("trained")
    assert train("--output_dir", str(out), *STEPS).returncode == 0
    return out


def test_a_run_leaves_a_whole_checkpoint_a_record_and_its_own_card(trained):
    assert np.isfinite(ProtoScore.from_pretrained(trained).score([Image.new("RGB", (96, 96), "red")], ["A bird."])).all()
    names = {p.name for p in trained.iterdir()}
    assert {"model.safetensors", "config.json", "tokenizer.json", "chat_template.jinja", "training_run.json"} <= names
    assert not [path for path in trained.glob("*") if path.suffix in (".bin", ".pt")], "no pickle among the weights"
    record = json.loads((trained / "training_run.json").read_text())
    assert record["steps"] == 6 and record["pairs"]["incongruent"] == 1 and record["base"] == "tiny"
    assert str(trained) not in json.dumps(record)
    card = (trained / "README.md").read_text()
    assert "Shortcut" in card and "not measured on a test set" in card
    assert "trl" not in card.lower() and "licence:" not in card, "marks of TRL's card, which speaks of a text model"
    value, n = (record["last_evaluation"][f"eval_congruent{part}"] for part in ("", "_n"))
    assert f"| congruent | {value:.3f} [" in card and f"| {n} |" in card


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


def test_evaluation_triplets_of_a_dataset_are_in_no_pair(dataset):
    args = PairArguments(dataset=str(dataset), pairs=10_000, eval_triplets=20)
    cells, pairs = evaluation_cells(args), training_pairs(args)
    held = set(cells.with_format(None)["triplet"])
    assert len(held) == 20 and not held & set(pairs.with_format(None)["triplet"])
    row = cells[0]
    known = load_rows(dataset)
    assert [known[row[cell.value].tobytes()] for cell in Cell] == list(Cell)
    with pytest.raises(ConfigError, match="no triplets left"):
        training_pairs(PairArguments(dataset=str(dataset), pairs=4, eval_triplets=100_000))


def load_rows(dataset) -> dict[bytes, Cell]:
    import io

    import pyarrow.parquet as pq

    found = {}
    for row in pq.read_table(dataset / "controls" / "train-00000.parquet").to_pylist():
        for cell in Cell:
            found[Image.open(io.BytesIO(row[f"{cell.value}_image"]["bytes"])).convert("RGB").tobytes()] = cell
    return found


def test_killed_and_resumed_it_ends_with_the_same_losses_and_weights(trained, tmp_path):
    """SIGKILL in the middle, and a checkpoint that was cut short lies about."""
    command = [sys.executable, SCRIPT, "--recipe", "tiny_paper", *SMALL, *STEPS, "--output_dir", str(tmp_path)]
    with (tmp_path.parent / "killed.log").open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
    deadline = time.monotonic() + 500
    while not (tmp_path / "checkpoint-3" / "trainer_state.json").is_file():
        assert process.poll() is None and time.monotonic() < deadline, (tmp_path.parent / "killed.log").read_text()[-2000:]
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL and not (tmp_path / "checkpoint-6").exists()
    (tmp_path / "checkpoint-5").mkdir()
    (tmp_path / "checkpoint-5" / "trainer_state.json").write_text('{"epoch": 0.')
    assert Path(last_whole_checkpoint(str(tmp_path))).name == "checkpoint-3"
    assert train("--output_dir", str(tmp_path), *STEPS, "--resume_from_checkpoint", "last").returncode == 0
    assert len(losses(tmp_path)) == 6
    np.testing.assert_allclose(losses(tmp_path), losses(trained), atol=1e-4)
    weights, expected = (load_file(folder / "model.safetensors") for folder in (tmp_path, trained))
    assert max(float((weights[key] - expected[key]).abs().max()) for key in expected) <= 1e-5


def test_two_processes_train_as_one(trained, tmp_path):
    """torchrun, gloo; two rows a process instead of four in one. The five quantities are those of all rows, too."""
    result = run(
        "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", SCRIPT, "--recipe", "tiny_paper", *SMALL,
        *STEPS,
        "--per_device_train_batch_size", "2", "--per_device_eval_batch_size", "2", "--output_dir", str(tmp_path),
        env={"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    np.testing.assert_allclose(losses(tmp_path), losses(trained), atol=1e-4)
    ours, theirs = (history(folder, "eval_incongruent") for folder in (tmp_path, trained))
    for name in ("eval_incongruent", "eval_congruent", "eval_preference", "eval_triplets", "eval_sensitivity_n"):
        assert [entry[name] for entry in ours] == [entry[name] for entry in theirs], name


@pytest.mark.parametrize("recipe", ["paper", "counterbalanced", "qlora"])
def test_the_papers_recipe_runs_with_adapters_at_tiny_size(trained, tmp_path, recipe):
    """Everything but the size: LoRA, accumulation, bf16, activation checkpointing, ProtoScore's wording, four bits."""
    result = train(
        "--model_name_or_path", str(trained), "--image_size", "64", "--use_cpu", "true", "--output_dir", str(tmp_path),
        "--max_steps", "2", "--per_device_train_batch_size", "1", "--gradient_accumulation_steps", "4",
        "--eval_triplets", "2", "--eval_steps", "1", recipe=recipe,
    )  # fmt: skip
    assert result.returncode == 0
    adapter = json.loads((tmp_path / "adapter_config.json").read_text())
    assert (adapter["r"], adapter["lora_alpha"], adapter["lora_dropout"]) == (16, 32, 0.05)
    assert "score" in adapter["modules_to_save"]
    assert "everything that the following sentence" in (tmp_path / "chat_template.jinja").read_text()
    kinds = {str(tensor.dtype) for tensor in load_file(tmp_path / "adapter_model.safetensors").values()}
    assert kinds == {"torch.float32"}, "steps of 1e-5 are lost in bfloat16"
    quantization = "nf4" if recipe == "qlora" else None
    loaded = ProtoScore.from_pretrained(tmp_path, quantization=quantization, dtype="bfloat16")
    assert np.isfinite(loaded.score([Image.new("RGB", (64, 64), "red")], ["A bird."])).all()


def test_a_frozen_vision_tower_is_not_differentiated(trained):
    """Adapters with activation checkpointing make input embeddings require gradients; were the patches' among them, the whole
    tower would be differentiated, and computed twice, for nothing."""
    from peft import LoraConfig, get_peft_model

    from protoscore.modeling.encode import encode

    loaded = ProtoScore.from_pretrained(trained)
    inputs = encode(loaded.processor, [Image.new("RGB", (64, 64), "red")], ["A bird."]).inputs
    model = get_peft_model(loaded.model, LoraConfig(r=2, target_modules=r".*language_model.*q_proj", modules_to_save=["score"]))
    model.enable_input_require_grads()
    model.gradient_checkpointing_enable()
    model.train()
    seen = []
    for module in (model.base_model.model.model.visual.merger, model.base_model.model.model.language_model.layers[0]):
        module.register_forward_hook(lambda module, args, out: seen.append(out.requires_grad))
    model(**inputs).logits.sum().backward()
    assert seen[:2] == [False, True]
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad)


def test_remembered_pictures_change_nothing(trained, tmp_path):
    """Two epochs with evaluations, adapters on a frozen tower: same losses with and without a cache, fewer pictures seen."""
    recipe = yaml.safe_load((ROOT / "training" / "recipes" / "paper.yaml").read_text())
    recipe |= dict(
        model_name_or_path=str(trained), pairs=8, image_size=64, num_train_epochs=2, gradient_accumulation_steps=1, bf16=False,
        use_cpu=True, dtype="float32", eval_triplets=3, eval_steps=2, activation_checkpointing=False, learning_rate=1e-3,
    )  # fmt: skip
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    arguments = ["--pairs", "8", "--save_steps", "4"]
    import reward

    found = []
    for gb in ("0", "1"):
        caches = []
        original = reward.VisionCache
        reward.VisionCache = lambda limit: caches.append(original(limit)) or caches[-1]  # noqa: B023
        try:
            given = [*arguments, "--vision_cache_gb", gb, "--output_dir", str(tmp_path / gb)]
            assert train(*given, recipe=str(tmp_path / "recipe.yaml")).returncode == 0
        finally:
            reward.VisionCache = original
        found.append(
            (losses(tmp_path / gb), [e["eval_preference"] for e in history(tmp_path / gb, "eval_incongruent")], caches)
        )
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-5)
    assert found[0][1] == found[1][1] and not found[0][2]
    # 16 pictures of pairs and 12 of evaluations, each seen twice
    assert (found[1][2][0].encoded, found[1][2][0].reused) == (28, 28)


def test_the_head_can_start_from_two_answers(trained, tmp_path):
    """As Qwen3-VL-Reranker's relevance: its base writes text, and the head is the difference of two rows."""
    from transformers import Qwen3VLForConditionalGeneration

    from protoscore.modeling.tiny import tiny_config

    processor = ProtoScore.from_pretrained(trained).processor
    base = Qwen3VLForConditionalGeneration(tiny_config(processor))
    base.save_pretrained(tmp_path / "base")
    processor.save_pretrained(tmp_path / "base")
    arguments = ["--model_name_or_path", str(tmp_path / "base"), "--image_size", "64", "--max_steps", "1", "--save_steps", "9"]
    arguments += ["--learning_rate", "0", "--output_dir", str(tmp_path / "out")]
    assert train(*arguments, "--head_from", "a", "b").returncode == 0
    first, second = (processor.tokenizer(answer)["input_ids"][0] for answer in "ab")
    expected = (base.lm_head.weight[first] - base.lm_head.weight[second]).detach()
    torch.testing.assert_close(load_file(tmp_path / "out" / "model.safetensors")["score.weight"][0], expected)


def test_what_is_uploaded_is_ours_alone(trained, tmp_path, monkeypatch):
    """The upload itself is huggingface_hub's; what it is given is looked at: no foreign card, pickle, or checkpoint."""
    import reward
    from huggingface_hub.utils import filter_repo_objects

    seen = []

    class Api:
        def upload_folder(self, **given):
            seen.append(given)

    monkeypatch.setattr(reward, "HfApi", Api)
    args = SimpleNamespace(output_dir=str(trained), hub_token=None, hub_revision=None)
    trainer = SimpleNamespace(args=args, hub_model_id="me/mine", is_world_process_zero=lambda: True)
    (trained / "training_args.bin").write_bytes(b"pickle")
    (trained / "checkpoint-9").mkdir()
    (trained / "checkpoint-9" / "optimizer.pt").write_bytes(b"pickle")
    reward.PairTrainer.push_to_hub(trainer)
    (given,) = seen
    paths = [str(path.relative_to(trained)) for path in trained.rglob("*") if path.is_file()]
    sent = set(filter_repo_objects(paths, ignore_patterns=given["ignore_patterns"]))
    assert {"model.safetensors", "README.md", "training_run.json", "classifier.py", "tokenizer.json"} <= sent
    assert not [path for path in sent if path.startswith("checkpoint") or path.endswith((".bin", ".pt"))]
    for path in ("training_args.bin", "checkpoint-9/optimizer.pt"):
        (trained / path).unlink()
    (trained / "checkpoint-9").rmdir()


def test_accelerate_reads_the_configurations_for_several_gpus():
    from accelerate.commands.config.config_args import load_config_from_file

    for name, kind in (("ddp", "MULTI_GPU"), ("fsdp2", "FSDP")):
        config = load_config_from_file(str(ROOT / "training" / "accelerate" / f"{name}.yaml"))
        assert config.distributed_type.value == kind and config.mixed_precision == "bf16"
    assert config.fsdp_config["fsdp_version"] == 2


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


def test_bad_recipes_and_mixes_are_one_line(tmp_path, capsys):
    for arguments, recipe, why in (
        ([], "papper", "no recipe 'papper'"),
        (["--output_dir", str(tmp_path), "--resume_from_checkpoint", "last"], "tiny_paper", "no checkpoint to go on from"),
        (["--output_dir", str(tmp_path), "--eval_strategy", "steps", "--eval_steps", "1"], "tiny_paper", "--eval_triplets"),
        (["--output_dir", str(tmp_path), "--model_name_or_path", str(tmp_path / "nowhere")], "tiny_paper", "nowhere"),
    ):
        assert train(*arguments, recipe=recipe).returncode == 2
        error = capsys.readouterr().err.strip().splitlines()[-1]
        assert error.startswith("train_protoscore: ") and why in error
    with pytest.raises(ConfigError, match="sum to 1"):
        training_pairs(PairArguments(pairs=4, incongruent=0.7, congruent=0.7))
    with pytest.raises(ConfigError, match="known: "):
        recipe_to_config(["--recipe"])


HELD_OUT = ["shoebill", "armadillo", "hammock", "segway", "jewish_woman", "muslim_man"]


def test_held_out_subjects_are_in_no_training_scene_and_in_every_test_triplet(tmp_path):
    args = PairArguments(pairs=1500, eval_triplets=100, held_out=HELD_OUT)
    for data, sides in (
        (training_pairs(args), ["chosen", "rejected"]),
        (evaluation_cells(args), [cell.value for cell in Cell]),
    ):
        rows = data.with_format(None)
        shown = {SceneSpec.model_validate_json(scene).subject for side in sides for scene in rows[side]}
        assert len(shown) > 20 and not shown & set(HELD_OUT)
    build = ["dataset_scripts/protobias/build.py", "--triplets", "12", "--renditions", "1", "--size", "64", "--drawable"]
    result = run(*build, "--split", "test", "--subjects", *HELD_OUT, "--out", str(tmp_path / "built"))
    assert result.returncode == 0, result.stderr
    rows = load_dataset(str(tmp_path / "built"), "triplets", split="test", cache_dir=str(tmp_path))
    subjects = [
        {json.loads(row[key])["subject"] if key.endswith("scene") else row[key] for key in row if "subject" in key}
        for row in rows
    ]
    assert len(rows) == 12 and all(found & set(HELD_OUT) for found in subjects)


def test_the_table_of_mixes_is_made_from_results_files(trained, tmp_path, monkeypatch, capsys):
    import compare_mixes

    monkeypatch.setattr(compare_mixes, "RESULTS", tmp_path / "results")
    five = {q: {"value": 0.5 + i / 10, "low": 0.4, "high": 0.95, "n": 10} for i, q in enumerate(compare_mixes.QUANTITIES)}
    report = {"run": "x", "triplets": 10, "resamples": 100, "scorers": {"constant": {}, "protoscore:mine": {"all": five}}}
    (tmp_path / "report.json").write_text(json.dumps(report))
    given = ["--report", str(tmp_path / "report.json")]
    assert compare_mixes.main(["add", "from_record", *given, "--model", str(trained)]) == 0
    settings = ["--set", "pairs=32000", "incongruent=0.75", "congruent=0.25", "same_subject=0.0"]
    assert (
        compare_mixes.main(["add", "from_recipe", *given, "--recipe", "tiny_counterbalanced", *settings, "--test-set", "other"])
        == 0
    )
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{compare_mixes.BEGIN}\nold\n{compare_mixes.END}\nafter\n")
    compare_mixes.write_table(readme, tmp_path / "results")
    text = readme.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    assert "| from_record | 1.00 / 0.00 / 0.00 | 24 | 10 | 0.500 [0.400, 0.950] | 0.600" in text
    assert "| from_recipe | 0.75 / 0.25 / 0.00 | 32,000 | 10 |" in text and "Other, 95 %" in text
    for arguments, why in (
        (["add", "x", *given, "--model", str(tmp_path)], "holds no training_run.json"),
        (["add", "x", *given, "--recipe", "tiny_paper", "--set", "pears=3"], "did you mean 'pairs'"),
    ):
        assert compare_mixes.main(arguments) == 2
        assert why in capsys.readouterr().err


def test_the_table_in_the_readme_is_the_one_that_the_results_files_give():
    import compare_mixes

    text = compare_mixes.README.read_text()
    results = [json.loads(path.read_text()) for path in sorted(compare_mixes.RESULTS.glob("*.json"))]
    shown = text.split(compare_mixes.BEGIN)[1].split(compare_mixes.END)[0]
    assert shown.strip() == compare_mixes.table(results).strip()
