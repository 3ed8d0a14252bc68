"""What BLIP-2's two scores have in common: one checkpoint, and how pictures are prepared for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protoscore.errors import needs
from protoscore.scorers import Separable
from protoscore.scorers._two_tower import named

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

HUB_ID = "Salesforce/blip2-itm-vit-g"


class Blip2Scorer(Separable):
    """Subclasses name themselves by ``metric`` and say by ``rule``, for the record, how the score is made."""

    metric: str
    rule: str

    def __init__(
        self, source: str | None = None, revision: str | None = None, device: str | None = None,
        dtype: str = "float32", batch_size: int = 16,
    ):  # fmt: skip
        with needs("models"):
            from protoscore.modeling.blip2 import Blip2
        self._model = Blip2(source or HUB_ID, revision, device, dtype)
        self.name = named(self.metric, source)
        self.revision = self._model.revision
        self.parameters: dict[str, Any] = {**self._model.parameters, "rule": self.rule}
        self.batch_size = batch_size

    def prepare(self, image: Image) -> torch.Tensor:
        from protoscore.modeling.pixels import stretched

        return stretched(image, self._model.side)
