"""The embedded judge before any training: its processor, and weights that are ready to learn."""

from __future__ import annotations

import json
import re

import torch
from tokenizers import AddedToken
from transformers import Qwen3VLForConditionalGeneration, Qwen3VLProcessor

from protoscore.asking.protocol import Protocol
from protoscore.benchmarks.protobias.schema import Cell
from protoscore.modeling.tiny import tiny_config, tiny_processor
from training.embedded.tasks import TASKS, protocols
from training.scenes import scene_triplets

# A turn is its pictures, its text and an end mark; the answer follows the mark at once.
CHAT_TEMPLATE = """\
{%- for message in messages -%}
{%- if message.content is string -%}{{ message.content }}{%- else -%}
{%- for part in message.content -%}
{%- if part.type in ('image', 'image_url') -%}<|vision_start|><|image_pad|><|vision_end|>
{%- else -%}{{ part.text }}{%- endif -%}
{%- endfor -%}{%- endif -%}<|im_end|>
{%- endfor -%}"""
RIGHT, WRONG = "<|right|>", "<|wrong|>"  # what is said of each word of a text, in training only
CHECK_PROMPT = "Check every word: "


def judge_processor(texts: int = 24_000) -> Qwen3VLProcessor:
    """The embedded processor with the words of :func:`teach_words`.

    Args:
        texts: triplets whose texts the words of scenes are learned from.
    """
    triplets = scene_triplets(texts, seed=0)
    described = [t.description(cell) for t in triplets for cell in Cell]
    processor = tiny_processor([*(t.text for t in triplets), *described])
    teach_words(processor)
    processor.tokenizer.model_max_length = 1024
    processor.chat_template = CHAT_TEMPLATE
    return processor


def teach_words(processor: Qwen3VLProcessor) -> dict[str, str]:
    """One token for each sentence of the tasks' prompts, for each label, and for each word of their questions.

    So a prompt of a hundred words costs a dozen tokens.

    Returns:
        What is new, with the words that it stands for.
    """
    tokenizer, meant = processor.tokenizer, {RIGHT: "", WRONG: "", CHECK_PROMPT: CHECK_PROMPT}
    for protocol in protocols().values():
        for text in (protocol.prompt, *protocol.variants.values()):
            meant |= {piece: piece for piece in _pieces(protocol, text) if len(piece) > 5}
        for position, (name, values) in enumerate(protocol.labels().items()):
            key = ("{" if position == 0 else ", ") + json.dumps(name) + ": "
            meant |= {key: name, **{json.dumps(value): str(value) for value in values}}
        name = next(iter(protocol.fields))
        if protocol.decisions == (name,):  # a whole answer in one token: it is decided where the question ends
            meant |= {json.dumps({name: value}): str(value) for value in protocol.labels()[name]}
    for task in TASKS.values():
        meant |= task.phrases()
    known = tokenizer.get_vocab()
    fresh = {text: words for text, words in sorted(meant.items()) if text not in known}
    words = [word for word in _words(tokenizer) if word not in known]
    single = [AddedToken(word, single_word=True, lstrip=True, normalized=False) for word in words]
    tokenizer.add_tokens(single + [AddedToken(text, normalized=False) for text in fresh])
    return {word: word for word in words} | fresh


def _words(tokenizer) -> list[str]:
    """Words that questions and labels have and that the tokenizer, which knows scenes' descriptions, would spell."""
    texts = [str(value) for p in protocols().values() for values in p.labels().values() for value in values]
    asked = {word for task in TASKS.values() for text in (*texts, *task.words()) for word in _split(text) if len(word) > 1}
    return sorted(word for word in asked if len(tokenizer.tokenize(f" {word}")) > 1)


def _split(text: str) -> list[str]:
    return re.findall(r"[A-Za-z]+", text)


def _pieces(protocol: Protocol, text: str) -> list[str]:
    """What is the same in every question, line by line, with line ends and the labels in their first order."""
    labels = {name: ", ".join(map(str, values)) for name, values in protocol.labels().items() if values}
    filled = re.sub(r"\{\{ labels\.(\w+) \| join\(\", \"\) \}\}", lambda m: labels.get(m[1], m[0]), text.strip())
    return [piece for line in re.findall(r"[^\n]+\n*", filled) for piece in re.split(r"\{[{%].*?[%}]\}", line)]


def is_key(token: str) -> bool:
    """Whether a token of the judge opens a field of its answer."""
    return token.startswith(("{", ', "')) and token.endswith(": ")


def widen(model: Qwen3VLForConditionalGeneration, before, processor: Qwen3VLProcessor, fresh: dict[str, str]) -> None:
    """Make room for the words that :func:`teach_words` added: each starts as the mean of what it was spelled by.

    Args:
        before: the tokenizer without them.
    """
    vocabulary = processor.tokenizer.get_vocab()
    model.resize_token_embeddings(len(processor.tokenizer), mean_resizing=False)
    with torch.no_grad():
        for table in (model.get_input_embeddings(), model.get_output_embeddings()):
            for text, words in fresh.items():
                spelled = before(f" {words.strip()}" if words else text, add_special_tokens=False)["input_ids"]
                table.weight[vocabulary[text]] = table.weight[spelled].mean(0)


def judge_model(processor: Qwen3VLProcessor, seed: int) -> Qwen3VLForConditionalGeneration:
    """A Qwen3-VL of the embedded size with random weights that keep the size of what passes through them.

    transformers draws all weights with a deviation of 0.02, which suits layers of thousands; at 128 it makes every layer start
    out as almost nothing, and much of the training goes into growing.
    """
    torch.manual_seed(seed)
    config = tiny_config(processor)
    config.text_config.max_position_embeddings = 2048
    model = Qwen3VLForConditionalGeneration(config)
    for name, weight in model.named_parameters():
        if "pos_embed" in name:
            torch.nn.init.normal_(weight, std=0.3)
        elif weight.ndim > 1:
            torch.nn.init.normal_(weight, std=weight[0].numel() ** -0.5)
    with torch.no_grad():
        model.model.visual.patch_embed.proj.weight *= 2**0.5  # both frames hold the same picture
        for merger in model.model.visual.deepstack_merger_list:
            merger.linear_fc2.weight.zero_()  # they add to what the language model sees; sight alone does not teach them
        for layer in model.model.language_model.layers:
            _attend_to_alike(layer.self_attn)
    model.generation_config.eos_token_id = processor.tokenizer.eos_token_id
    model.generation_config.pad_token_id = processor.tokenizer.pad_token_id
    return model


def _attend_to_alike(attention) -> None:
    """Queries and keys start out equal and outputs undo values, so that a word looks at what is like it, and gets that.

    Comparing a word with a picture, and naming what is there, are both that and a little more (mimetic initialization,
    Trockman and Kolter, 2023).
    """
    width, groups = attention.head_dim, attention.num_key_value_groups
    keys, values = (
        p.weight.view(-1, width, p.weight.shape[1]).repeat_interleave(groups, 0) for p in (attention.k_proj, attention.v_proj)
    )
    attention.q_proj.weight.copy_(keys.flatten(0, 1))
    attention.o_proj.weight.copy_(values.flatten(0, 1).T)


def is_matrix(name: str, weight: torch.Tensor) -> bool:
    """Which weights Muon steps: the layers' matrices. The mergers' are large, and few pictures' tokens pass them."""
    return weight.ndim == 2 and "embed" not in name and "merger" not in name and "lm_head" not in name
