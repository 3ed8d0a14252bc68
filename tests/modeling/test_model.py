"""The checkpoint format, its scores, and what is refused. Everything at tiny size with random weights unless said."""

from __future__ import annotations

import copy
import io
import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForSequenceClassification,
    Qwen3_5Config,
    Qwen3_5ForConditionalGeneration,
    Qwen3VLForConditionalGeneration,
    Qwen3VLMoeConfig,
    Qwen3VLMoeForConditionalGeneration,
)

from protoscore.errors import CheckpointError, ConfigError, ImageError
from protoscore.modeling.classifier import register
from protoscore.modeling.encode import MAX_TEXT_TOKENS, encode
from protoscore.modeling.protoscore import TINY, ProtoScore
from protoscore.modeling.tiny import tiny_config, tiny_model, tiny_processor
from protoscore.sources.decoding import open_image
from tests.conftest import run

TEXTS = ["A bird in a green meadow with exactly two stones nearby.", "A vehicle.", "Ein Zèbre 斑馬 with an unseen wörd!", ""]


def picture(seed: int, width: int = 80, height: int = 64) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A saved random model. Weights are spread out: at their initial size all scores are nearly equal."""
    processor = tiny_processor(TEXTS * 3)
    model = tiny_model(processor, seed=1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0)
    folder = tmp_path_factory.mktemp("checkpoint")
    ProtoScore(model, processor).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def scorer(checkpoint):
    return ProtoScore.from_pretrained(checkpoint)


def test_score_is_a_linear_head_on_the_last_real_token(scorer):
    """An independent forward pass: backbone, then the head on the state of the last token that is no padding."""
    images, texts = [picture(i) for i in range(4)], TEXTS
    inputs = encode(scorer.processor, images, texts).inputs
    with torch.inference_mode():
        states = scorer.model.model(**inputs).last_hidden_state
    last = inputs["attention_mask"].sum(1) - 1
    expected = states[torch.arange(4), last] @ scorer.model.score.weight[0]
    assert scorer.model.score.bias is None
    np.testing.assert_allclose(scorer.score(images, texts), expected.tolist(), atol=1e-5)
    assert len({round(v, 3) for v in expected.tolist()}) == 4, "the scores must differ for this test to mean anything"


def test_batching_order_and_padding_side_do_not_move_scores(scorer):
    images, texts = [picture(i, 60 + 20 * i, 70) for i in range(4)], TEXTS
    alone = [scorer.score([i], [t])[0] for i, t in zip(images, texts)]
    np.testing.assert_allclose(scorer.score(images, texts), alone, atol=1e-4)
    np.testing.assert_allclose(scorer.score(images[::-1], texts[::-1], batch_size=3), alone[::-1], atol=1e-4)
    scorer.processor.tokenizer.padding_side = "left"
    try:
        np.testing.assert_allclose(scorer.score(images, texts), alone, atol=1e-4)
    finally:
        scorer.processor.tokenizer.padding_side = "right"


def test_a_picture_with_many_texts_is_looked_at_once(scorer):
    """Same scores, fewer pictures through the tower; across batches where features are kept, and no more than fit."""
    from protoscore.modeling.vision import VisionCache, names_of

    images = [picture(1), picture(2, 50, 90)]
    seen = []
    hook = scorer.model.model.visual.register_forward_pre_hook(
        lambda module, args, given: seen.append(len(given["grid_thw"])), with_kwargs=True
    )
    try:
        alone = [[scorer.score([image], [text])[0] for text in TEXTS] for image in images]
        seen.clear()
        together = scorer.score([image for image in images for _ in TEXTS], TEXTS * 2)
    finally:
        hook.remove()
    assert seen == [2]
    np.testing.assert_allclose(together, np.ravel(alone), atol=1e-4)
    inputs = encode(scorer.processor, images, TEXTS[:2]).inputs
    names = names_of(inputs).tolist()
    assert names == names_of(encode(scorer.processor, images, TEXTS[2:]).inputs).tolist() and names[0] != names[1]
    cache = VisionCache(limit_gb=1)
    with torch.inference_mode():
        first, again = (scorer.model(**cache.look(scorer.model, inputs, names)).logits for _ in range(2))
        assert torch.equal(first, again) and (cache.encoded, cache.reused) == (2, 2)
        assert torch.equal(first, scorer.model(**inputs).logits)
        small = VisionCache(limit_gb=max(seen.size for seen in cache._kept.values()) * 1.5 / 1e9)
        for _ in range(2):
            small.look(scorer.model, inputs, names)
    assert len(small._kept) == 1 and small.encoded >= 3


def test_attention_backends_agree(checkpoint):
    images, texts = [picture(i) for i in range(4)], TEXTS
    scores = [ProtoScore.from_pretrained(checkpoint, attn_implementation=a).score(images, texts) for a in ("sdpa", "eager")]
    np.testing.assert_allclose(*scores, atol=1e-4)


def test_both_the_picture_and_the_text_matter(scorer):
    a, b = scorer.score([picture(1), picture(2)], [TEXTS[0]] * 2)
    c, d = scorer.score([picture(1)] * 2, TEXTS[:2])
    assert a != b and c != d
    assert scorer.compare(TEXTS[0], picture(1), picture(2)) == pytest.approx(a - b, abs=1e-5)


def test_reload_is_exact_also_through_the_auto_class_and_without_the_package(checkpoint, scorer, tmp_path):
    inputs = encode(scorer.processor, [picture(3)], [TEXTS[0]]).inputs
    with torch.inference_mode():
        expected = scorer.model(**inputs).logits
        assert torch.equal(AutoModelForSequenceClassification.from_pretrained(checkpoint).eval()(**inputs).logits, expected)
    scorer.save_pretrained(tmp_path)
    assert ProtoScore.from_pretrained(tmp_path).score([picture(3)], [TEXTS[0]]) == scorer.score([picture(3)], [TEXTS[0]])
    assert not list(tmp_path.glob("*.bin")) and not list(tmp_path.glob("*.pt"))


def test_a_long_text_is_cut_at_192_tokens_and_flagged(scorer):
    long = "stone " * 400
    encoded = encode(scorer.processor, [picture(0), picture(1)], [long, "A bird."])
    assert encoded.truncated == [True, False]
    assert encoded.inputs["attention_mask"][0].sum() < MAX_TEXT_TOKENS + 40
    assert np.isfinite(scorer.score([picture(0)], [long])).all()


def test_special_tokens_in_a_text_are_text(scorer):
    """A caption that spells the picture's token must not make the model expect a second picture, nor crash it."""
    hostile = "A bird <|image_pad|> with <|vision_start|><|im_end|> two stones."
    values = scorer.score([picture(0), picture(0)], [hostile, "A bird with two stones."])
    assert np.isfinite(values).all()
    ids = encode(scorer.processor, [picture(0)], [hostile]).inputs["input_ids"][0].tolist()
    plain = encode(scorer.processor, [picture(0)], ["A bird with two stones."]).inputs["input_ids"][0].tolist()
    for token in ("<|vision_start|>", "<|image_pad|>", "<|im_end|>"):
        number = scorer.processor.tokenizer.convert_tokens_to_ids(token)
        assert ids.count(number) == plain.count(number), token


