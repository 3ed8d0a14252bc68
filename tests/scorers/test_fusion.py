"""BLIP-2 and ImageReward: where picture and text meet in a network. Each against the same network in plain tensor operations,
on the stored weights, one pair at a time, unpadded, with a preprocessing and a tokeniser of its own."""

from __future__ import annotations

import csv
import itertools
import json
import pickle
import re
import shutil
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import torch
from huggingface_hub import try_to_load_from_cache
from PIL import Image
from safetensors.torch import load_file, save_file

from protoscore.errors import CheckpointError
from protoscore.modeling import image_reward
from protoscore.modeling.pixels import cropped, padded, stretched
from protoscore.scorers import blip2_itc, blip2_itm
from protoscore.scorers import image_reward as image_reward_scorer
from tests.conftest import ROOT
from tests.scorers.conftest import LETTERS, TEXTS, grid, pictures, randomise

T2I = ROOT.parent / "shared" / "data" / "t2i"
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *("##" + letter for letter in LETTERS), "the", "dog", "##og"]
MEAN, STD = torch.tensor([0.48145466, 0.4578275, 0.40821073]), torch.tensor([0.26862954, 0.26130258, 0.27577711])
SCORERS = {"blip2_itc": blip2_itc, "blip2_itm": blip2_itm, "image_reward": image_reward_scorer}


# The checkpoints


def bert_tokenizer():
    from transformers import BertTokenizer

    return BertTokenizer(vocab={piece: i for i, piece in enumerate(PIECES)})


def write_blip2(folder: Path) -> Path:
    from transformers import Blip2Config, Blip2ForImageTextRetrieval

    config = Blip2Config(
        vision_config=dict(hidden_size=24, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2, image_size=28,
                           patch_size=14),
        qformer_config=dict(vocab_size=len(PIECES), hidden_size=16, intermediate_size=32, num_hidden_layers=3,
                            num_attention_heads=2, encoder_hidden_size=24, use_qformer_text_input=True,
                            max_position_embeddings=64),
        num_query_tokens=4, image_text_hidden_size=8,
    )  # fmt: skip
    randomise(Blip2ForImageTextRetrieval(config), 11).save_pretrained(folder)
    bert_tokenizer().save_pretrained(folder)
    return folder


def reward_weights(width: int = 128, hidden: int = 32) -> dict[str, torch.Tensor]:
    """Random weights under the names and in the shapes of the authors' file, at tiny size. Written down without our code."""
    shapes = {"cls_token": (1, 1, width), "pos_embed": (1, 5, width), "patch_embed.proj.weight": (width, 3, 16, 16)}
    shapes |= {"patch_embed.proj.bias": (width,), "norm.weight": (width,), "norm.bias": (width,)}
    for n in range(2):
        linear = {"attn.qkv": (3 * width, width), "attn.proj": (width, width), "mlp.fc1": (64, width), "mlp.fc2": (width, 64)}
        for name, shape in linear.items():
            shapes |= {f"blocks.{n}.{name}.weight": shape, f"blocks.{n}.{name}.bias": shape[:1]}
        shapes |= {f"blocks.{n}.norm{i}.{part}": (width,) for i in (1, 2) for part in ("weight", "bias")}
    shapes = {f"blip.visual_encoder.{name}": shape for name, shape in shapes.items()}
    at = "blip.text_encoder."
    shapes |= {at + "embeddings.word_embeddings.weight": (len(PIECES), hidden)}
    shapes |= {at + "embeddings.position_embeddings.weight": (64, hidden)}
    norms, linears = [at + "embeddings.LayerNorm"], {}
    for n in range(2):
        layer = f"{at}encoder.layer.{n}."
        for block, inner in (("attention", hidden), ("crossattention", width)):
            linears[f"{layer}{block}.self.query"] = (hidden, hidden)
            linears[f"{layer}{block}.self.key"] = linears[f"{layer}{block}.self.value"] = (hidden, inner)
            linears[f"{layer}{block}.output.dense"] = (hidden, hidden)
            norms.append(f"{layer}{block}.output.LayerNorm")
        linears |= {f"{layer}intermediate.dense": (64, hidden), f"{layer}output.dense": (hidden, 64)}
        norms.append(f"{layer}output.LayerNorm")
    sizes = [hidden, 48, 32, 16, 8, 1]
    linears |= {f"mlp.layers.{i}": (b, a) for i, a, b in zip((0, 2, 4, 6, 7), sizes, sizes[1:])}
    linears |= {"blip.vision_proj": (16, width), "blip.text_proj": (16, hidden)}  # in the file, of no use
    shapes |= {f"{name}.{part}": (hidden,) for name in norms for part in ("weight", "bias")}
    shapes |= {f"{name}.{part}": shape for name, s in linears.items() for part, shape in (("weight", s), ("bias", s[:1]))}
    generator = torch.Generator().manual_seed(3)
    state = {}
    for name, shape in shapes.items():
        noise = torch.randn(shape, generator=generator)
        if len(shape) > 1:
            state[name] = noise * 0.6 * max(1, noise[0].numel()) ** -0.5
        else:
            state[name] = 0.2 * noise + ("norm" in name.lower() and name.endswith("weight"))
    return state | {at + "embeddings.position_ids": torch.arange(64)[None]}


