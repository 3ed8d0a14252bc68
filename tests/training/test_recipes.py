"""Recipes hold what they promise, what is wrong with one is one line, and the table of mixes is made from files."""

from __future__ import annotations

import json

import pytest
import yaml

from protoscore.errors import ConfigError, ProtoscoreError, UnknownName
from tests.conftest import ROOT
from tests.training.support import train
from training.protoscore import compare_mixes
from training.protoscore.pairs import PairArguments, training_pairs
from training.recipes import recipe_to_config

PROTOSCORE = ROOT / "training" / "protoscore"


def test_accelerate_reads_the_configurations_for_several_gpus():
    from accelerate.commands.config.config_args import load_config_from_file

    for name, kind in (("ddp", "MULTI_GPU"), ("fsdp2", "FSDP")):
        config = load_config_from_file(str(PROTOSCORE / "accelerate" / f"{name}.yaml"))
        assert config.distributed_type.value == kind and config.mixed_precision == "bf16"
    assert config.fsdp_config["fsdp_version"] == 2


def test_recipes_hold_the_papers_values():
    """Section 5: LoRA r 16, alpha 32, dropout 0.05; AdamW 1e-5, decay 0.01, cosine, 3 % warm-up, clipping 1.0, 1 x 16."""
    for name in ("paper", "counterbalanced", "grounded"):
        recipe = yaml.safe_load((PROTOSCORE / "recipes" / f"{name}.yaml").read_text())
        expected = dict(
            lora_r=16, lora_alpha=32, lora_dropout=0.05, learning_rate=1e-5, weight_decay=0.01, max_grad_norm=1.0,
            lr_scheduler_type="cosine", warmup_steps=0.03, num_train_epochs=1, per_device_train_batch_size=1,
            gradient_accumulation_steps=16, image_size=512, margin=0.5, pairs=12000, bf16=True,
        )  # fmt: skip
        assert {key: recipe[key] for key in expected} == expected


def test_bad_recipes_and_mixes_are_one_line(tmp_path, capsys):
    misspelled = tmp_path / "misspelled.yaml"
    misspelled.write_text("pears: 3\n")
    for arguments, recipe, why in (
        ([], "papper", "unknown recipe 'papper'; did you mean 'paper'?"),
        ([], str(tmp_path / "mine.yaml"), "there is no recipe"),
        (["--output_dir", str(tmp_path), "--learning_rats", "1"], "tiny_paper", "learning_rats"),
        (["--use_cpu", "true"], str(misspelled), "pears"),
        (["--output_dir", str(tmp_path), "--bf16", "true", "--use_cpu", "false"], "tiny_paper", "add: --use_cpu true"),
        (["--output_dir", str(tmp_path), "--resume_from_checkpoint", "last"], "tiny_paper", "no checkpoint to go on from"),
        (["--output_dir", str(tmp_path), "--eval_strategy", "steps", "--eval_steps", "1"], "tiny_paper", "--eval_triplets"),
        (["--output_dir", str(tmp_path), "--model_name_or_path", str(tmp_path / "nowhere")], "tiny_paper", "nowhere"),
    ):
        assert train(*arguments, recipe=recipe) == 2
        error = capsys.readouterr().err.strip().splitlines()[-1]
        assert error.startswith("training.protoscore.train: ") and why in error
    with pytest.raises(ConfigError, match="sum to 1"):
        training_pairs(PairArguments(pairs=4, incongruent=0.7, congruent=0.7))
    with pytest.raises(UnknownName, match="known: "):
        recipe_to_config(["--recipe"], PROTOSCORE / "recipes")


def test_a_recipe_is_named_with_and_without_an_equals_sign():
    path = str(PROTOSCORE / "recipes" / "paper.yaml")
    for given in (["--recipe", "paper"], ["--recipe=paper"], [f"--recipe={path}"]):
        found = recipe_to_config(["--seed", "1", *given, "--pairs=4"], PROTOSCORE / "recipes")
        assert found == ["--seed", "1", "--config", path, "--pairs=4"]


def test_the_table_of_mixes_is_made_from_results_files(trained, tmp_path, monkeypatch):
    monkeypatch.setattr(compare_mixes, "RESULTS", tmp_path / "results")
    five = {q: {"value": 0.5 + i / 10, "low": 0.4, "high": 0.95, "n": 10} for i, q in enumerate(compare_mixes.QUANTITIES)}
    report = {"run": "x", "details": {"triplets": 10, "resamples": 100}}
    report["estimates"] = {"constant": {}, "protoscore:mine": {"all": five}}
    (tmp_path / "results.json").write_text(json.dumps(report))
    given = ["--report", str(tmp_path / "results.json")]
    compare_mixes.main(["add", "from_record", *given, "--model", str(trained)])
    settings = ["--set", "pairs=32000", "incongruent=0.75", "congruent=0.25", "same_subject=0.0"]
    compare_mixes.main(["add", "from_recipe", *given, "--recipe", "tiny_counterbalanced", *settings, "--test-set", "other"])
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{compare_mixes.BEGIN}\nold\n{compare_mixes.END}\nafter\n")
    compare_mixes.write_table(readme, tmp_path / "results")
    text = readme.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    assert "| from_record | 1.00 / 0.00 / 0.00 / 0.00 | 24 | 10 | 0.500 [0.400, 0.950] | 0.600" in text
    assert "| from_recipe | 0.75 / 0.25 / 0.00 / 0.00 | 32,000 | 10 |" in text and "Other, 95 %" in text
    for arguments, why in (
        (["add", "x", *given, "--model", str(tmp_path)], "holds no training_run.json"),
        (["add", "x", *given, "--recipe", "tiny_paper", "--set", "pears=3"], "did you mean 'pairs'"),
    ):
        with pytest.raises(ProtoscoreError, match=why):
            compare_mixes.main(arguments)


def test_the_table_in_the_readme_is_the_one_that_the_results_files_give():
    text = compare_mixes.README.read_text()
    results = [json.loads(path.read_text()) for path in sorted(compare_mixes.RESULTS.glob("*.json"))]
    shown = text.split(compare_mixes.BEGIN)[1].split(compare_mixes.END)[0]
    assert shown.strip() == compare_mixes.table(results).strip()
