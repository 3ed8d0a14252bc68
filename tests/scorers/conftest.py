"""Tiny checkpoints of the true architectures, random weights, written to folders in the published formats."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,'<>|_[]"
SIZE, PATCH = 32, 8


def randomise(model: torch.nn.Module, seed: int, **fixed: float) -> torch.nn.Module:
    """Weights that matter everywhere: also biases, positions and norms, which libraries start at 0 or 1."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            if name in fixed:
                weight.fill_(fixed[name])
            elif name.endswith("weight") and weight.ndim == 1:
                weight.copy_(1 + 0.2 * noise)
            else:
                weight.copy_(noise * (0.2 if weight.ndim < 2 else 0.6 * weight[0].numel() ** -0.5))
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_(0.2 * torch.randn(buffer.shape, generator=generator))
            elif name.endswith("running_var"):
                buffer.copy_(0.5 + torch.rand(buffer.shape, generator=generator))
    return model.eval()


def clip_tokenizer():
    from transformers import CLIPTokenizer
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    symbols = list(bytes_to_unicode().values())
    merges = [("t", "h"), ("th", "e</w>"), ("d", "o"), ("do", "g</w>"), ("i", "n</w>")]
    pieces = [*symbols, *(s + "</w>" for s in symbols), *map("".join, merges), "<|startoftext|>", "<|endoftext|>"]
    return CLIPTokenizer(vocab={piece: i for i, piece in enumerate(pieces)}, merges=merges, model_max_length=77)


def write_clip(folder: Path, activation: str = "quick_gelu", seed: int = 1, **text: int) -> Path:
    """A CLIP of 2 layers; ``activation`` is gelu in ViT-H/14, quick_gelu in OpenAI's."""
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel

    tokenizer = clip_tokenizer()
    shape = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, hidden_act=activation)
    ids = dict(bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
    config = CLIPConfig(
        projection_dim=12,
        text_config=shape | ids | dict(vocab_size=len(tokenizer), max_position_embeddings=77) | text,
        vision_config=shape | dict(image_size=SIZE, patch_size=PATCH),
    )
    randomise(CLIPModel(config), seed, logit_scale=3.0).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    CLIPImageProcessor(size={"shortest_edge": SIZE}, crop_size={"height": SIZE, "width": SIZE}).save_pretrained(folder)
    return folder


def write_align(folder: Path) -> Path:
    from transformers import AlignConfig, AlignModel, BertTokenizer, EfficientNetImageProcessor

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *("##" + letter for letter in LETTERS), "the", "dog"]
    tokenizer = BertTokenizer(vocab={piece: i for i, piece in enumerate(pieces)}, model_max_length=64)
    config = AlignConfig(
        projection_dim=16,
        text_config=dict(
            vocab_size=len(tokenizer), hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
            max_position_embeddings=64,
        ),
        vision_config=dict(
            image_size=SIZE, width_coefficient=1.0, depth_coefficient=1.0, in_channels=[32, 8], out_channels=[8, 16],
            kernel_sizes=[3, 3], strides=[1, 2], num_block_repeats=[1, 1], expand_ratios=[1, 2], hidden_dim=16,
            depthwise_padding=[],
        ),
    )  # fmt: skip
    randomise(AlignModel(config), 2).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    EfficientNetImageProcessor(
        size={"height": 40, "width": 40}, do_center_crop=True, crop_size={"height": SIZE, "width": SIZE}, resample=2,
        image_mean=[0.5] * 3, image_std=[0.5] * 3, include_top=False,
    ).save_pretrained(folder)  # fmt: skip
    return folder


def siglip_tokenizer():
    from tokenizers.processors import TemplateProcessing
    from transformers import Siglip2Tokenizer

    pieces = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "▁", *(f"<0x{i:02X}>" for i in range(256)), *LETTERS]
    tokenizer = Siglip2Tokenizer(vocab={piece: i for i, piece in enumerate(pieces)}, merges=[])
    closing = TemplateProcessing(single="$A <eos>", special_tokens=[("<eos>", 1)])
    tokenizer.backend_tokenizer.post_processor = closing
    return tokenizer


