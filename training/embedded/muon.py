"""Muon (Jordan et al., 2024) for the weight matrices and AdamW for the rest, as one optimizer of a Trainer.

torch has a Muon too, but it orthogonalizes in bfloat16, which takes many times as long on a CPU without bfloat16 instructions.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

QUINTIC = (3.4445, -4.7750, 2.0315)  # Jordan's coefficients: five rounds bring every singular value to about 1


class Muon(torch.optim.AdamW):
    """Steps of equal size in every direction for matrices that map states to states; AdamW for all other weights.

    Args:
        lr: of the matrices, in AdamW's scale: a step changes a weight by about a fifth of it.
        rest_lr: of embeddings, vectors, and whatever ``is_matrix`` leaves out.
        is_matrix: whether the weight of that name is such a matrix.
        pace: by which both rates are multiplied for the weight of that name.
    """

    def __init__(
        self, model: nn.Module, lr: float, rest_lr: float, is_matrix: Callable[[str, Tensor], bool],
        weight_decay: float = 0.01, pace: Callable[[str], float] = lambda name: 1.0,
    ):  # fmt: skip
        groups: dict[tuple[bool, float], list[Tensor]] = {}
        for name, weight in model.named_parameters():
            groups.setdefault((is_matrix(name, weight), pace(name)), []).append(weight)
        settings = [
            {"params": weights, "muon": muon, "lr": (lr if muon else rest_lr) * factor}
            for (muon, factor), weights in groups.items()
        ]
        super().__init__(settings, lr=lr, betas=(0.95, 0.98), weight_decay=weight_decay)

    @torch.no_grad()
    def step(self, closure=None):
        loss = closure() if closure else None
        for group in self.param_groups:
            if group["muon"]:
                for weight in group["params"]:
                    if weight.grad is not None:
                        self._turn(weight, group)
                        weight.grad = None  # done: AdamW leaves out what has no gradient
        super().step()
        return loss

    def _turn(self, weight: Tensor, group: dict) -> None:
        momentum = group["betas"][0]
        state = self.state[weight]
        if not state:  # AdamW looks for "step" in every weight's state when a checkpoint is loaded
            state.update(momentum=torch.zeros_like(weight), step=torch.tensor(0.0))
        mean = state["momentum"]
        mean.lerp_(weight.grad, 1 - momentum)
        update = orthogonal(weight.grad.lerp(mean, momentum))
        weight.mul_(1 - group["lr"] * group["weight_decay"])
        weight.add_(update, alpha=-0.2 * group["lr"] * max(weight.shape) ** 0.5)


def orthogonal(matrix: Tensor) -> Tensor:
    """``matrix`` (2-D) with its singular values brought to about 1, by five Newton-Schulz rounds."""
    a, b, c = QUINTIC
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if tall else x