MED_CONFIG = {
    "architectures": ["BertModel"], "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
    "hidden_size": 32, "initializer_range": 0.02, "intermediate_size": 64, "layer_norm_eps": 1e-12,
    "max_position_embeddings": 64, "model_type": "bert", "num_attention_heads": 4,
    "num_hidden_layers": 2, "pad_token_id": 0, "type_vocab_size": 2,
    "vocab_size": len(PIECES), "encoder_width": 768, "add_cross_attention": True,
}  # fmt: skip


def write_reward(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    torch.save(reward_weights(), folder / "ImageReward.pt")
    (folder / "med_config.json").write_text(json.dumps(MED_CONFIG))
    bert_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("fusion")
    blip2 = write_blip2(root / "blip2")
    return {"blip2_itc": blip2, "blip2_itm": blip2, "image_reward": write_reward(root / "reward")}


# The same networks in plain operations


def words(text: str, limit: int) -> tuple[list[int], bool]:
    """WordPiece, greedy: [CLS], pieces, [SEP]; and whether pieces fell off."""
    text = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    ids = []
    for word in re.findall(r"[a-z0-9ß]+|[^\sa-z0-9]", text):
        start, found = 0, []
        while start < len(word):
            ends = [end for end in range(len(word), start, -1) if ("##" * (start > 0) + word[start:end]) in PIECES]
            if not ends:
                found = [1]  # [UNK] for the whole word
                break
            found.append(PIECES.index("##" * (start > 0) + word[start : ends[0]]))
            start = ends[0]
        ids += found
    return [2, *ids[: limit - 2], 3], len(ids) > limit - 2


def pixels(image: Image.Image) -> torch.Tensor:
    return ((torch.from_numpy(np.asarray(image, dtype=np.float32)) / 255 - MEAN) / STD).permute(2, 0, 1)


def middle(image: Image.Image, side: int) -> Image.Image:
    """Shortest side to ``side`` and the middle of the other, half pixels rounded to even."""
    image = image.convert("RGB")
    w, h = (int(side * length / min(image.size)) for length in image.size)
    left, top = round((w - side) / 2), round((h - side) / 2)
    return image.resize((w, h), Image.Resampling.BICUBIC).crop((left, top, left + side, top + side))


def linear(x, w, name):
    return x @ w[name + ".weight"].T + w[name + ".bias"]


def norm(x, w, name, eps):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt() * w[name + ".weight"] + w[name + ".bias"]


def gelu(x):
    return 0.5 * x * (1 + torch.erf(x / 2**0.5))


def attend(q, k, v, heads):
    q, k, v = (x.unflatten(-1, (heads, -1)).transpose(0, 1) for x in (q, k, v))
    return ((q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v).transpose(0, 1).flatten(1)


def vit(x, w, layers, names, heads=2):
    """A pre-norm ViT after its embeddings; ``names``: of norms, qkv, projection and the last norm."""
    at, norm1, norm2, qkv, out, last = names
    for n in range(layers):
        h = norm(x, w, f"{at}.{n}.{norm1}", 1e-6)
        x = x + linear(attend(*linear(h, w, f"{at}.{n}.{qkv}").chunk(3, dim=-1), heads), w, f"{at}.{n}.{out}")
        h = norm(x, w, f"{at}.{n}.{norm2}", 1e-6)
        x = x + linear(gelu(linear(h, w, f"{at}.{n}.mlp.fc1")), w, f"{at}.{n}.mlp.fc2")
    return norm(x, w, last, 1e-6)


def embed(x, kernel, bias, first, positions):
    p = kernel.shape[-1]
    cut = x.unfold(1, p, p).unfold(2, p, p).permute(1, 2, 0, 3, 4).flatten(2).flatten(0, 1)
    return torch.cat([first.reshape(1, -1), cut @ kernel.flatten(1).T + bias]) + positions[0]


def block(x, other, w, at, inner, heads):
    """Attention of BERT with its residual: ``x`` asks, ``other`` answers."""
    parts = (linear(y, w, f"{at}.{inner}.{name}") for y, name in ((x, "query"), (other, "key"), (other, "value")))
    return norm(x + linear(attend(*parts, heads), w, f"{at}.output.dense"), w, f"{at}.output.LayerNorm", 1e-12)


def forward(x, w, at, suffix=""):
    h = linear(gelu(linear(x, w, f"{at}.intermediate{suffix}.dense")), w, f"{at}.output{suffix}.dense")
    return norm(x + h, w, f"{at}.output{suffix}.LayerNorm", 1e-12)


def plain_reward(w, image, text):
    at = "blip.visual_encoder."
    x = embed(pixels(middle(image, 32)), w[at + "patch_embed.proj.weight"], w[at + "patch_embed.proj.bias"],
              w[at + "cls_token"], w[at + "pos_embed"])  # fmt: skip
    x = vit(x, w, 2, (at + "blocks", "norm1", "norm2", "attn.qkv", "attn.proj", at + "norm"))
    ids, cut = words(text, 35)
    at = "blip.text_encoder."
    y = w[at + "embeddings.word_embeddings.weight"][ids] + w[at + "embeddings.position_embeddings.weight"][: len(ids)]
    y = norm(y, w, at + "embeddings.LayerNorm", 1e-12)
    for n in range(2):
        layer = f"{at}encoder.layer.{n}"
        y = block(y, y, w, layer + ".attention", "self", 4)
        y = forward(block(y, x, w, layer + ".crossattention", "self", 4), w, layer)
    reward = y[0]
    for i in (0, 2, 4, 6, 7):
        reward = linear(reward, w, f"mlp.layers.{i}")
    return (reward.item() - 0.16717362830052426) / 1.0333394966054072, cut


def qformer(w, x, queries, patches):
    x = norm(x, w, "qformer.layernorm", 1e-12)
    for n in range(3):
        at = f"qformer.encoder.layer.{n}"
        x = block(x, x, w, at + ".attention", "attention", 2)
        asks, text = x[:queries], x[queries:]
        if n % 2 == 0 and queries:
            asks = block(asks, patches, w, at + ".crossattention", "attention", 2)
        x = torch.cat([forward(asks, w, at, "_query"), forward(text, w, at)])
    return x


def plain_blip2(w, image, text):
    """ITC and ITM of a pair."""
    at = "vision_model.embeddings."
    x = pixels(image.convert("RGB").resize((28, 28), Image.Resampling.BICUBIC))
    x = embed(x, w[at + "patch_embedding.weight"], w[at + "patch_embedding.bias"], w[at + "class_embedding"],
              w[at + "position_embedding"])  # fmt: skip
    x = vit(x, w, 2, ("vision_model.encoder.layers", "layer_norm1", "layer_norm2", "self_attn.qkv", "self_attn.projection",
                      "vision_model.post_layernorm"))  # fmt: skip
    ids, cut = words(text, 32)
    tokens = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
    asks = w["query_tokens"][0]
    unit = torch.nn.functional.normalize
    views = unit(linear(qformer(w, asks, 4, x), w, "vision_projection"), dim=-1)
    itc = (views @ unit(linear(qformer(w, tokens, 0, None)[0], w, "text_projection"), dim=-1)).max()
    states = qformer(w, torch.cat([asks, tokens]), 4, x)[:4]
    no, yes = linear(states, w, "itm_head").mean(0).exp()
    return itc.item(), (yes / (no + yes)).item(), cut


def expected(name: str, folder: Path, images, texts) -> tuple[list[float], list[bool]]:
    if name == "image_reward":
        w = torch.load(folder / "ImageReward.pt", weights_only=True)
        return tuple(zip(*(plain_reward(w, image, text) for image, text in zip(images, texts))))
    w = load_file(folder / "model.safetensors")
    itc, itm, cut = zip(*(plain_blip2(w, image, text) for image, text in zip(images, texts)))
    return (itc if name == "blip2_itc" else itm), cut


# The tests


@pytest.mark.parametrize("name", SCORERS)
def test_scores_and_cuts_are_those_of_the_plain_network(name, folders):
    images, texts = grid()
    scores = SCORERS[name].create(str(folders[name])).score(images, texts)
    values, cuts = expected(name, folders[name], images, texts)
    np.testing.assert_allclose([score.value for score in scores], values, atol=1e-5, rtol=0)
    assert [score.truncated for score in scores] == list(cuts) and True in cuts and False in cuts
    assert np.std(values) > 1e-3, "the scores must differ for this test to mean anything"


@pytest.mark.parametrize("name", SCORERS)
def test_a_score_depends_on_its_pair_alone(name, folders):
    images, texts = grid()
    create, folder = SCORERS[name].create, str(folders[name])
    whole = [s.value for s in create(folder, batch_size=64).score(images, texts)]
    one = create(folder, batch_size=1)
    np.testing.assert_allclose([s.value for s in one.score(images, texts)], whole, atol=1e-6, rtol=0)
    order = np.random.default_rng(1).permutation(len(texts))
    mixed = create(folder, batch_size=7).score([images[i] for i in order], [texts[i] for i in order])
    np.testing.assert_allclose([s.value for s in mixed], np.array(whole)[order], atol=1e-6, rtol=0)
    # Features of pictures and texts encoded apart, each once, as the engine does.
    scorer = create(folder, batch_size=5)
    seen, (read, _) = scorer.encode_images([*map(scorer.prepare, pictures())]), scorer.encode_texts(TEXTS)
    rows = [(i, t) for i in range(len(seen)) for t in range(len(read))]
    cells = scorer.match([seen[i] for i, _ in rows], [read[t] for _, t in rows])
    alone = [one.score([pictures()[i]], [TEXTS[t]])[0].value for i, t in rows[:9]]
    np.testing.assert_allclose(cells[:9], alone, atol=1e-6, rtol=0)
    assert scorer.encode_images([]) == [] and scorer.encode_texts([]) == ([], []) and scorer.score([], []) == []


@pytest.mark.parametrize("name", SCORERS)
def test_half_precision_runs_and_agrees_roughly(name, folders):
    images, texts = grid()
    full, half = (
        [s.value for s in SCORERS[name].create(str(folders[name]), dtype=dtype).score(images, texts)]
        for dtype in ("float32", "bfloat16")
    )
    assert np.corrcoef(full, half)[0, 1] > 0.98 and not np.array_equal(full, half)


@pytest.mark.parametrize("name", SCORERS)
def test_real_pictures_run(name, folders):
    rows = published_rows()
    scores = SCORERS[name].create(str(folders[name])).score([image for image, _, _ in rows], [text for _, text, _ in rows])
    assert len(scores) == 11 and all(np.isfinite(score.value) for score in scores)


def test_blip2_as_transformers_runs_it(folders):
    """The library's own forward pass, which pairs rows for the matching head and crosses them for the contrastive one."""
    from transformers import Blip2ForImageTextRetrieval

    model = Blip2ForImageTextRetrieval.from_pretrained(folders["blip2_itm"]).eval()
    images, texts = pictures()[:2], ["the dog", "the sun"]
    tokens = bert_tokenizer()(texts, padding=True, return_tensors="pt", return_token_type_ids=False)
    inputs = dict(pixel_values=torch.stack([stretched(image, 28) for image in images]), **tokens)
    with torch.inference_mode():
        itm = model(**inputs, use_image_text_matching_head=True).logits_per_image.softmax(-1)[:, 1]
        itc = model(**inputs).logits_per_image.diagonal()
    for module, values in ((blip2_itm, itm), (blip2_itc, itc)):
        scores = module.create(str(folders["blip2_itm"])).score(images, texts)
        np.testing.assert_allclose([s.value for s in scores], values, atol=1e-6, rtol=0)


def test_blip2_does_not_heed_how_its_processor_is_set_up(folders, tmp_path):
    """``image_token_index`` without ``num_query_tokens`` of the processor makes transformers drop the first text tokens."""
    folder = shutil.copytree(folders["blip2_itm"], tmp_path / "blip2")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"image_token_index": 5}))
    images, texts = grid()
    for module in (blip2_itc, blip2_itm):
        ours, theirs = (module.create(str(f)).score(images[:4], texts[:4]) for f in (folder, folders["blip2_itm"]))
        assert ours == theirs


