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

    A text of more than 192 tokens is cut at a token boundary and flagged.
    """
    cut = [_truncate(processor.tokenizer, text) for text in texts]
    prompts = [processor.apply_chat_template(message(text), tokenize=False) for text, _ in cut]
    pictures = [[image.convert("RGB")] for image in images]
    inputs = processor(text=prompts, images=pictures, padding=True, return_tensors="pt")
    return Encoded(inputs, [flag for _, flag in cut])


def _truncate(tokenizer, text: str) -> tuple[str, bool]:
    if len(text) <= MAX_TEXT_TOKENS:  # a token is at least one character
        return text, False
    # Special tokens in a caption would otherwise be read as structure (a second picture, the end of the turn).
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    if len(ids) <= MAX_TEXT_TOKENS:
        return text, False
    return tokenizer.decode(ids[:MAX_TEXT_TOKENS]), True


def set_image_size(processor: ProcessorMixin, pixels: int) -> None:
    """Let the processor scale every picture to about ``pixels`` x ``pixels``, keeping its shape."""
    processor.image_processor.size = {"shortest_edge": pixels * pixels, "longest_edge": pixels * pixels}
