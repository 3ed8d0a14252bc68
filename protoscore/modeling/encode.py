"""One way from (image, text) to model inputs, shared by training, scoring and the client of a served model.

The wording around the text lives in the checkpoint's chat template, so that a server which applies the template sees the
same tokens as this code does. What becomes of a picture that is handed over as a PIL image (``protoscore.sources.decoding``
makes them from bytes, under the same rules):

* any mode with 8 bits a channel (CMYK, palette, LA, RGBA, 1 bit ...): as RGB; alpha is dropped
* 16-bit grey (``I;16``): its upper 8 bits
* 32-bit integers or floats (``I``, ``F``): refused, since no value of them is white by definition
* an animation: the frame that it stands at, which is the first one after opening
* EXIF says that it is turned: turned upright
* more than 50 million pixels: refused before it is decoded
* more than 100 times as long as wide: padded to that, since the vision tower has no grid for it; 1 x 1 is enlarged
* a file that turns out to be truncated or empty when it is decoded: refused
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from PIL import Image, ImageOps

from protoscore.errors import ImageError
from protoscore.sources.decoding import MAX_PIXELS

if TYPE_CHECKING:
    from transformers import BatchFeature, ProcessorMixin

MAX_TEXT_TOKENS = 192  # paper, section 5
MAX_ASPECT = 100  # longest side over shortest; Qwen refuses more than 200
_SPECIAL = re.compile(r"<\|(?=\w+\|>)")  # how every special token of the Qwen family begins

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
    """Model inputs for a batch of pairs, which texts lost their end, and which pictures are the same object."""

    inputs: BatchFeature
    truncated: list[bool]
    pictures: list[int]


def message(text: str) -> list[dict]:
    """One chat turn that holds a picture and ``text``."""
    return [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": text}]}]


def encode(
    processor: ProcessorMixin, images: Sequence[Image.Image], texts: Sequence[str], positions: Sequence[int] | None = None
) -> Encoded:
    """Tokens and pixels for row-wise pairs of ``images`` and ``texts``.

    A text of more than 192 tokens is cut at a token boundary and flagged. A special token spelled out in a text is text: it
    is broken up, so that no caption can open a second picture or end the turn.

    Args:
        positions: what to call the pictures in an error; default their places in ``images``.

    Raises:
        ImageError: a picture cannot be used; the message gives its position.
    """
    cut = [_truncate(processor.tokenizer, plain(text, processor.tokenizer.all_special_tokens)) for text in texts]
    prompts = [processor.apply_chat_template(message(text), tokenize=False) for text, _ in cut]
    pictures = []
    for position, image in zip(positions or range(len(images)), images, strict=True):
        try:
            pictures.append([picture(image)])
        except ImageError as error:
            raise ImageError(f"picture {position}: {error}") from error
    inputs = processor(text=prompts, images=pictures, padding=True, return_tensors="pt")
    return Encoded(inputs, [flag for _, flag in cut], [id(image) for image in images])


def plain(text: str, special_tokens: Sequence[str] = ()) -> str:
    """``text`` with every special token that it spells out broken up by a space."""
    text = _SPECIAL.sub("< |", text)
    for token in special_tokens:
        text = text.replace(token, f"{token[0]} {token[1:]}")
    return text


def picture(image: Image.Image) -> Image.Image:
    """``image`` as the model sees it: RGB, upright, not too long. The module says what becomes of which picture.

    Raises:
        ImageError: it cannot be used.
    """
    if image.width * image.height > MAX_PIXELS:
        raise ImageError(f"{image.width} x {image.height} px are more than {MAX_PIXELS // 10**6} million; make it smaller")
    if image.mode in ("I", "F"):
        raise ImageError(f"pixels of mode {image.mode} have no white; save it with 8 bits a channel")
    try:
        image = ImageOps.exif_transpose(image)
        if image.mode.startswith("I;16"):
            image = image.convert("I").point(lambda value: value / 256).convert("L")
        return not_too_long(image.convert("RGB"))
    except (OSError, SyntaxError, ValueError) as error:  # Pillow decodes late, and its decoders raise these on damage
        raise ImageError(f"not a readable picture ({type(error).__name__})") from error


def not_too_long(image: Image.Image) -> Image.Image:
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


def lengths(processor: ProcessorMixin, images: Sequence[Image.Image], texts: Sequence[str]) -> list[int]:
    """About how many tokens each pair will have, before anything is decoded: what batches are bucketed by."""
    tool = processor.image_processor
    merged = tool.merge_size**2
    written = processor.tokenizer(list(texts), add_special_tokens=False)["input_ids"] if texts else []
    shown = [tool.get_number_of_image_patches(max(1, i.height), max(1, i.width)) // merged for i in map(_clamped, images)]
    return [seen + min(len(ids), MAX_TEXT_TOKENS) for seen, ids in zip(shown, written, strict=True)]


class _Size(NamedTuple):
    width: int
    height: int


def _clamped(image: Image.Image) -> _Size:
    least = max(image.size) // MAX_ASPECT
    return _Size(max(image.width, least), max(image.height, least))


def set_image_size(processor: ProcessorMixin, pixels: int) -> None:
    """Let the processor scale every picture to about ``pixels`` x ``pixels``, keeping its shape."""
    processor.image_processor.size = {"shortest_edge": pixels * pixels, "longest_edge": pixels * pixels}