def write_siglip2(folder: Path, naflex: bool = False) -> Path:
    """Fixed resolution (a SigLIP model) or NaFlex (a SigLIP 2 model)."""
    from transformers import (
        Siglip2Config,
        Siglip2ImageProcessor,
        Siglip2Model,
        SiglipConfig,
        SiglipImageProcessor,
        SiglipModel,
    )

    tokenizer = siglip_tokenizer()
    shape = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2)
    ids = dict(bos_token_id=2, eos_token_id=1, pad_token_id=0)
    text = shape | ids | dict(vocab_size=len(tokenizer), max_position_embeddings=64, projection_size=16)
    if naflex:
        config = Siglip2Config(text_config=text, vision_config=shape | dict(patch_size=PATCH, num_patches=16))
        model, pixels = Siglip2Model(config), Siglip2ImageProcessor(patch_size=PATCH, max_num_patches=16)
    else:
        config = SiglipConfig(text_config=text, vision_config=shape | dict(image_size=SIZE, patch_size=PATCH))
        model, pixels = SiglipModel(config), SiglipImageProcessor(size={"height": SIZE, "width": SIZE}, resample=2)
    randomise(model, 3, logit_scale=2.0, logit_bias=-1.5).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    pixels.save_pretrained(folder)
    return folder


HPS_SHAPE = {
    "embed_dim": 12,
    "vision_cfg": {"image_size": SIZE, "layers": 2, "width": 16, "head_width": 8, "patch_size": PATCH},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 2},
}


def write_hps(folder: Path) -> Path:
    """Two versions with other weights, as the authors publish them: ``{"state_dict": ...}`` in a .pt file."""
    import open_clip

    folder.mkdir(parents=True, exist_ok=True)
    for seed, file in enumerate(("HPS_v2_compressed.pt", "HPS_v2.1_compressed.pt")):
        model = randomise(open_clip.CLIP(**HPS_SHAPE), 4 + seed)
        torch.save({"state_dict": model.state_dict()}, folder / file)
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": HPS_SHAPE}))
    return folder


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory) -> dict[str, Path]:
    """A folder for each two-tower metric."""
    root = tmp_path_factory.mktemp("towers")
    return {
        "clip_score": write_clip(root / "clip"),
        "align": write_align(root / "align"),
        "pick_score": write_clip(root / "pick", activation="gelu", seed=6),
        "siglip2_score": write_siglip2(root / "siglip"),
        "siglip2_naflex": write_siglip2(root / "naflex", naflex=True),
        "hps_v2": write_hps(root / "hps"),
    }


def pictures() -> list[Image.Image]:
    """Structured pictures of all shapes and modes."""
    rng = np.random.default_rng(5)
    grain = Image.fromarray(rng.integers(0, 256, (6, 9, 3), dtype=np.uint8)).resize((90, 60), Image.Resampling.BICUBIC)
    alpha = grain.convert("RGBA")
    alpha.putalpha(Image.linear_gradient("L").resize(grain.size))
    return [
        grain,
        grain.rotate(90, expand=True).resize((31, 77)),
        grain.resize((SIZE, SIZE)),
        grain.resize((SIZE, 20)),
        grain.convert("L"),
        grain.convert("P"),
        alpha,
        grain.convert("1"),
        Image.new("RGB", (1, 1), "orange"),
        grain.resize((400, 31)),
    ]


TEXTS = [
    "the dog in a hat",
    "",
    "dog",
    "A " + "very long text about the dog, " * 12,
    "x" * 75,
    "a dog <|endoftext|> in [SEP] the <eos> sun <end_of_text> now",
    "Ünïcode 犬 & <b>tags</b>",
]


def grid() -> tuple[list[Image.Image], list[str]]:
    """Row-wise pairs: each picture with two or three of the texts."""
    images = pictures()
    return [images[i % len(images)] for i in range(25)], [TEXTS[i % len(TEXTS)] for i in range(25)]