def test_blip2_refuses_other_models_and_missing_weights(folders, tmp_path):
    folder = shutil.copytree(folders["blip2_itm"], tmp_path / "blip2")
    weights = load_file(folder / "model.safetensors")
    weights.pop("itm_head.bias")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"missing keys: itm_head\.bias"):
        blip2_itm.create(str(folder))
    (folder / "config.json").write_text('{"model_type": "clip"}')
    with pytest.raises(CheckpointError, match="holds a 'clip' model"):
        blip2_itc.create(str(folder))
    (folder / "config.json").write_text("[")
    with pytest.raises(CheckpointError, match=r"no readable config\.json"):
        blip2_itc.create(str(folder))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"blip.text_encoder.encoder.layer.1.crossattention.self.key.weight": None}, "missing keys: blip.text_encoder.encoder"),
        (
            {"blip.visual_encoder.blocks.1.attn.qkv.bias": None},
            r"missing keys: blip\.visual_encoder\.blocks\.1\.attn\.qkv\.bias",
        ),
        ({"blip.visual_encoder.pos_embed": None}, "missing keys: blip.visual_encoder.pos_embed"),
        ({"mlp.layers.7.bias": None}, r"missing keys: mlp\.layers\.7\.bias"),
        ({"blip.text_decoder.bert.embeddings.word_embeddings.weight": torch.ones(2)}, "unexpected keys: blip.text_decoder"),
        ({"mlp.layers.9.weight": torch.ones(1, 1)}, "unexpected keys: mlp.layers.9.weight"),
        ({"blip.visual_encoder.norm.bias": torch.ones(3)}, "mismatched keys: blip.visual_encoder.norm.bias"),
        ({"mlp.layers.2.weight": torch.ones(3, 3)}, "do not fit together"),
    ],
)
def test_image_reward_refuses_a_file_that_is_not_whole(change, message, folders, tmp_path):
    folder = shutil.copytree(folders["image_reward"], tmp_path / "reward")
    state = {name: value for name, value in (reward_weights() | change).items() if value is not None}
    torch.save(state, folder / "ImageReward.pt")
    with pytest.raises(CheckpointError, match=message):
        image_reward_scorer.create(str(folder))


