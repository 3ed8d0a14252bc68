"""The two-tower metrics against plain forward passes, on hostile input, and in what they say when weights are not right."""

from __future__ import annotations

import csv
import json
import math
import random
import shutil
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from protoscore.catalog import load, names
from protoscore.errors import CheckpointError, ConfigError, MissingExtra, UnknownName
from protoscore.scorers import facts_of, split_variant
from protoscore.scoring.store import scorer_key
from tests.conftest import ROOT
from tests.scorers import plain
from tests.scorers.conftest import SIZE, TEXTS, grid, pictures, write_clip

TWO_TOWER = ["clip_score", "align", "pick_score", "siglip2_score", "siglip2_naflex", "hps_v2"]
SPECIAL = ["<|endoftext|>", "<|ENDOFTEXT|>", "<end_of_text>", "&lt;end_of_text&gt;", "[SEP]", "<eos>", "<EOS>", "<pad>"]
REAL = ["clip_score", "clip_score:cosine", "align", "pick_score", "siglip2_score", "hps_v2", "hps_v2:v2.1"]
T2I = ROOT.parent / "shared" / "data" / "t2i"


@pytest.fixture(scope="session")
def scorers(checkpoints):
    return {name: load("scorers", f"{name.replace('naflex', 'score')}:{folder}") for name, folder in checkpoints.items()}


def values(scores) -> list[float]:
    return [score.value for score in scores]


def expected_clip(folder, image, text):
    pixels = plain.pixels_of(plain.shortest_side(image, SIZE), plain.CLIP_MEAN, plain.CLIP_STD)
    ids = plain.clip_ids("A photo depicts " + text)
    return 2.5 * max(0.0, plain.cosine(*plain.clip_vectors(folder, pixels, ids, "quick_gelu")))


def expected_pick(folder, image, text):
    pixels = plain.pixels_of(plain.shortest_side(image, SIZE), plain.CLIP_MEAN, plain.CLIP_STD)
    cosine = plain.cosine(*plain.clip_vectors(folder, pixels, plain.clip_ids(text), "gelu"))
    return math.exp(load_file(folder / "model.safetensors")["logit_scale"].item()) * cosine


@cache
def align_model(folder):
    from transformers import AlignModel

    return AlignModel.from_pretrained(folder).eval()


def expected_align(folder, image, text):
    model = align_model(folder)
    square = image.convert("RGB").resize((40, 40), Image.Resampling.BILINEAR).crop((4, 4, 36, 36))
    vocab = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    ids = torch.tensor([plain.bert_ids(text, vocab)])
    with torch.no_grad():
        body = model.vision_model(plain.pixels_of(square, 0.5, 0.5)[None]).last_hidden_state
        first = model.text_model(ids).last_hidden_state[0, 0]
        w = model.state_dict()
        return plain.cosine(body[0].mean((1, 2)), plain.linear(first, w, "text_projection"))


def expected_siglip(folder, image, text, naflex=False):
    rows, columns = plain.naflex_grid(image) if naflex else (4, 4)
    sized = image.convert("RGB").resize((8 * columns, 8 * rows), Image.Resampling.BILINEAR)
    vocab = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    cosine = plain.cosine(*plain.siglip_vectors(folder, plain.pixels_of(sized, 0.5, 0.5), plain.siglip_ids(text, vocab)))
    return 1 / (1 + math.exp(-(math.exp(2.0) * cosine - 1.5)))


def expected_hps(folder, image, text, file="HPS_v2_compressed.pt", antialias=True):
    pixels, ids = plain.hps_pixels(image, SIZE, antialias), plain.hps_ids(text)
    return plain.cosine(*plain.clip_vectors(plain.hps_weights(folder / file), pixels, ids, "gelu"))


EXPECTED = {
    "clip_score": expected_clip,
    "align": expected_align,
    "pick_score": expected_pick,
    "siglip2_score": expected_siglip,
    "siglip2_naflex": lambda *pair: expected_siglip(*pair, naflex=True),
    "hps_v2": expected_hps,
}


