"""Patch embeddings as the matrix products that they are: on a CPU, torch's convolution is much slower at the same sum."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import linear


class _Product(nn.Conv3d):
    """The same sum as the convolution's, where each input is one kernel large; any other input is convolved."""

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        if patches.shape[2:] != self.kernel_size:
            return super().forward(patches)
        return linear(patches.flatten(1), self.weight.flatten(1), self.bias)[..., None, None, None]


def embed_patches_by_product(model: nn.Module) -> None:
    """Let every patch embedding of ``model`` (a Conv3d that steps by its own size) multiply; weights and names stay."""
    for module in model.modules():
        by_patch = type(module) is nn.Conv3d and module.stride == module.kernel_size
        if by_patch and module.padding == (0, 0, 0) and module.groups == 1:
            module.__class__ = _Product
