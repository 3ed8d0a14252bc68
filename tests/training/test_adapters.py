"""Adapters, four bits, a frozen vision tower and heads that start from answers, at tiny size."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import yaml
from PIL import Image
from safetensors.torch import load_file

from protoscore.modeling.protoscore import ProtoScore
from tests.conftest import ROOT
from tests.training.support import history, losses, train
from training.protoscore import reward


@pytest.mark.parametrize("recipe", ["paper", "counterbalanced", "qlora"])
def test_the_papers_recipe_runs_with_adapters_at_tiny_size(trained, tmp_path, recipe):
    """Everything but the size: LoRA, accumulation, bf16, activation checkpointing, ProtoScore's wording, four bits."""
    result = train(
        "--model_name_or_path", str(trained), "--image_size", "64", "--use_cpu", "true", "--output_dir", str(tmp_path),
        "--max_steps", "2", "--per_device_train_batch_size", "1", "--gradient_accumulation_steps", "4",
        "--eval_triplets", "2", "--eval_steps", "1", recipe=recipe,
    )  # fmt: skip
    assert result == 0
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
    recipe = yaml.safe_load((ROOT / "training" / "protoscore" / "recipes" / "paper.yaml").read_text())
    recipe |= dict(
        model_name_or_path=str(trained), pairs=8, image_size=64, num_train_epochs=2, gradient_accumulation_steps=1, bf16=False,
        use_cpu=True, dtype="float32", eval_triplets=3, eval_steps=2, activation_checkpointing=False, learning_rate=1e-3,
    )  # fmt: skip
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    arguments = ["--pairs", "8", "--save_steps", "4"]

    found = []
    for gb in ("0", "1"):
        caches = []
        original = reward.VisionCache
        reward.VisionCache = lambda limit: caches.append(original(limit)) or caches[-1]  # noqa: B023
        try:
            given = [*arguments, "--vision_cache_gb", gb, "--output_dir", str(tmp_path / gb)]
            assert train(*given, recipe=str(tmp_path / "recipe.yaml")) == 0
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
    assert train(*arguments, "--head_from", "a", "b") == 0
    first, second = (processor.tokenizer(answer)["input_ids"][0] for answer in "ab")
    expected = (base.lm_head.weight[first] - base.lm_head.weight[second]).detach()
    torch.testing.assert_close(load_file(tmp_path / "out" / "model.safetensors")["score.weight"][0], expected)