@pytest.mark.parametrize("name", TWO_TOWER)
def test_scores_equal_a_plain_forward_pass(name, scorers, checkpoints):
    images, texts = grid()
    got = values(scorers[name].score(images, texts))
    wanted = [EXPECTED[name](checkpoints[name], *pair) for pair in zip(images, texts)]
    scale = max(1.0, max(map(abs, wanted)))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5 * scale)
    assert np.std(got) > 1e-3  # they do depend on the pair


@pytest.mark.parametrize("name", TWO_TOWER)
def test_a_pair_scores_the_same_in_any_company(name, scorers):
    scorer = scorers[name]
    images, texts = grid()
    whole = values(scorer.score(images, texts))
    order = random.Random(0).sample(range(len(texts)), len(texts))
    shuffled = values(scorer.score([images[i] for i in order], [texts[i] for i in order]))
    alone = [scorer.score([image], [text])[0].value for image, text in zip(images, texts)]
    by_seven = [v for i in range(0, 25, 7) for v in values(scorer.score(images[i : i + 7], texts[i : i + 7]))]
    scale = max(1.0, max(map(abs, whole)))
    for other in (alone, by_seven, [shuffled[order.index(i)] for i in range(len(order))]):
        np.testing.assert_allclose(other, whole, rtol=0, atol=1e-6 * scale)
    assert whole == values(scorer.score(images, texts))


@pytest.mark.parametrize("name", TWO_TOWER)
def test_bounds_direction_and_facts_hold(name, scorers):
    scorer = scorers[name]
    facts = scorer.facts
    assert all(facts.low <= value <= facts.high for value in values(scorer.score(*grid())))
    assert facts.higher_is_better and facts.hub_id and facts.paper.startswith("arXiv ") and not facts.gated
    assert 0.5 < facts.memory_gb < 5
    assert scorer.parameters["dtype"] == "float32" and scorer.parameters["resize"] and scorer.parameters["rule"]
    json.dumps(scorer.parameters)


@pytest.mark.parametrize("name", TWO_TOWER)
def test_long_texts_are_cut_at_the_end_and_flagged(name, scorers):
    """The closing token survives a cut (it is where CLIP reads): what lies beyond the limit is the only thing lost."""
    scorer = scorers[name]
    image = pictures()[0]
    limit = {"align": 62, "siglip2_score": 63, "siglip2_naflex": 63}.get(name, 75)
    room = limit - (len("Aphotodepicts") if name == "clip_score" else 0)
    fits, over, other = (" ".join(n * ["7"]) for n in (room, room + 1, room + 200))
    if name.startswith("siglip"):
        fits, over, other = "7" * room, "7" * (room + 1), "7" * (room + 200)
    scores = scorer.score([image] * 3, [fits, over, other])
    assert [score.truncated for score in scores] == [False, True, True]
    assert len({round(score.value, 6) for score in scores}) == 1
    beyond = scorer.score([image] * 2, [over + " 8", fits[:-1] + "8"])
    assert round(beyond[0].value, 6) == round(scores[0].value, 6) != round(beyond[1].value, 6)


@pytest.mark.parametrize("name", TWO_TOWER)
@pytest.mark.parametrize(
    "token", ["<|endoftext|>", "<|ENDOFTEXT|>", "<end_of_text>", "&lt;end_of_text&gt;", "[SEP]", "<eos>", "<EOS>", "<pad>"]
)
def test_a_special_token_spelled_out_hides_nothing_of_a_text(name, token, scorers):
    image = pictures()[0]
    a, b, c = values(scorers[name].score([image] * 3, [f"dog {token} in the sun", f"dog {token} on a hat", "dog"]))
    assert abs(a - b) > 1e-6 and abs(a - c) > 1e-6


@pytest.mark.parametrize("name", TWO_TOWER)
@pytest.mark.parametrize("size", [(1, 1), (3, 20_000), (20_000, 2), (1, 5_000_000)])
def test_pictures_of_any_shape_are_scored(name, size, scorers):
    (score,) = scorers[name].score([Image.new("RGB", size, "teal")], ["dog"])
    assert math.isfinite(score.value)


