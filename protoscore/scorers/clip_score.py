"""CLIPScore (Hessel et al. 2021, arXiv 2104.08718), in the three forms that go by that name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from protoscore.errors import needs
from protoscore.scorers import Facts, protobias_accuracy, split_variant
from protoscore.scorers._two_tower import TwoTower, named

if TYPE_CHECKING:
    import torch


class Form(NamedTuple):
    hub_id: str
    prefix: str
    weight: float
    clamp: bool  # negative scores become 0, each for itself
    weights: int


B32, L14 = "openai/clip-vit-base-patch32", "openai/clip-vit-large-patch14"
FORMS = {
    "paper": Form(B32, "A photo depicts ", 2.5, clamp=True, weights=151_277_313),
    # torchmetrics clamps the mean over a dataset and not the pairs, so a pair is left as it is.
    "torchmetrics": Form(L14, "", 100.0, clamp=False, weights=427_616_513),
    "cosine": Form(L14, "", 1.0, clamp=False, weights=427_616_513),
}


class ClipScore(TwoTower):
    """``paper``: 2.5 max(cos, 0) with ViT-B/32 and a prefix, in [0, 2.5]. ``torchmetrics``: 100 cos with ViT-L/14.
    ``cosine``: cos with ViT-L/14. Numbers of different forms, or of different backbones, must not be compared.
    """

    facts = Facts(
        question="How close are picture and text in CLIP's space?",
        paper="arXiv 2104.08718",
        hub_id=B32,
        licence="MIT",
        low=0.0,
        high=2.5,
        variants=tuple(FORMS),
        weights=151_277_313,
        known_bias=protobias_accuracy(0.25, 0.28, 0.32) + ", with ViT-L/14",
    )

    def __init__(
        self, source: str | None = None, variant: str | None = None, revision: str | None = None,
        device: str | None = None, dtype: str = "float32", batch_size: int = 32,
    ):  # fmt: skip
        name = named("clip_score", source, variant)
        variant, source = split_variant(source, tuple(FORMS), variant)
        self._form = form = FORMS[variant]
        with needs("models"):
            from protoscore.modeling.towers import Towers
        towers = Towers(source or form.hub_id, ("clip",), revision=revision, device=device, dtype=dtype)
        rule = f"{form.weight:g} * {'max(cos, 0)' if form.clamp else 'cos'}"
        super().__init__(name, towers, batch_size, rule, form.prefix)
        bounds = {"low": 0.0 if form.clamp else -form.weight, "high": form.weight}
        self.facts = self.facts.model_copy(update={**bounds, "hub_id": form.hub_id, "weights": form.weights})

    def _from_cosine(self, cosines: torch.Tensor) -> torch.Tensor:
        return self._form.weight * (cosines.clamp(min=0.0) if self._form.clamp else cosines)


def create(source: str | None = None, **options) -> ClipScore:
    return ClipScore(source, **options)
