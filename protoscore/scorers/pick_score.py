"""PickScore (Kirstain et al. 2023, arXiv 2305.01569): CLIP ViT-H/14 tuned on people's choices between two pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from protoscore.errors import needs
from protoscore.scorers import Facts, protobias_accuracy
from protoscore.scorers._two_tower import TwoTower, named

if TYPE_CHECKING:
    import torch

PROCESSOR = "laion/CLIP-ViT-H-14-laion2B-s32B-b79K"  # what the authors load beside their weights


class PickScore(TwoTower):
    """exp(s) cos with the learned scale s. Among the pictures of one prompt, softmax of the scores is the share of people
    who would pick each. A folder that holds no tokenizer takes the authors' one, by ``processor``.
    """

    facts = Facts(
        question="Which picture would people pick for this prompt?",
        paper="arXiv 2305.01569",
        hub_id="yuvalkirstain/PickScore_v1",
        licence="MIT for the code; none is stated for the weights",
        low=-100.0,  # CLIP keeps its scale at 100 or below
        high=100.0,
        weights=986_109_441,
        known_bias=protobias_accuracy(0.32, 0.34, 0.31),
    )

    def __init__(
        self, source: str | None = None, processor: str | None = None, revision: str | None = None,
        device: str | None = None, dtype: str = "float32", batch_size: int = 16,
    ):  # fmt: skip
        with needs("models"):
            from protoscore.modeling.towers import Towers
        weights = source or str(self.facts.hub_id)
        if processor is None and not (Path(weights).expanduser() / "tokenizer_config.json").is_file():
            processor = PROCESSOR
        towers = Towers(weights, ("clip",), processor, revision=revision, device=device, dtype=dtype)
        self._scale = towers.model.logit_scale.detach().double().exp().item()
        super().__init__(named("pick_score", source), towers, batch_size, "exp(logit_scale) * cos")

    def _from_cosine(self, cosines: torch.Tensor) -> torch.Tensor:
        return self._scale * cosines


def create(source: str | None = None, **options) -> PickScore:
    return PickScore(source, **options)