@pytest.mark.parametrize("name", TWO_TOWER)
def test_endless_texts_are_scored(name, scorers):
    texts = ["z" * 200_000, "dog " * 50_000, "\n" * 100_000, "\0\ud83d".encode("utf-8", "replace").decode()]
    scores = scorers[name].score(pictures()[:1] * 4, texts)
    assert all(math.isfinite(score.value) for score in scores) and scores[1].truncated and not scores[3].truncated


@pytest.mark.parametrize("name", TWO_TOWER)
def test_each_picture_and_text_is_encoded_once(name, scorers, monkeypatch):
    scorer, seen = scorers[name], []
    for method in ("images", "texts"):
        original = getattr(scorer._towers, method)
        monkeypatch.setattr(scorer._towers, method, lambda items, original=original: seen.append(len(items)) or original(items))
    images = pictures()[:3]
    scorer.score(images * 4, [text for text in TEXTS[:4] for _ in images])
    assert seen == [3, 4]


def test_empty_and_unequal_input(scorers):
    assert scorers["clip_score"].score([], []) == []
    with pytest.raises(ValueError, match="2 images and 1 texts"):
        scorers["clip_score"].score(pictures()[:2], ["dog"])


def test_variants_of_clip_score(checkpoints):
    folder, (images, texts) = checkpoints["clip_score"], grid()
    forms = {v: load("scorers", f"clip_score:{v}:{folder}") for v in ("paper", "torchmetrics", "cosine")}
    got = {variant: np.array(values(scorer.score(images, texts))) for variant, scorer in forms.items()}
    np.testing.assert_allclose(got["torchmetrics"], 100 * got["cosine"], atol=1e-9)
    assert (got["paper"] != 2.5 * got["cosine"]).any()  # it has a prefix
    assert forms["cosine"].name == f"clip_score:cosine:{folder}" and forms["cosine"].facts.low == -1
    assert forms["torchmetrics"].facts.hub_id == "openai/clip-vit-large-patch14" and forms["torchmetrics"].facts.high == 100
    keys = {scorer_key("same", s.revision, s.parameters) for s in forms.values()}
    assert len(keys) == 3
    with pytest.raises(UnknownName, match="did you mean 'paper'"):
        load("scorers", "clip_score", variant="papers")


def test_negative_cosines_are_clamped_one_by_one(tmp_path):
    """torchmetrics clamps the mean of a dataset only; the paper clamps each pair."""
    folder = write_clip(tmp_path, seed=11)
    weights = load_file(folder / "model.safetensors")
    weights["visual_projection.weight"] *= -1
    flipped = shutil.copytree(folder, tmp_path / "flipped")
    save_file(weights, flipped / "model.safetensors", {"format": "pt"})
    images, texts = grid()
    one, two = (np.array(values(load("scorers", f"clip_score:{f}").score(images, texts))) for f in (folder, flipped))
    assert ((one == 0) ^ (two == 0)).all() and (one + two).min() > 0


def test_versions_of_hps(checkpoints):
    folder, (images, texts) = checkpoints["hps_v2"], grid()
    new = load("scorers", f"hps_v2:v2.1:{folder}")
    wanted = [expected_hps(folder, *pair, file="HPS_v2.1_compressed.pt") for pair in zip(images, texts)]
    np.testing.assert_allclose(values(new.score(images, texts)), wanted, atol=1e-5)
    old = load("scorers", f"hps_v2:{folder}", antialias=False)
    wanted = [expected_hps(folder, *pair, antialias=False) for pair in zip(images, texts)]
    np.testing.assert_allclose(values(old.score(images, texts)), wanted, atol=1e-5)
    assert new.revision != old.revision and new.parameters["version"] == "v2.1" and old.parameters["antialias"] is False


def test_siglip_reads_lower_case_whatever_its_tokenizer_does(checkpoints, scorers, tmp_path):
    """Published SigLIP 2 folders announce Gemma's tokenizer, which keeps capitals; the model was trained without."""
    folder = shutil.copytree(checkpoints["siglip2_score"], tmp_path / "gemma")
    rules = json.loads((folder / "tokenizer.json").read_text())
    rules["normalizer"] = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    (folder / "tokenizer.json").write_text(json.dumps(rules))
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    scorer, images = load("scorers", f"siglip2_score:{folder}"), pictures()[:1]
    assert scorer._towers.tokenizer("A").input_ids != scorer._towers.tokenizer("a").input_ids
    upper, lower = (values(scorer.score(images, [text])) for text in ("THE Dog", "the dog"))
    assert upper == lower == values(scorers["siglip2_score"].score(images, ["the dog"]))


