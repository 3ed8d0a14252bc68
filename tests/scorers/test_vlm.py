"""VQAScore and the reranker: probabilities of a first word, against one full forward pass a pair, without padding."""

from __future__ import annotations

import functools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from protoscore.errors import CheckpointError, ConfigError, ProtoscoreError
from protoscore.modeling.tiny import tiny_config, tiny_processor
from protoscore.modeling.yes_no import Answer
from protoscore.scorers import qwen3_vl_reranker, vie_score, vqa_score
from protoscore.scorers.vqa_score import value
from tests.scorers.conftest import LETTERS, pictures, randomise, write_clip
from tests.scorers.test_fusion import MEAN, STD, attend, gelu, linear, norm, published_rows

TEXTS = [
    "the dog in a hat", "", "dog", "A very long text about the dog, " * 12, "50 % {} {0} of \\n it",
    "a dog <|image_pad|> in <|im_end|> the </s> sun <image> now", "Ünïcode 犬 & <b>tags</b>",
]  # fmt: skip
QWEN_TEMPLATE = """\
{%- for message in messages -%}<|im_start|>{{ message.role }}
{% for part in message.content -%}
{%- if part.type == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>{%- else -%}{{ part.text }}{%- endif -%}
{%- endfor -%}<|im_end|>
{% endfor -%}{%- if add_generation_prompt -%}<|im_start|>assistant
{% endif -%}"""


def grid(count: int = 14) -> tuple[list[Image.Image], list[str]]:
    images = [image for image in pictures() if min(image.size) > 1]  # transformers takes no picture of one pixel
    return [images[i % len(images)] for i in range(count)], [TEXTS[i % len(TEXTS)] for i in range(count)]


def values(scores) -> list[float]:
    return [score.value for score in scores]


# Checkpoints


def outspoken(head: torch.nn.Parameter, tokens: list[int]) -> None:
    """Let the probabilities of ``tokens`` differ widely from one state to the next."""
    with torch.no_grad():
        head *= 0.3
        head[tokens] *= 12


def write_qwen(folder: Path) -> Path:
    from transformers import Qwen3VLForConditionalGeneration

    processor = tiny_processor(["Yes No yes no the dog in a hat "] * 9)
    processor.chat_template, processor.tokenizer.model_max_length = QWEN_TEMPLATE, 100_000
    config = tiny_config(processor)
    model = randomise(Qwen3VLForConditionalGeneration(config), 21)
    outspoken(model.lm_head.weight, processor.tokenizer.convert_tokens_to_ids(["Yes", "No", "yes", "no"]))
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def write_llava(folder: Path) -> Path:
    """Another family: CLIP and Llama, with a BOS that the template writes."""
    from transformers import CLIPImageProcessor, LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor, Qwen2Tokenizer

    base = tiny_processor(["Yes No yes no the dog in a hat "] * 9).tokenizer
    state = json.loads(base.backend_tokenizer.to_str())["model"]
    tokenizer = Qwen2Tokenizer(
        vocab=state["vocab"], merges=[tuple(pair) for pair in state["merges"]], unk_token=None, bos_token="<s>",
        eos_token="</s>", pad_token="<pad>", additional_special_tokens=["<image>"],
    )  # fmt: skip
    template = (
        "{{ bos_token }}{% for message in messages %}USER: {% for part in message.content %}"
        "{% if part.type == 'image' %}<image>{% else %}{{ part.text }}{% endif %}{% endfor %}{% endfor %}"
        "{% if add_generation_prompt %} ASSISTANT: {% endif %}"
    )
    shape = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2)
    config = LlavaConfig(
        vision_config=shape | dict(model_type="clip_vision_model", image_size=32, patch_size=8),
        text_config=shape | dict(model_type="llama", vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id,
                                 bos_token_id=None, eos_token_id=None),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"), image_seq_length=16,
    )  # fmt: skip
    model = randomise(LlavaForConditionalGeneration(config), 22)
    outspoken(model.lm_head.weight, tokenizer.convert_tokens_to_ids(["Yes", "No"]))
    model.save_pretrained(folder)
    LlavaProcessor(
        image_processor=CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}),
        tokenizer=tokenizer, patch_size=8, vision_feature_select_strategy="default", chat_template=template,
        image_token="<image>", num_additional_image_tokens=1,
    ).save_pretrained(folder)  # fmt: skip
    return folder