def test_image_reward_runs_no_code_of_a_file(folders, tmp_path):
    class Attack:
        def __reduce__(self):
            return Path.touch, (tmp_path / "touched",)

    folder = shutil.copytree(folders["image_reward"], tmp_path / "reward")
    for body in (pickle.dumps(Attack()), b"", b"PK\x03\x04 damaged"):
        (folder / "ImageReward.pt").write_bytes(body)
        with pytest.raises(CheckpointError):
            image_reward_scorer.create(str(folder))
    torch.save({"x": Attack()}, folder / "ImageReward.pt")
    with pytest.raises(CheckpointError, match="no plain tensors"):
        image_reward_scorer.create(str(folder))
    torch.save([1, 2], folder / "ImageReward.pt")
    with pytest.raises(CheckpointError, match="must hold named weights"):
        image_reward_scorer.create(str(folder))
    assert not (tmp_path / "touched").exists()


def test_image_reward_finds_a_tokenizer_or_says_what_to_type(folders, tmp_path):
    bare = shutil.copytree(folders["image_reward"], tmp_path / "bare", ignore=shutil.ignore_patterns("*token*", "vocab*"))
    with pytest.raises(CheckpointError, match="hf download google-bert/bert-base-uncased"):
        image_reward_scorer.create(str(bare))
    images, texts = grid()
    other = image_reward_scorer.create(str(bare), tokenizer=str(folders["blip2_itm"])).score(images, texts)
    assert other == image_reward_scorer.create(str(folders["image_reward"])).score(images, texts)