def test_source_and_variant_are_read_apart():
    forms = ("paper", "cosine")
    assert split_variant(None, forms) == ("paper", None)
    assert split_variant("cosine", forms) == ("cosine", None)
    assert split_variant("org/name", forms) == ("paper", "org/name")
    assert split_variant("cosine:a:b", forms) == ("cosine", "a:b")
    assert split_variant("paper", forms, "cosine") == ("cosine", "paper")


@pytest.mark.parametrize("name", TWO_TOWER)
def test_half_precision_is_near_and_another_key(name, checkpoints, scorers):
    spec = f"{name.replace('naflex', 'score')}:{checkpoints[name]}"
    half = load("scorers", spec, dtype="bfloat16", device="cpu")
    images, texts = grid()
    a, b = values(scorers[name].score(images, texts)), values(half.score(images, texts))
    assert 0 < np.abs(np.subtract(a, b)).max() < 0.05 * max(1, np.abs(a).max())
    assert half.parameters != scorers[name].parameters and half.revision == scorers[name].revision


def test_bad_options_are_named(checkpoints):
    spec = f"clip_score:{checkpoints['clip_score']}"
    with pytest.raises(ConfigError, match="'float8' is none of float32"):
        load("scorers", spec, dtype="float8")
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="device 'cuda' cannot be used here"):
            load("scorers", spec, device="cuda")


def tampered(folder: Path, target: Path, change) -> Path:
    shutil.copytree(folder, target)
    if (path := target / "model.safetensors").is_file():
        save_file(change(load_file(path)), path, {"format": "pt"})
    else:
        state = torch.load(path := target / "HPS_v2_compressed.pt", weights_only=True)["state_dict"]
        torch.save({"state_dict": change(state)}, path)
    return target


@pytest.mark.parametrize("name", TWO_TOWER)
def test_missing_left_over_and_misshapen_weights_are_refused_by_name(name, checkpoints, tmp_path):
    key = "logit_scale" if name not in ("align",) else "text_projection.bias"
    changes = {
        "missing keys": lambda w: {k: v for k, v in w.items() if k != key},
        "unexpected keys": lambda w: w | {"blip.extra": torch.zeros(2)},
        "mismatched keys": lambda w: w | {key: torch.zeros(3, 5)},
    }
    for what, change in changes.items():
        folder = tampered(checkpoints[name], tmp_path / what.split()[0], change)
        named = "blip.extra" if what == "unexpected keys" else key
        with pytest.raises(CheckpointError, match=f"{what}: {named}"):
            load("scorers", f"{name.replace('naflex', 'score')}:{folder}")


def test_old_checkpoints_load(checkpoints, tmp_path):
    """Published CLIPs carry position ids; some repositories have a .bin only."""
    folder, (images, texts) = checkpoints["clip_score"], grid()
    wanted = values(load("scorers", f"clip_score:{folder}").score(images, texts))
    ids = {f"{t}_model.embeddings.position_ids": torch.arange(n)[None] for t, n in (("text", 77), ("vision", 17))}
    old = tampered(folder, tmp_path / "old", lambda w: w | ids)
    assert values(load("scorers", f"clip_score:{old}").score(images, texts)) == wanted
    torch.save(load_file(old / "model.safetensors"), old / "pytorch_model.bin")
    (old / "model.safetensors").unlink()
    assert values(load("scorers", f"clip_score:{old}").score(images, texts)) == wanted


class Trap:
    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (Path.touch, (Path(self.path),))


@pytest.mark.parametrize(("name", "file"), [("clip_score", "pytorch_model.bin"), ("hps_v2", "HPS_v2_compressed.pt")])
def test_a_pickle_is_not_run(name, file, checkpoints, tmp_path):
    folder = shutil.copytree(checkpoints[name], tmp_path / "trap")
    (folder / "model.safetensors").unlink(missing_ok=True)
    torch.save({"state_dict": {"logit_scale": Trap(tmp_path / "sprung")}}, folder / file)
    with pytest.raises(CheckpointError) as caught:
        load("scorers", f"{name}:{folder}")
    assert not (tmp_path / "sprung").exists() and "\n" not in str(caught.value)