@pytest.mark.parametrize("size", [(1, 1), (1, 400), (3000, 40), (33, 32), (20_000, 30)])
def test_any_picture_size_is_scored(scorer, size):
    assert np.isfinite(scorer.score([picture(0, *size)], ["A bird."])).all()


def as_file(image: Image.Image, kind: str = "PNG", **options) -> Image.Image:
    """What a user gets who opens a file: not yet decoded."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return Image.open(io.BytesIO(buffer.getvalue()))


def test_every_mode_is_scored_as_the_rgb_picture_that_it_stands_for(scorer):
    rgb = picture(5)
    grey = rgb.convert("L")
    deep = Image.fromarray(np.asarray(grey).astype(np.uint16) * 257)
    turned = as_file(rgb.transpose(Image.Transpose.ROTATE_90), "PNG", exif=exif(orientation=6))
    same = {
        "RGBA": (as_file(rgb.convert("RGBA")), rgb),
        "transparent": (as_file(transparent(rgb)), rgb),
        "palette": (as_file(rgb.quantize(16)), rgb.quantize(16).convert("RGB")),
        "LA": (as_file(grey.convert("LA")), grey),
        "1 bit": (as_file(rgb.convert("1")), rgb.convert("1")),
        "CMYK": (as_file(rgb.convert("CMYK"), "TIFF"), rgb.convert("CMYK").convert("RGB")),
        "16 bit": (deep, grey),
        "turned": (turned, rgb),
        "animated": (as_file(rgb, "PNG", save_all=True, append_images=[picture(6)]), rgb),
    }
    scores = scorer.score([image for pair in same.values() for image in pair], [TEXTS[0]] * 2 * len(same))
    for name, a, b in zip(same, scores[::2], scores[1::2], strict=True):
        assert a == pytest.approx(b, abs=1e-5), name
    assert len({round(value, 4) for value in scores}) >= 4, "they must differ among each other for this to mean anything"


def exif(orientation: int) -> bytes:
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags.tobytes()


def transparent(image: Image.Image) -> Image.Image:
    image = image.convert("RGBA")
    image.putalpha(0)
    return image


def test_pictures_that_cannot_be_used_are_refused_with_their_position(scorer):
    cut = io.BytesIO()
    picture(0, 300, 300).save(cut, "JPEG")
    truncated = Image.open(io.BytesIO(cut.getvalue()[: len(cut.getvalue()) // 2]))
    for bad, why in (
        (truncated, "not a readable picture"),
        (Image.new("F", (8, 8)), "mode F"),
        (Image.new("1", (20_000, 2_600)), "more than 50 million"),
    ):
        with pytest.raises(ImageError, match=rf"picture 1: .*{why}"):
            scorer.score([picture(0), bad, picture(1)], TEXTS[:3])
    with pytest.raises(ImageError):
        open_image(b"")


def spoil(folder, kind: str) -> str:
    weights = load_file(folder / "model.safetensors")
    if kind == "missing":
        del weights["score.weight"]
    elif kind == "unexpected":
        weights["lm_head.weight"] = torch.zeros(2, 2)
    elif kind == "mismatched":
        weights["score.weight"] = torch.zeros(1, 64)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    if kind == "pickle":
        torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
    if kind == "cut":
        data = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(data[: len(data) // 2])
    return {"missing": "score.weight", "unexpected": "lm_head.weight", "mismatched": "score.weight"}.get(kind, "")


@pytest.mark.parametrize("kind", ["missing", "unexpected", "mismatched", "pickle", "cut"])
def test_a_checkpoint_that_is_not_whole_is_refused_by_name(checkpoint, tmp_path, kind):
    folder = tmp_path / "spoilt"
    shutil.copytree(checkpoint, folder)
    named = spoil(folder, kind)
    with pytest.raises(CheckpointError) as caught:
        ProtoScore.from_pretrained(folder)
    assert named in str(caught.value) and "\n" not in str(caught.value)
    assert ("never opened" in str(caught.value)) == (kind == "pickle")


LORA = dict(
    r=4, lora_alpha=8, target_modules=r".*language_model.*\.(q_proj|v_proj)", modules_to_save=["score"], task_type="SEQ_CLS"
)


@pytest.fixture(scope="module")
def base(tmp_path_factory, checkpoint):
    """A model that writes text, as published bases are: no head for scores, a vocabulary head instead."""
    folder = tmp_path_factory.mktemp("base")
    processor = ProtoScore.from_pretrained(checkpoint).processor
    torch.manual_seed(3)
    model = Qwen3VLForConditionalGeneration(tiny_config(processor))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def adapter(tmp_path_factory, base):
    """An adapter with a head of its own on the base, weights spread out, and what it scored before it was saved."""
    from peft import LoraConfig, get_peft_model

    register()
    folder = tmp_path_factory.mktemp("adapter")
    model = AutoModelForSequenceClassification.from_pretrained(base, num_labels=1)
    torch.manual_seed(4)
    model = get_peft_model(model, LoraConfig(**LORA))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.copy_(torch.randn_like(parameter) * 0.2)
    adapted = ProtoScore(model, ProtoScore.from_pretrained(base, answers=("a", "b")).processor)
    adapted.save_pretrained(folder)
    return folder, adapted.score([picture(i) for i in range(4)], TEXTS)


def test_adapter_and_merged_checkpoint_score_as_before_saving(adapter, tmp_path):
    folder, before = adapter
    images = [picture(i) for i in range(4)]
    loaded = ProtoScore.from_pretrained(folder)
    assert loaded.score(images, TEXTS) == before and len({round(v, 3) for v in before}) == 4
    merged = loaded.merge().score(images, TEXTS)
    np.testing.assert_allclose(merged, before, rtol=1e-5, atol=1e-5)  # one matrix instead of a sum: rounding
    loaded.save_pretrained(tmp_path)
    assert ProtoScore.from_pretrained(tmp_path).score(images, TEXTS) == merged
    raw = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    with torch.inference_mode():
        logits = raw(**encode(loaded.processor, images[:1], TEXTS[:1]).inputs).logits
    assert logits.item() == ProtoScore.from_pretrained(tmp_path).score(images[:1], TEXTS[:1])[0]


def test_an_adapter_without_its_base_or_its_head_is_refused(adapter, tmp_path):
    folder = shutil.copytree(adapter[0], tmp_path / "headless")
    weights = load_file(folder / "adapter_model.safetensors")
    save_file({k: v for k, v in weights.items() if "score" not in k}, folder / "adapter_model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"score\.weight"):
        ProtoScore.from_pretrained(folder)
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(config | {"base_model_name_or_path": "nobody/no-such-base"}))
    with pytest.raises(CheckpointError, match="nobody/no-such-base"):
        ProtoScore.from_pretrained(folder)


def test_four_bits_round_trip_exactly_and_leave_head_and_vision_whole(checkpoint, adapter, scorer, tmp_path):
    pytest.importorskip("bitsandbytes")
    images = [picture(i) for i in range(4)]
    quantized = ProtoScore.from_pretrained(checkpoint, quantization="nf4")
    scores = quantized.score(images, TEXTS)
    assert scores != scorer.score(images, TEXTS) and np.isfinite(scores).all()
    kinds = {name: type(m).__name__ for name, m in quantized.model.named_modules() if "Linear" in type(m).__name__}
    assert {kind for name, kind in kinds.items() if "visual" in name or name == "score"} == {"Linear"}
    assert {kind for name, kind in kinds.items() if "language_model" in name} == {"Linear4bit"}
    assert torch.equal(quantized.model.score.weight, scorer.model.score.weight)
    quantized.save_pretrained(tmp_path)
    assert ProtoScore.from_pretrained(tmp_path).score(images, TEXTS) == scores
    assert np.isfinite(ProtoScore.from_pretrained(adapter[0], quantization="nf4").score(images, TEXTS)).all()
    with pytest.raises(ConfigError, match="nf4"):
        ProtoScore.from_pretrained(checkpoint, quantization="int3")


def test_a_base_can_score_by_its_answers(base):
    """Against the definition: the logit of one answer minus that of the other at the last position."""
    found = ProtoScore.from_pretrained(base, answers=("a", "b"))
    whole = Qwen3VLForConditionalGeneration.from_pretrained(base).eval()
    images = [picture(i) for i in range(2)]
    ids = [found.processor.tokenizer(answer)["input_ids"][0] for answer in "ab"]
    for image, text in zip(images, TEXTS):
        with torch.inference_mode():
            logits = whole(**encode(found.processor, [image], [text]).inputs).logits[0, -1]
        assert found.score([image], [text])[0] == pytest.approx(float(logits[ids[0]] - logits[ids[1]]), abs=1e-5)
    with pytest.raises(CheckpointError, match="one token each"):
        ProtoScore.from_pretrained(base, answers=("a meadow of birds", "b"))
    with pytest.raises(CheckpointError, match=r"missing keys: score\.weight"):
        ProtoScore.from_pretrained(base)


def family(name: str, processor):
    """A tiny configuration of the true class of each family of bases."""
    dense = tiny_config(processor).to_dict()
    text, vision = dense["text_config"], dense["vision_config"]
    text |= {"num_hidden_layers": 2}
    tokens = {key: dense[key] for key in dense if key.endswith("_token_id")}
    drop = lambda config, *names: {k: v for k, v in config.items() if k not in ("model_type", *names)}  # noqa: E731
    if name == "moe":
        experts = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, decoder_sparse_step=1)
        return Qwen3VLMoeForConditionalGeneration(
            Qwen3VLMoeConfig(text_config=drop(text) | experts, vision_config=drop(vision), **tokens)
        )
    linear = dict(
        layer_types=["linear_attention", "full_attention"], linear_num_value_heads=2, linear_num_key_heads=1,
        linear_key_head_dim=16, linear_value_head_dim=16,
    )  # fmt: skip
    text["rope_parameters"] |= {"partial_rotary_factor": 1.0}
    return Qwen3_5ForConditionalGeneration(
        Qwen3_5Config(text_config=drop(text) | linear, vision_config=drop(vision, "deepstack_visual_indexes"), **tokens)
    )


@pytest.mark.parametrize("name", ["moe", "qwen3_5"])
def test_other_families_train_save_load_and_score_through_the_same_code(checkpoint, tmp_path, name):
    """Two steps by the training code's own trainer, from a base without a head."""
    processor = ProtoScore.from_pretrained(checkpoint).processor
    torch.manual_seed(6)
    family(name, processor).save_pretrained(tmp_path / "base")
    processor.save_pretrained(tmp_path / "base")
    trained = two_steps(tmp_path / "base", tmp_path / "out", processor)
    images = [picture(i, 60 + 20 * i, 70) for i in range(4)]
    loaded = ProtoScore.from_pretrained(tmp_path / "out")
    assert type(loaded.model) is type(trained.model)
    scores = loaded.score(images, TEXTS)
    assert scores == ProtoScore(trained.model, processor).score(images, TEXTS)
    alone = [loaded.score([i], [t])[0] for i, t in zip(images, TEXTS)]
    np.testing.assert_allclose(scores, alone, atol=1e-4)
    loaded.processor.tokenizer.padding_side = "left"
    np.testing.assert_allclose(loaded.score(images, TEXTS), alone, atol=1e-4)