def test_the_folded_head_is_the_head():
    sizes = [768, 1024, 128, 64, 16, 1]  # the published ones
    generator = torch.Generator().manual_seed(2)
    layers = [
        (torch.randn(b, a, generator=generator) * a**-0.5, torch.randn(b, generator=generator))
        for a, b in itertools.pairwise(sizes)
    ]
    states = torch.randn(64, 768, generator=generator)
    unfolded = states.double()
    for weight, bias in layers:
        unfolded = unfolded @ weight.double().T + bias.double()
    head = image_reward.fold(layers)
    assert head.weight.shape == (768,) and head.bias.shape == ()
    np.testing.assert_allclose(states @ head.weight + head.bias, unfolded[:, 0], atol=1e-5, rtol=0)


def test_the_real_architectures_have_the_stated_size():
    """Built without memory. 1 + 768 numbers of ImageReward are its folded head."""
    from transformers import Blip2Config, Blip2ForImageTextRetrieval, BlipVisionConfig

    count = lambda model: sum(weight.numel() for weight in model.parameters())  # noqa: E731
    real = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12}
    text = image_reward._text_config(MED_CONFIG | real | {"max_position_embeddings": 512, "vocab_size": 30524}, 1024)
    vision = BlipVisionConfig(
        hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16, image_size=224
    )
    with torch.device("meta"):
        reward = image_reward.ImageReward(vision, text, image_reward.Head(torch.zeros(768), torch.zeros(())))
        blip2 = Blip2ForImageTextRetrieval(
            Blip2Config(qformer_config=dict(vocab_size=30523, use_qformer_text_input=True), image_text_hidden_size=256)
        )
    assert count(reward) + 769 == image_reward_scorer.ImageRewardScorer.facts.weights
    assert count(blip2) == blip2_itm.Blip2Itm.facts.weights == blip2_itc.Blip2Itc.facts.weights