def test_what_is_no_checkpoint_says_so_in_one_line(checkpoints, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "HPS_v2_compressed.pt").write_bytes(b"not a file of tensors")
    wrong = shutil.copytree(checkpoints["clip_score"], tmp_path / "wrong")
    config = json.loads((wrong / "config.json").read_text())
    config["text_config"]["eos_token_id"] = 5
    (wrong / "config.json").write_text(json.dumps(config))
    bare = shutil.copytree(checkpoints["clip_score"], tmp_path / "bare")
    (bare / "preprocessor_config.json").unlink()
    cases = {
        f"clip_score:{tmp_path}/nowhere": "there is no folder",
        f"clip_score:{tmp_path}/empty": "holds no .*safetensors",
        f"clip_score:{checkpoints['align']}": "'align' model; this metric needs clip",
        f"siglip2_score:{checkpoints['clip_score']}": "needs siglip or siglip2",
        f"clip_score:{wrong}": "close a text with different tokens",
        f"clip_score:{bare}": "misses its configuration, tokenizer or image processor",
        f"hps_v2:{tmp_path}/bad": "holds no plain tensors",
        f"hps_v2:{checkpoints['clip_score']}": "holds no HPS_v2_compressed.pt",
        "clip_score:some one": "neither a folder nor a Hub id",
    }
    for spec, message in cases.items():
        with pytest.raises(CheckpointError, match=message) as caught:
            load("scorers", spec)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["clip_score", "align", "pick_score", "siglip2_score", "hps_v2"])
