"""HPSv2's network: OpenCLIP's ViT-H/14 under the authors' weights, and their way of bringing a picture to size."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import open_clip
import torch
from open_clip.tokenizer import SimpleTokenizer
from PIL import Image
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as transforms

from protoscore.errors import CheckpointError
from protoscore.modeling.checkpoint import fetch, load_strictly, pick_device, pick_dtype, read_pickle_free
from protoscore.modeling.towers import unit

MEAN, STD = open_clip.OPENAI_DATASET_MEAN, open_clip.OPENAI_DATASET_STD


class HpsTowers:
    """Reads ``file`` (``{"state_dict": ...}``) from a folder or the Hub. The vocabulary comes with OpenCLIP.

    A folder may hold an ``open_clip_config.json`` in OpenCLIP's format; without it the network is ViT-H-14.
    """

    def __init__(
        self, source: str, file: str, antialias: bool = True, revision: str | None = None,
        device: str | None = None, dtype: str = "float32",
    ):  # fmt: skip
        checkpoint = fetch(source, revision, files=(file,))
        self.revision = checkpoint.revision
        self.device, self.dtype = pick_device(device), pick_dtype(dtype)
        state = read_pickle_free(checkpoint.path / file)
        if not isinstance(state, dict) or not isinstance(state.get("state_dict"), dict):
            raise CheckpointError(f"{checkpoint.path / file} holds no 'state_dict'; give a folder with the authors' {file}")
        self.model = open_clip.CLIP(**_architecture(checkpoint.path))  # no weights but the authors' are ever fetched
        load_strictly(self.model, state["state_dict"], checkpoint.source)
        self.model.eval().to(self.device, self.dtype)
        self.size, self._antialias = self.model.visual.image_size[0], antialias
        self._tokenizer = SimpleTokenizer(context_length=self.model.context_length)
        clean = self._tokenizer.clean_fn
        self._tokenizer.clean_fn = lambda text: _SPECIAL.sub(r"< \1>", clean(text))[:_MOST_LETTERS]
        self.parameters: dict[str, Any] = {
            "dtype": dtype, "max_length": self.model.context_length, "antialias": antialias,
            "resize": f"longest_edge {self.size} bicubic, zero pad, tensor",
        }  # fmt: skip

    def prepare(self, image: Image.Image) -> torch.Tensor:
        """The pixels of a picture of any size and mode, (3, size, size)."""
        return pixels_of(image, self.size, self._antialias)

    @torch.inference_mode()
    def images(self, prepared: Sequence[torch.Tensor]) -> torch.Tensor:
        """Unit vectors of prepared pictures, (n, d) in float32."""
        return unit(self.model.encode_image(torch.stack(list(prepared)).to(self.device, self.dtype)))

    @torch.inference_mode()
    def texts(self, texts: Sequence[str]) -> tuple[torch.Tensor, list[bool]]:
        """Unit vectors of texts, (n, d) in float32, and which texts were cut."""
        limit = self.model.context_length - 2  # the first and the closing token
        cut = [len(text) > limit and len(self._tokenizer.encode(text)) > limit for text in texts]
        return unit(self.model.encode_text(self._tokenizer(list(texts)).to(self.device))), cut


def pixels_of(image: Image.Image, size: int, antialias: bool = True) -> torch.Tensor:
    """A picture as the authors prepare it, (3, size, size): a tensor first, then the longest side is scaled to ``size``, the
    rest filled with black, and all of it normalised. Unlike theirs, a picture that needs no scaling is filled up as well.
    """
    pixels = transforms.to_tensor(image.convert("RGB"))
    scale = size / max(pixels.shape[1:])
    height, width = (max(1, round(side * scale)) for side in pixels.shape[1:])
    if scale != 1:
        pixels = transforms.resize(pixels, [height, width], InterpolationMode.BICUBIC, antialias=antialias)
    down, right = size - height, size - width
    pixels = transforms.pad(pixels, [right // 2, down // 2, right - right // 2, down - down // 2])
    return transforms.normalize(pixels, MEAN, STD)


# 80 tokens of this vocabulary are no longer, 75 are read; its tokenizer would brood over a word of 100,000 letters for hours.
_MOST_LETTERS = 80 * 33
_SPECIAL = re.compile("<(start_of_text|end_of_text)>")  # spelled out in a text they are text


def _architecture(folder: Path) -> dict[str, Any]:
    path = folder / "open_clip_config.json"
    if not path.is_file():
        return open_clip.get_model_config("ViT-H-14")
    try:
        return json.loads(path.read_text(encoding="utf-8"))["model_cfg"]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is not an OpenCLIP configuration; remove it, and the network is ViT-H-14") from error
