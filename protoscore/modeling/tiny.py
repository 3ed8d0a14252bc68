"""The embedded size: a Qwen3-VL of about two million weights, and its own tokenizer, made without any download."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import ByteLevelBPETokenizer
from transformers import (
    Qwen2Tokenizer,
    Qwen2VLImageProcessor,
    Qwen3VLConfig,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
    set_seed,
)

from protoscore.modeling.classifier import Qwen3VLForSequenceClassification

IMAGE_SIZE, PATCH = 96, 16
SPECIAL_TOKENS = ["<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
CHAT_TEMPLATE = """\
{%- for message in messages -%}
{%- for part in message.content -%}
{%- if part.type == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>{%- else -%}{{ part.text }}{%- endif -%}
{%- endfor -%}<|im_end|>
{%- endfor -%}"""


def tiny_processor(sentences: Iterable[str], vocab_size: int = 1024) -> Qwen3VLProcessor:
    """A Qwen3-VL processor for 96 px pictures, with a byte-level BPE learned from ``sentences``.

    Bytes are the fallback, so any text has an encoding; words of the sentences are one token each.
    """
    bpe = ByteLevelBPETokenizer(add_prefix_space=False)
    bpe.train_from_iterator(sentences, vocab_size=vocab_size, min_frequency=2, show_progress=False)
    state = _json(bpe)
    tokenizer = Qwen2Tokenizer(
        vocab=state["vocab"], merges=[tuple(m) for m in state["merges"]], unk_token=None,
        eos_token="<|im_end|>", pad_token="<|endoftext|>", additional_special_tokens=SPECIAL_TOKENS, model_max_length=192,
    )  # fmt: skip
    area = IMAGE_SIZE * IMAGE_SIZE  # Qwen's "edges" are pixel areas
    image = Qwen2VLImageProcessor(
        patch_size=PATCH, temporal_patch_size=2, merge_size=2, size={"shortest_edge": area, "longest_edge": area}
    )
    video = Qwen3VLVideoProcessor(patch_size=PATCH, merge_size=2)
    return Qwen3VLProcessor(image_processor=image, tokenizer=tokenizer, video_processor=video, chat_template=CHAT_TEMPLATE)


def tiny_config(processor: Qwen3VLProcessor) -> Qwen3VLConfig:
    """The configuration of the embedded size, for the vocabulary of ``processor``."""
    tokenizer = processor.tokenizer
    token = tokenizer.convert_tokens_to_ids
    heads, hidden = 4, 128
    return Qwen3VLConfig(
        text_config=dict(
            vocab_size=len(tokenizer), hidden_size=hidden, intermediate_size=384, num_hidden_layers=4,
            num_attention_heads=heads, num_key_value_heads=2, head_dim=hidden // heads, max_position_embeddings=512,
            pad_token_id=tokenizer.pad_token_id,
            rope_parameters={
                "rope_type": "default", "rope_theta": 1e4, "mrope_section": [6, 5, 5], "mrope_interleaved": True,
            },
        ),
        vision_config=dict(
            depth=3, hidden_size=hidden, intermediate_size=384, num_heads=heads, patch_size=PATCH, out_hidden_size=hidden,
            num_position_embeddings=(IMAGE_SIZE // PATCH) ** 2, deepstack_visual_indexes=[0, 1],
        ),
        image_token_id=token("<|image_pad|>"), video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"), vision_end_token_id=token("<|vision_end|>"),
        id2label={0: "score"}, tie_word_embeddings=False,
    )  # fmt: skip


def tiny_model(processor: Qwen3VLProcessor, seed: int = 0) -> Qwen3VLForSequenceClassification:
    """A randomly initialised classifier for ``processor``; the same seed gives the same weights."""
    set_seed(seed)
    return Qwen3VLForSequenceClassification(tiny_config(processor))


def _json(bpe: ByteLevelBPETokenizer) -> dict:
    import json

    return json.loads(bpe._tokenizer.to_str())["model"]
