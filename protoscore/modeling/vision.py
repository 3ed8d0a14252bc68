"""A vision tower that learns nothing looks at each picture once: under all its texts, in all epochs and evaluations."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch


class Seen(NamedTuple):
    """What the tower made of one picture: (tokens, hidden), and the same of each level that is fed into deeper layers."""

    tokens: torch.Tensor
    levels: tuple[torch.Tensor, ...]

    def to(self, device: torch.device | str) -> Seen:
        return Seen(self.tokens.to(device), tuple(level.to(device) for level in self.levels))

    @property
    def size(self) -> int:
        return sum(tensor.nbytes for tensor in (self.tokens, *self.levels))


class VisionCache:
    """Features of pictures by content, in CPU memory; the least recently used go first.

    Args:
        limit_gb: 10^9 bytes that are kept. A 512 px picture takes 5.2 MB in bfloat16 at the 4B size. 0 keeps nothing from one
            batch to the next.
    """

    def __init__(self, limit_gb: float = 0.0):
        self._limit, self._kept, self._size = limit_gb * 1e9, OrderedDict[int, Seen](), 0
        self._type: Any = None  # of the tower's outputs
        self.encoded = self.reused = 0  # pictures

    @torch.no_grad()
    def look(self, model: torch.nn.Module, inputs: Mapping[str, Any], names: Sequence[int]) -> dict[str, Any]:
        """``inputs`` with pixels exchanged for features.

        Args:
            names: one a picture, in the order of ``image_grid_thw``; the same name stands for the same picture.
        """
        rest = {key: value for key, value in inputs.items() if key != "pixel_values"}
        blocks = dict(zip(names, _blocks(inputs), strict=True))
        grids = dict(zip(names, inputs["image_grid_thw"], strict=True))
        new = [name for name in blocks if name not in self._kept]
        device = inputs["pixel_values"].device
        batch = {name: self._kept[name].to(device) for name in blocks if name in self._kept}
        if new:
            pixels, grid = torch.cat([blocks[name] for name in new]), torch.stack([grids[name] for name in new])
            out = _backbone(model).get_image_features(pixels, grid, return_dict=True)
            self._type, levels = type(out), getattr(out, "deepstack_features", None) or []
            batch |= {name: Seen(out.pooler_output[i], tuple(level[i] for level in levels)) for i, name in enumerate(new)}
        self.encoded += len(new)
        self.reused += len(names) - len(new)
        for name in blocks:
            self._keep(name, batch[name])
        shown = [batch[name] for name in names]
        fields: dict[str, Any] = {"pooler_output": tuple(one.tokens for one in shown)}
        if shown[0].levels:
            fields["deepstack_features"] = [tuple(one.levels[k] for one in shown) for k in range(len(shown[0].levels))]
        return rest | {"mm_encoder_outputs": {"image": self._type(**fields)}}

    def _keep(self, name: int, seen: Seen) -> None:
        if name in self._kept:
            self._kept.move_to_end(name)
        elif seen.size <= self._limit:
            self._kept[name] = seen.to("cpu")
            self._size += seen.size
        while self._size > self._limit:
            self._size -= self._kept.popitem(last=False)[1].size


def names_of(inputs: Mapping[str, Any]) -> torch.Tensor:
    """(pictures,) names by content: 63 bits of a digest of each picture's pixels."""
    digests = [hashlib.blake2b(block.contiguous().numpy().tobytes(), digest_size=8).digest() for block in _blocks(inputs)]
    return torch.tensor([int.from_bytes(digest, "big") >> 1 for digest in digests])


def frozen(model: torch.nn.Module) -> bool:
    """Whether no weight of the vision tower learns."""
    return not any(parameter.requires_grad for parameter in _backbone(model).visual.parameters())


def _backbone(model: torch.nn.Module) -> Any:
    """The part that owns the tower, under whatever wraps it (adapters, several processes)."""
    return next(module for module in model.modules() if isinstance(getattr(module, "visual", None), torch.nn.Module))


def _blocks(inputs: Mapping[str, Any]) -> tuple[torch.Tensor, ...]:
    return torch.split(inputs["pixel_values"], inputs["image_grid_thw"].prod(-1).tolist())
