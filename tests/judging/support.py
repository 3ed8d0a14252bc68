"""What the judging tests share: pictures, items, and a tiny generative model with random weights."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image

from protoscore.sources.rows import Row

TEXTS = ["A bird in a green meadow with exactly two stones nearby.", "A vehicle.", "A cat beside a red chair.", "A person."]


def picture(seed: int, width: int = 48, height: int = 48) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


def png(seed: int, side: int = 48) -> bytes:
    buffer = io.BytesIO()
    picture(seed, side, side).save(buffer, "PNG")
    return buffer.getvalue()


def some_items(count: int, side: int = 48) -> list[Row]:
    return [
        Row(f"{n:05d}", (png(n % 7, side),), {"text": f"{TEXTS[n % 4]} No. {n}", "group": f"g{n % 3}"}) for n in range(count)
    ]


CHAT = """\
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content -%}
{%- if 'image' in part.type -%}<|vision_start|><|image_pad|><|vision_end|>{%- else -%}{{ part.text }}{%- endif -%}
{%- endfor -%}{% endif %}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
{% endif -%}"""


def save_tiny_judge(folder: Path, seed: int = 3) -> Path:
    """A Qwen3-VL that can be generated from, with random weights: its answers are noise, its code path is the real one."""
    import torch
    from transformers import Qwen3VLForConditionalGeneration, set_seed

    from protoscore.modeling.tiny import tiny_config, tiny_processor

    processor = tiny_processor(TEXTS * 3)
    processor.chat_template = processor.tokenizer.chat_template = CHAT
    processor.tokenizer.model_max_length = 2048
    config = tiny_config(processor)
    config.text_config.max_position_embeddings = 2048
    config.text_config.eos_token_id = config.eos_token_id = processor.tokenizer.eos_token_id
    set_seed(seed)
    model = Qwen3VLForConditionalGeneration(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0)  # at their initial size all tokens are nearly equally likely
    model.generation_config.eos_token_id = processor.tokenizer.eos_token_id
    model.generation_config.pad_token_id = processor.tokenizer.pad_token_id
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