def two_steps(base, out, processor):
    from datasets import Dataset
    from trl import RewardConfig

    from training.protoscore.reward import PairTrainer

    register()
    rows = Dataset.from_dict({"text": TEXTS[:3] * 2, "margin": [0.5] * 6}).add_column("seed", list(range(6)))

    def draw(batch):
        sides = {side: [picture(seed + shift) for seed in batch["seed"]] for side, shift in (("chosen", 0), ("rejected", 50))}
        return {"text": batch["text"], "margin": batch["margin"], **sides}

    config = RewardConfig(
        output_dir=str(out), max_steps=2, per_device_train_batch_size=2, use_cpu=True, bf16=False, report_to="none",
        save_strategy="no", gradient_checkpointing=False, disable_tqdm=True,
    )  # fmt: skip
    model = AutoModelForSequenceClassification.from_pretrained(base, num_labels=1)
    before = copy.deepcopy(model.score.weight)
    trainer = PairTrainer(model=model, args=config, train_dataset=rows.with_transform(draw), processor=processor)
    trainer.train()
    trainer.save_model(str(out))
    assert not torch.equal(before, trainer.model.score.weight)
    return trainer


def test_a_user_without_the_package_loads_it_with_trust_remote_code(scorer, tmp_path):
    scorer.save_pretrained(tmp_path)
    inputs = encode(scorer.processor, [picture(3)], [TEXTS[0]]).inputs
    torch.save(dict(inputs), tmp_path / "inputs.pt")
    code = f"""
import sys
sys.modules["protoscore"] = None  # not installed
import torch
from transformers import AutoModelForSequenceClassification
model = AutoModelForSequenceClassification.from_pretrained(r"{tmp_path}", trust_remote_code=True).eval()
with torch.inference_mode():
    print(repr(model(**torch.load(r"{tmp_path}/inputs.pt", weights_only=True)).logits.item()))
"""
    result = run("-c", code, cwd=tmp_path, env={"HF_MODULES_CACHE": str(tmp_path / "modules")})
    assert result.returncode == 0, result.stderr[-1500:]
    assert float(result.stdout.split()[-1]) == pytest.approx(scorer.score([picture(3)], [TEXTS[0]])[0], abs=1e-6)


def test_a_folder_without_a_checkpoint_and_an_unknown_id_are_refused(tmp_path):
    for source in (tmp_path, "nobody/no-such-model"):
        with pytest.raises(CheckpointError, match="no ProtoScore checkpoint"):
            ProtoScore.from_pretrained(source)


def test_importing_the_package_brings_no_heavy_library():
    code = (
        "import sys, protoscore, protoscore.cli; print([m for m in ('torch', 'transformers', 'datasets') if m in sys.modules])"
    )
    assert run("-c", code).stdout.strip() == "[]"


def test_the_shipped_checkpoint_is_small_safe_and_described():
    names = {path.name: path.stat().st_size for path in TINY.iterdir()}
    assert sum(names.values()) <= 8_000_000
    assert "model.safetensors" in names and not any(name.endswith((".bin", ".pt", ".pkl")) for name in names)
    config = json.loads((TINY / "config.json").read_text())
    assert config["architectures"] == ["Qwen3VLForSequenceClassification"] and config["model_type"] == "qwen3_vl"
    assert "auto_map" in config and (TINY / "classifier.py").is_file(), "loadable without the package, by trust_remote_code"
    assert "scenes" in (TINY / "README.md").read_text()