def t5_tokenizer():
    from transformers import T5Tokenizer

    pieces = [
        "▁",
        "▁Yes",
        "▁No",
        "▁dog",
        "▁the",
        "s",
        "dog",
        *(letter for letter in LETTERS if letter != "s"),
        *"ACUEDSRN:?\"'{}",
    ]
    pieces = list(dict.fromkeys(pieces))
    vocab = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *((piece, -2.0 - 0.01 * i) for i, piece in enumerate(pieces))]
    return T5Tokenizer(vocab=vocab, extra_ids=4)


def t5_parts(size: int):
    """Flan-T5 and the projector: what CLIP-FlanT5 is besides CLIP. The output layer is not tied to the embeddings."""
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=size, d_model=24, d_kv=8, d_ff=32, num_layers=2, num_heads=2, feed_forward_proj="gated-gelu",
        tie_word_embeddings=False, decoder_start_token_id=0,
    )  # fmt: skip
    model = T5ForConditionalGeneration(config)
    model.lm_head.weight = torch.nn.Parameter(torch.empty(size, 24))
    randomise(model, 23)
    outspoken(model.lm_head.weight, [1, 4, 5])  # the end, Yes, No
    generator = torch.Generator().manual_seed(24)
    shapes = {"0.weight": (24, 16), "0.bias": (24,), "2.weight": (24, 24), "2.bias": (24,)}
    return model, {f"mm_projector.{name}": 0.4 * torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def write_clip_t5(folder: Path, tower: Path) -> Path:
    """The names of the authors' class: T5's, an alias of the embeddings, the projector, and CLIP's tower inside a wrapper."""
    folder.mkdir()
    tokenizer = t5_tokenizer()
    model, projector = t5_parts(len(tokenizer) + 5)  # rows of padding in the vocabulary, as the real one has 28
    state = {name: value.clone() for name, value in model.state_dict().items()} | projector
    state["embed_tokens.weight"] = state["shared.weight"].clone()
    state["vision_tower.vision_tower.vision_model.embeddings.class_embedding"] = torch.zeros(16)
    names = sorted(state)
    shards = {f"pytorch_model-0000{i + 1}-of-00002.bin": names[i::2] for i in range(2)}
    for file, part in shards.items():
        torch.save({name: state[name] for name in part}, folder / file)
    index = {name: file for file, part in shards.items() for name in part}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    config = model.config.to_dict() | {
        "model_type": "clip_t5", "architectures": ["CLIPT5ForConditionalGeneration"], "tie_word_embeddings": False,
        "mm_hidden_size": 16, "mm_projector_type": "mlp2x_gelu", "mm_vision_select_layer": -2,
        "mm_vision_select_feature": "patch", "mm_vision_tower": str(tower), "mm_use_im_start_end": False,
        "use_mm_proj": True, "tune_mm_mlp_adapter": False,
    }  # fmt: skip
    config.pop("scale_decoder_outputs", None)
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("vlm")
    clip = write_clip(root / "clip")
    return {
        "qwen": write_qwen(root / "qwen"), "llava": write_llava(root / "llava"), "clip": clip,
        "clip_t5": write_clip_t5(root / "clip_t5", clip),
    }  # fmt: skip


# One pair at a time


@functools.cache
def loaded(folder: Path):
    from transformers import AutoModelForImageTextToText, AutoProcessor

    return AutoModelForImageTextToText.from_pretrained(folder).eval(), AutoProcessor.from_pretrained(folder)


def chat_probabilities(folder: Path, image: Image.Image, before: str, text: str, after: str, prepare=None) -> torch.Tensor:
    """Next-token probabilities over the vocabulary: a prompt written by hand, all positions, no padding, no mask."""
    model, processor = loaded(folder)
    tokenizer = processor.tokenizer
    inputs = (prepare or processor.image_processor)(images=[image.convert("RGB")], return_tensors="pt")
    if "image_grid_thw" in inputs:
        count, pad = int(inputs["image_grid_thw"].prod()) // 4, "<|image_pad|>"
    else:
        count, pad = 16, "<image>"
    ids = []
    for piece, special in ((before.replace(pad, pad * count), True), (text, False), (after.replace(pad, pad * count), True)):
        ids += tokenizer(piece, add_special_tokens=False, split_special_tokens=not special)["input_ids"]
    inputs["input_ids"] = torch.tensor([ids])
    if "image_grid_thw" in inputs:
        inputs["mm_token_type_ids"] = (inputs["input_ids"] == tokenizer.convert_tokens_to_ids(pad)).long()
    with torch.inference_mode():
        return model(**inputs).logits[0, -1].double().softmax(-1)


def qwen_vqa(folder, image, text):
    question = 'Does this figure show "', '"? Please answer Yes or No.'
    before = f"<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>{question[0]}"
    return chat_probabilities(folder, image, before, text, f"{question[1]}<|im_end|>\n<|im_start|>assistant\n")


def llava_vqa(folder, image, text):
    return chat_probabilities(
        folder, image, '<s>USER: <image>Does this figure show "', text, '"? Please answer Yes or No. ASSISTANT: '
    )


@pytest.mark.parametrize("family, oracle", [("qwen", qwen_vqa), ("llava", llava_vqa)])
def test_vqa_score_is_the_probability_of_yes_after_the_prompt(family, oracle, folders):
    images, texts = grid()
    scorer = vqa_score.create(str(folders[family]))
    tokenizer = scorer._model._first.processor.tokenizer
    yes, no = (tokenizer.convert_tokens_to_ids(word) for word in ("Yes", "No"))
    exact = [oracle(folders[family], image, text) for image, text in zip(images, texts)]
    np.testing.assert_allclose(values(scorer.score(images, texts)), [p[yes] for p in exact], atol=1e-5, rtol=0)
    ratio = vqa_score.create(f"p_yes_no:{folders[family]}")
    np.testing.assert_allclose(
        values(ratio.score(images, texts)), [p[yes] / (p[yes] + p[no]) for p in exact], atol=1e-5, rtol=0
    )
    assert values(vqa_score.create(str(folders[family]), variant="p_yes").score(images, texts)) == values(
        scorer.score(images, texts)
    )
    assert np.std([p[yes] for p in exact]) > 1e-3, "the scores must differ for this test to mean anything"
    assert {ratio.parameters["variant"], scorer.parameters["variant"]} == {"p_yes_no", "published"}


def test_reranker_is_yes_against_no_in_its_own_format(folders):
    from transformers import AutoImageProcessor

    images, texts = grid()
    scorer = qwen3_vl_reranker.create(str(folders["qwen"]))
    prepare = AutoImageProcessor.from_pretrained(
        folders["qwen"], backend="pil", size={"shortest_edge": 4096, "longest_edge": 1843200}
    )
    before = (
        "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. "
        'Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
        "<Instruct>: Given a search query, retrieve relevant candidates that answer the query.<Query>:"
    )
    after = "\n<Document>:<|vision_start|><|image_pad|><|vision_end|><|im_end|>\n<|im_start|>assistant\n"
    yes, no = (scorer._first.processor.tokenizer.convert_tokens_to_ids(word) for word in ("yes", "no"))
    exact = [chat_probabilities(folders["qwen"], i, before, t, after, prepare) for i, t in zip(images, texts)]
    exact = [p[yes] / (p[yes] + p[no]) for p in exact]
    np.testing.assert_allclose(values(scorer.score(images, texts)), exact, atol=1e-5, rtol=0)
    assert np.std(exact) > 1e-3
    other = qwen3_vl_reranker.create(str(folders["qwen"]), instruction="Find a drawing.")
    assert values(other.score(images, texts)) != values(scorer.score(images, texts))
    assert other.parameters != scorer.parameters


def t5_vqa(folders, image, text) -> tuple[float, float, float]:
    """The published score, P(Yes) and P(No), as the authors' code computes them: with the loss of T5 on "Yes" and its end."""
    tokenizer = t5_tokenizer()
    model, w = t5_parts(len(tokenizer) + 5)
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight[: len(tokenizer)])  # they cut the vocabulary
    model.config.vocab_size = len(tokenizer)
    image = image.convert("RGB")
    side = max(image.size)
    square = Image.new("RGB", (side, side), (122, 116, 104))
    square.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
    array = np.asarray(square.resize((32, 32), Image.Resampling.BICUBIC), dtype=np.float32) / 255
    states = linear(
        gelu(linear(clip_states(folders["clip"], torch.from_numpy(array)), w, "mm_projector.0")), w, "mm_projector.2"
    )
    system = "A chat between a curious user and an artificial intelligence assistant. The assistant gives helpful, detailed, "
    system += "and polite answers to the user's questions. USER: "
    question = f'\nDoes this figure show "{text}"? Please answer yes or no. ASSISTANT: '
    ids = [tokenizer(piece, split_special_tokens=True)["input_ids"] for piece in (system, question)]
    embedded = [model.shared(torch.tensor(part)) for part in ids]
    labels = torch.tensor([[tokenizer.convert_tokens_to_ids("▁Yes"), 1]])
    with torch.inference_mode():
        out = model(inputs_embeds=torch.cat([embedded[0], states, embedded[1]])[None], labels=labels)
    first = out.logits[0, 0].softmax(-1)
    return float((-out.loss).exp()), float(first[labels[0, 0]]), float(first[tokenizer.convert_tokens_to_ids("▁No")])


