"""From a picture to the pixels of a ViT, by the rules of the published metrics: Pillow's bicubic filter and CLIP's constants.

Filters on tensors round differently, which moves scores in the third digit.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from PIL import Image
from torchvision.transforms import functional

MEAN = (0.48145466, 0.4578275, 0.40821073)
STD = (0.26862954, 0.26130258, 0.27577711)
BICUBIC = functional.InterpolationMode.BICUBIC
MAX_ASPECT = 16  # of what is scaled to its shortest side
MAX_SIDE, SMALLER = 10_000, 2_000  # of what is padded to a square: a longer side is brought down first


def stretched(image: Image.Image, side: int) -> torch.Tensor:
    """The whole picture at ``side`` x ``side``, whatever its shape; (3, side, side) float32."""
    return _normalised(functional.resize(image.convert("RGB"), [side, side], BICUBIC))


def cropped(
    image: Image.Image, side: int, shortest: int | None = None, mean: Sequence[float] = MEAN, std: Sequence[float] = STD
) -> torch.Tensor:
    """Shortest side to ``shortest`` (``side`` if None), then the square in the middle; (3, side, side) float32."""
    resized = functional.resize(middle(image.convert("RGB")), [shortest or side], BICUBIC)
    return _normalised(functional.center_crop(resized, [side, side]), mean, std)


def padded(image: Image.Image, side: int) -> torch.Tensor:
    """The whole picture in the middle of a square of the mean colour, at ``side`` x ``side``; (3, side, side) float32."""
    image = image.convert("RGB")
    if max(image.size) > MAX_SIDE:
        image.thumbnail((SMALLER, SMALLER), Image.Resampling.BICUBIC)
    longest = max(image.size)
    square = Image.new("RGB", (longest, longest), tuple(int(channel * 255) for channel in MEAN))
    square.paste(image, ((longest - image.width) // 2, (longest - image.height) // 2))
    return _normalised(functional.resize(square, [side, side], BICUBIC))


def middle(image: Image.Image) -> Image.Image:
    """Cut what no square in the middle reaches, or a picture of one pixel's height would be scaled to terabytes."""
    short, long = sorted(image.size)
    spare = (long - MAX_ASPECT * short) // 2
    if spare <= 0:
        return image
    left, top = (spare, 0) if image.width == long else (0, spare)
    return image.crop((left, top, image.width - left, image.height - top))


def _normalised(image: Image.Image, mean: Sequence[float] = MEAN, std: Sequence[float] = STD) -> torch.Tensor:
    return functional.normalize(functional.to_tensor(image), mean, std)
