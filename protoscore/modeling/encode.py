"""One way from (image, text) to model inputs, shared by training and scoring.

The wording around the text lives in the checkpoint's chat template, so that a server which applies the template sees the
same tokens as this code does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from PIL import Image

if TYPE_CHECKING:
    from transformers import BatchFeature, ProcessorMixin

MAX_TEXT_TOKENS = 192  # paper, section 5
MAX_ASPECT = 100  # longest side over shortest; Qwen refuses more than 200

# Written into the processor of a base model when ProtoScore is trained from it.
SCORE_TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>user
{% for part in message.content -%}
{%- if part.type == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>
{%- else -%}Does this picture show everything that the following sentence states? {{ part.text }}{%- endif -%}
{%- endfor -%}<|im_end|>
{% endfor -%}
<|im_start|>assistant
"""


class Encoded(NamedTuple):
    """Model inputs for a batch of pairs, and which texts lost their end."""

    inputs: BatchFeature
    truncated: list[bool]


def message(text: str) -> list[dict]:
    """One chat turn that holds a picture and ``text``."""
    return [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": text}]}]


def encode(processor: ProcessorMixin, images: Sequence[Image.Image], texts: Sequence[str]) -> Encoded:
    """Tokens and pixels for row-wise pairs of ``images`` and ``texts``.

    A text of more than 192 tokens is cut at a token boundary and flagged. A special token spelled out in a text is text: it
    is broken up, so that no caption can open a second picture or end the turn. A picture more than 100 times as long as
    wide is padded to that, since the vision tower has no grid for it.
    """
    cut = [_truncate(processor.tokenizer, _plain(processor.tokenizer, text)) for text in texts]
    prompts = [processor.apply_chat_template(message(text), tokenize=False) for text, _ in cut]
    pictures = [[_not_too_long(image.convert("RGB"))] for image in images]
    inputs = processor(text=prompts, images=pictures, padding=True, return_tensors="pt")
    return Encoded(inputs, [flag for _, flag in cut])


def _plain(tokenizer, text: str) -> str:
    for token in tokenizer.all_special_tokens:
        text = text.replace(token, f"{token[0]} {token[1:]}")
    return text


def _not_too_long(image: Image.Image) -> Image.Image:
    width, height = (max(side, max(image.size) // MAX_ASPECT) for side in image.size)
    if (width, height) == image.size:
        return image
    padded = Image.new("RGB", (width, height))
    padded.paste(image, ((width - image.width) // 2, (height - image.height) // 2))
    return padded


def _truncate(tokenizer, text: str) -> tuple[str, bool]:
    if len(text) <= MAX_TEXT_TOKENS:  # a token is at least one character
        return text, False
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    if len(ids) <= MAX_TEXT_TOKENS:
        return text, False
    return tokenizer.decode(ids[:MAX_TEXT_TOKENS]), True


def set_image_size(processor: ProcessorMixin, pixels: int) -> None:
    """Let the processor scale every picture to about ``pixels`` x ``pixels``, keeping its shape."""
    processor.image_processor.size = {"shortest_edge": pixels * pixels, "longest_edge": pixels * pixels}