def clip_states(folder: Path, array: torch.Tensor) -> torch.Tensor:
    """Patch states of CLIP's last layer but one (the tower has two), in plain operations."""
    from safetensors.torch import load_file

    w = load_file(folder / "model.safetensors")
    kernel = w["vision_model.embeddings.patch_embedding.weight"]
    cut = ((array - MEAN) / STD).unfold(0, 8, 8).unfold(1, 8, 8).flatten(2).flatten(0, 1)
    x = torch.cat([w["vision_model.embeddings.class_embedding"][None], cut @ kernel.flatten(1).T])
    x = norm(x + w["vision_model.embeddings.position_embedding.weight"], w, "vision_model.pre_layrnorm", 1e-5)
    at = "vision_model.encoder.layers.0"
    h = norm(x, w, at + ".layer_norm1", 1e-5)
    x = x + linear(attend(*(linear(h, w, f"{at}.self_attn.{p}_proj") for p in "qkv"), 2), w, at + ".self_attn.out_proj")
    h = linear(norm(x, w, at + ".layer_norm2", 1e-5), w, at + ".mlp.fc1")
    return (x + linear(h * torch.sigmoid(1.702 * h), w, at + ".mlp.fc2"))[1:]


def test_clip_flant5_gives_the_published_score(folders):
    images, texts = grid()
    exact = np.array([t5_vqa(folders, image, text) for image, text in zip(images, texts)])
    for variant, wanted in (
        ("published", exact[:, 0]), ("p_yes", exact[:, 1]), ("p_yes_no", exact[:, 1] / (exact[:, 1] + exact[:, 2])),
    ):  # fmt: skip
        scorer = vqa_score.create(str(folders["clip_t5"]), variant=variant)
        np.testing.assert_allclose(values(scorer.score(images, texts)), wanted, rtol=1e-5, atol=0)  # they are small
        assert np.std(np.log(wanted)) > 0.02