def test_pictures_of_extreme_shape_stay_small():
    for image in (Image.new("RGB", (1, 60_000), "red"), Image.new("RGB", (60_000, 1), "red")):
        for prepare in (stretched, cropped, padded):
            assert prepare(image, 28).shape == (3, 28, 28)


def published_rows() -> list[tuple[Image.Image, str, float | None]]:
    if not T2I.is_dir():
        pytest.skip(f"the real T2I pictures are not at {T2I}")
    with (T2I / "prompts.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    value = lambda row: float(row["imagereward_published"]) if row["imagereward_published"] else None  # noqa: E731
    return [(Image.open(T2I / row["file"]).convert("RGB"), row["prompt"], value(row)) for row in rows]


def test_published_image_rewards():
    """Four rewards from the authors' README, for whoever has the weights."""
    sources = ("zai-org/ImageReward", "THUDM/ImageReward")
    source = next((s for s in sources if isinstance(try_to_load_from_cache(s, "ImageReward.pt"), str)), None)
    if source is None:
        pytest.skip("ImageReward's weights are not in the Hub's cache; hf download zai-org/ImageReward")
    rows = [row for row in published_rows() if row[2] is not None]
    scores = image_reward_scorer.create(source).score([row[0] for row in rows], [row[1] for row in rows])
    np.testing.assert_allclose([score.value for score in scores], [row[2] for row in rows], atol=0.01)