def test_weights_that_are_not_here_are_named_with_the_command(name, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    facts = facts_of(import_module(f"protoscore.scorers.{name}"))
    with pytest.raises(CheckpointError, match=f"type: hf download {facts.hub_id}$"):
        load("scorers", name)


def cached(cache: Path, hub_id: str, folder: Path, commit: str) -> None:
    """Lay a folder into a Hub cache, as a download would."""
    repo = cache / f"models--{hub_id.replace('/', '--')}"
    shutil.copytree(folder, repo / "snapshots" / commit)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(commit)


def test_cached_weights_are_used_and_their_commit_is_the_revision(checkpoints, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    weights = shutil.copytree(checkpoints["pick_score"], tmp_path / "weights")
    for path in [*weights.glob("tokenizer*"), weights / "preprocessor_config.json"]:
        path.unlink()  # as published: they lie in another repository
    cached(tmp_path, "yuvalkirstain/PickScore_v1", weights, "a" * 40)
    cached(tmp_path, "laion/CLIP-ViT-H-14-laion2B-s32B-b79K", checkpoints["pick_score"], "b" * 40)
    cached(tmp_path, "xswu/HPSv2", checkpoints["hps_v2"], "c" * 40)
    images, texts = grid()
    for name, commit in (("pick_score", "a" * 40), ("hps_v2", "c" * 40)):
        scorer = load("scorers", name)
        assert scorer.revision == commit and scorer.name == name
        assert values(scorer.score(images, texts)) == values(
            load("scorers", f"{name}:{checkpoints[name]}").score(images, texts)
        )
    with pytest.raises(CheckpointError, match="hf download xswu/HPSv2 --revision v9"):
        load("scorers", "hps_v2", revision="v9")


def test_the_digest_follows_weights_and_processing(checkpoints, tmp_path):
    folder = checkpoints["clip_score"]
    first = load("scorers", f"clip_score:{folder}")
    other = load("scorers", f"clip_score:{tampered(folder, tmp_path / 'w', lambda w: w | {'logit_scale': torch.tensor(1.0)})}")
    assert other.revision != first.revision and other.parameters == first.parameters
    cropped = shutil.copytree(folder, tmp_path / "crop")
    rules = json.loads((cropped / "preprocessor_config.json").read_text())
    (cropped / "preprocessor_config.json").write_text(json.dumps(rules | {"image_mean": [0.5, 0.5, 0.5]}))
    again = load("scorers", f"clip_score:{cropped}")
    assert again.revision != first.revision and again.parameters != first.parameters


def test_missing_libraries_answer_with_the_pip_line(monkeypatch):
    for name, library in (("hps_v2", "open_clip"), ("clip_score", "transformers")):
        for module in [m for m in sys.modules if m.startswith("protoscore.modeling.")]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(MissingExtra, match=r"pip install 'protoscore\[models\]'"):
            load("scorers", name)


def test_facts_of_every_scorer():
    for name in names("scorers"):
        facts = facts_of(import_module(f"protoscore.scorers.{name}"))
        assert facts.question.endswith("?") and len(facts.question) < 100
        assert (facts.low is None or facts.high is None) or facts.low <= facts.high
        assert facts.hub_id is None or facts.hub_id.count("/") == 1
        assert facts.memory_gb is None or 0 < facts.memory_gb < 200
        if "Table 3" in facts.known_bias:
            assert "arXiv 2601.04946" in facts.known_bias


def test_torchmetrics_agrees(checkpoints):
    """Same weights, same pairs, texts short enough not to lose their closing token there.

    Their release crashes on transformers 5, whose features come wrapped (torchmetrics issue 3428): unwrapped here.
    """
    theirs = pytest.importorskip("torchmetrics.functional.multimodal.clip_score")
    from transformers import CLIPModel, CLIPProcessor

    class Unwrapped(CLIPModel):
        def get_image_features(self, *args, **options):
            return super().get_image_features(*args, **options).pooler_output

        def get_text_features(self, *args, **options):
            return super().get_text_features(*args, **options).pooler_output

    folder = str(checkpoints["clip_score"])
    images, texts = [image.convert("RGB") for image in pictures()], [TEXTS[i % 3] for i in range(len(pictures()))]
    tensors = [torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1) for image in images]
    processor = CLIPProcessor.from_pretrained(folder, backend="pil")
    scores, _ = theirs._clip_score_update(tensors, texts, Unwrapped.from_pretrained(folder).eval(), processor)
    mine = values(load("scorers", f"clip_score:torchmetrics:{folder}").score(images, texts))
    np.testing.assert_allclose(mine, scores.tolist(), rtol=0, atol=1e-4)


def real_pairs() -> tuple[list[Image.Image], list[str], list[dict]]:
    if not T2I.is_dir():
        pytest.skip(f"no real pictures at {T2I}")
    with (T2I / "prompts.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [Image.open(T2I / row["file"]) for row in rows], [row["prompt"] for row in rows], rows


@pytest.mark.parametrize("name", TWO_TOWER)
def test_real_pictures(name, scorers, checkpoints):
    images, texts, _ = real_pairs()
    got = values(scorers[name].score(images, texts))
    wanted = [EXPECTED[name](checkpoints[name], *pair) for pair in zip(images, texts)]
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5 * max(1.0, max(map(abs, wanted))))


def real(name: str):
    try:
        return load("scorers", name)
    except CheckpointError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    "name", ["clip_score", "clip_score:cosine", "align", "pick_score", "siglip2_score", "hps_v2", "hps_v2:v2.1"]
)
def test_published_weights_tell_prompts_apart(name):
    """Runs where the weights are in the cache, and was not run with them yet. No score of these pictures is published for
    these metrics: most pictures must prefer their own prompt to the three others (a coin gets 2.75 of 11).
    """
    scorer = real(name)
    images, texts, _ = real_pairs()
    prompts = list(dict.fromkeys(texts))
    scores = np.reshape(values(scorer.score([i for i in images for _ in prompts], prompts * len(images))), (-1, len(prompts)))
    assert sum(prompts[best] == own for best, own in zip(scores.argmax(1), texts)) >= 9
    assert (scores >= scorer.facts.low).all() and (scores <= scorer.facts.high).all()
    typical = {"hps_v2": (0.15, 0.45), "pick_score": (14, 30)}.get(name.partition(":")[0])
    if typical:
        assert typical[0] < scores.max(1).mean() < typical[1]