CREATE = {
    "qwen": lambda folders, **o: vqa_score.create(str(folders["qwen"]), **o),
    "llava": lambda folders, **o: vqa_score.create(str(folders["llava"]), **o),
    "clip_t5": lambda folders, **o: vqa_score.create(str(folders["clip_t5"]), **o),
    "reranker": lambda folders, **o: qwen3_vl_reranker.create(str(folders["qwen"]), **o),
}


@pytest.mark.parametrize("kind", CREATE)
def test_a_score_depends_on_its_pair_alone(kind, folders):
    images, texts = grid()
    one = values(CREATE[kind](folders, batch_size=1).score(images, texts))
    many = CREATE[kind](folders, batch_size=5)
    np.testing.assert_allclose(values(many.score(images, texts)), one, atol=1e-6, rtol=0)
    order = np.random.default_rng(1).permutation(len(texts))
    mixed = many.score([images[i] for i in order], [texts[i] for i in order])
    np.testing.assert_allclose(values(mixed), np.array(one)[order], atol=1e-6, rtol=0)
    assert many.score([], []) == []
    with pytest.raises(ValueError, match="give one text per image"):
        many.score(images, texts[:3])


@pytest.mark.parametrize("kind", CREATE)
def test_extreme_pictures_long_texts_and_half_precision(kind, folders):
    scorer = CREATE[kind](folders, dtype="bfloat16")
    strange = [Image.new(mode, size) for mode, size in (("L", (40, 3)), ("RGBA", (2, 900)), ("P", (400, 1)), ("RGB", (1, 1)))]
    long = "the dog " * 9000
    scores = scorer.score([*strange, strange[0]], ["dog", "dog", "dog", "dog", "a dog"])
    assert all(0 <= score.value <= 1 for score in scores)
    if kind != "clip_t5":  # a pass over thousands of tokens in each of the others would cost a minute
        return
    short, cut = scorer.score(strange[:1] * 2, ["the dog", long])
    assert not short.truncated and cut.truncated and 0 <= cut.value <= 1


@pytest.mark.parametrize("kind", CREATE)
def test_real_pictures_run(kind, folders):
    rows = published_rows()
    for image, _, _ in rows:
        image.thumbnail((448, 448))  # as large as they come, the reranker alone takes a quarter of a minute
    scores = CREATE[kind](folders).score([image for image, _, _ in rows], [text for _, text, _ in rows])
    assert len(scores) == 11 and all(0 <= score.value <= 1 for score in scores)


def test_the_question_is_the_users_to_change(folders):
    images, texts = grid(3)
    folder = str(folders["qwen"])
    scorer = vqa_score.create(folder, question="Is {} here?")
    assert scorer.parameters["question"] == "Is {} here?"
    assert values(scorer.score(images, texts)) != values(vqa_score.create(folder).score(images, texts))
    for question in ("Is it here?", "Is {} or {} here?"):
        with pytest.raises(ConfigError, match=r"must hold \{\} once"):
            vqa_score.create(folder, question=question)
    with pytest.raises(ConfigError, match="none of published, p_yes, p_yes_no"):
        vqa_score.create(folder, variant="p_si")


def test_generation_settings_do_not_move_a_score(folders, tmp_path):
    """Scores read from generate() change with a repetition penalty, since Yes and No stand in the prompt."""
    folder = shutil.copytree(folders["qwen"], tmp_path / "qwen")
    (folder / "generation_config.json").write_text(
        json.dumps({"repetition_penalty": 1.5, "temperature": 0.1, "do_sample": True})
    )
    images, texts = grid(4)
    ours, theirs = (values(vqa_score.create(str(f)).score(images, texts)) for f in (folder, folders["qwen"]))
    assert ours == theirs


def test_models_that_cannot_answer_are_refused(folders, tmp_path):
    no_template = shutil.copytree(folders["qwen"], tmp_path / "no_template", ignore=shutil.ignore_patterns("chat_template*"))
    with pytest.raises(CheckpointError, match="has no chat template"):
        vqa_score.create(str(no_template))
    split = shutil.copytree(folders["qwen"], tmp_path / "split")
    processor = tiny_processor(["nothing of the kind"] * 9)
    processor.chat_template = QWEN_TEMPLATE
    processor.save_pretrained(split)
    for module, word in ((vqa_score, "Yes"), (qwen3_vl_reranker, "yes")):
        with pytest.raises(CheckpointError, match=f"no single token for '{word}'"):
            module.create(str(split))
    with pytest.raises(CheckpointError, match=r"cannot be loaded|takes no pictures|no chat template"):
        vqa_score.create(str(folders["clip"]))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"lm_head.weight": None}, r"missing keys: lm_head\.weight"),
        ({"mm_projector.2.bias": None}, r"missing keys: mm_projector\.2\.bias"),
        ({"mm_projector.4.bias": torch.ones(2)}, r"unexpected keys: mm_projector\.4\.bias"),
        ({"mm_projector.0.weight": torch.ones(24, 3)}, r"mismatched keys.*mm_projector\.0\.weight"),
    ],
)
def test_clip_flant5_refuses_weights_that_are_not_whole(change, message, folders, tmp_path):
    folder = shutil.copytree(folders["clip_t5"], tmp_path / "clip_t5", ignore=shutil.ignore_patterns("pytorch_model*"))
    model, projector = t5_parts(len(t5_tokenizer()) + 5)
    state = {name: value.clone() for name, value in model.state_dict().items()} | projector | change
    save_file({k: v for k, v in state.items() if v is not None}, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=message):
        vqa_score.create(str(folder))


def test_clip_flant5_says_where_its_parts_come_from(folders, tmp_path):
    folder = shutil.copytree(folders["clip_t5"], tmp_path / "clip_t5", ignore=shutil.ignore_patterns("*token*", "spiece*"))
    with pytest.raises(CheckpointError, match="hf download google/flan-t5-xl"):
        vqa_score.create(str(folder))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"mm_vision_tower": "openai/clip-vit-large-patch14-336"}))
    with pytest.raises(CheckpointError, match="hf download openai/clip-vit-large-patch14-336"):
        vqa_score.create(str(folder), tokenizer=str(folders["clip_t5"]))
    images, texts = grid(3)
    moved = vqa_score.create(str(folder), tokenizer=str(folders["clip_t5"]), tower=str(folders["clip"]))
    assert values(moved.score(images, texts)) == values(vqa_score.create(str(folders["clip_t5"])).score(images, texts))


def test_value_of_an_answer():
    assert value(Answer(np.log(0.6), np.log(0.2), None), "published") == pytest.approx(0.6)
    assert value(Answer(np.log(0.6), np.log(0.2), np.log(0.15)), "published") == pytest.approx(0.3)
    assert value(Answer(np.log(0.6), np.log(0.2), np.log(0.15)), "p_yes") == pytest.approx(0.6)
    assert value(Answer(np.log(0.6), np.log(0.2), None), "p_yes_no") == pytest.approx(0.75)
    assert value(Answer(0.0, -2000.0, None), "p_yes_no") == 1 and value(Answer(-2000.0, 0.0, None), "p_yes_no") == 0


# VIEScore: scripted replies, and a real model that answers by likelihood

RULE = """
import json
from protoscore.vlms import Reply

asked = []


def reply(request):
    asked.append(request)
    if "Does the picture show" not in request.prompt:
        blue = request.images[0].getpixel((0, 0)) == (0, 0, 255)
        return json.dumps({"naturalness": 8, "artifacts": 2 if blue else 9, "reason": "x"})
    text = json.loads(request.prompt.split("\\n\\n")[1])
    if text == "refuse":
        return "I'm sorry, but I can't help with that."
    if text == "chatter":
        return "It looks like a solid 7 out of 10 to me."
    if text == "eleven":
        return json.dumps({"consistency": 11, "reason": "x"})
    if text == "cut":
        return Reply('{"consistency": 7', "length")
    if text == "down":
        return Reply(failure="permanent", reason="HTTP 400")
    if text == "the key":
        return Reply(failure="fatal", reason="the key was refused")
    return json.dumps({"consistency": 0 if text == "nothing" else 5, "reason": "x"})
"""


def test_vie_score_is_a_number_or_a_state(tmp_path):
    (tmp_path / "rule.py").write_text(RULE)
    scorer = vie_score.create(f"scripted:{tmp_path / 'rule.py'}")
    red, blue = Image.new("RGB", (4, 4), "red"), Image.new("RGBA", (4, 4), "blue")
    texts = ["a dog", "a dog", "nothing", "refuse", "chatter", "eleven", "cut", "down"]
    scores = scorer.score([red, blue, *[red] * 6], texts)
    assert values(scores) == [pytest.approx(40**0.5), pytest.approx(10**0.5), 0.0, None, None, None, None, None]
    assert [s.status.value for s in scores] == ["ok"] * 3 + ["refused", "invalid", "invalid", "invalid", "error"]
    assert all(score.reason.startswith("consistency: ") for score in scores[3:])
    asked = scorer._judge._rule.__globals__["asked"]
    assert len(asked) == len(texts) + 2, "quality is asked once a picture"
    assert scorer.score([red], ["a dog"])[0] == scores[0] and len(asked) == len(texts) + 2, "what is known is not asked again"
    with pytest.raises(ConfigError, match="needs a judge"):
        vie_score.create()


def test_vie_score_ends_when_the_judge_cannot_be_asked(tmp_path):
    (tmp_path / "rule.py").write_text(RULE)
    scorer = vie_score.create(f"scripted:{tmp_path / 'rule.py'}", replies=str(tmp_path / "replies.sqlite"), batch_size=1)
    red = Image.new("RGB", (4, 4), "red")
    first, second, third = scorer.score([red] * 3, ["a dog", "the key", "a cat"])
    expected = [f"{part}: the key was refused" for part in ("quality", "consistency", "consistency")]
    assert [first.reason, second.reason, third.reason] == expected
    assert {score.status.value for score in (first, second, third)} == {"error"}, "what was not asked has no score"
    with pytest.raises(ProtoscoreError, match="the key was refused"):
        scorer.score([red], ["a dog"])
    again = vie_score.create(f"scripted:{tmp_path / 'rule.py'}", replies=str(tmp_path / "replies.sqlite"))
    assert values(again.score([red], ["a dog"])) == [pytest.approx(40**0.5)]
    assert len(again._judge._rule.__globals__["asked"]) == 1, "the reply about consistency outlived the process"


def test_vie_score_over_a_model_in_this_process(folders):
    images, texts = grid(2)
    scores = vie_score.create(f"local:{folders['qwen']}", answers="likelihood").score(images, texts)
    assert [score.status.value for score in scores] == ["ok" if text.strip() else "invalid" for text in texts]
    assert all(0 <= score.value <= 10 for score in scores if score.value is not None)
    rambling = vie_score.create(f"local:{folders['qwen']}", max_tokens=4).score(images[:2], texts[:2])
    assert [score.value for score in rambling] == [None, None] and {s.status.value for s in rambling} == {"invalid"}
