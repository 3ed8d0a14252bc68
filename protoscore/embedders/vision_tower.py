"""Any image model of transformers, by folder or Hub id: ``vision_tower:facebook/dinov2-base``, ``vision_tower:CLIP_FOLDER``.

A model with a picture and a text side (CLIP, SigLIP, ALIGN) gives its projected picture vector; a vision transformer (DINOv2,
DINOv3, ViT) its first token, or with ``pool=mean`` the mean of all; a convolutional network the mean over the picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from protoscore.errors import CheckpointError, ConfigError, needs

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from PIL.Image import Image


class VisionTower:
    """Pictures are prepared by the checkpoint's own image processor, in its Pillow form where there is one.

    Args:
        source: folder or Hub id.
        pool: what is taken of a vision transformer's tokens; other models have one vector.
        revision: branch, tag or commit of the Hub.
    """

    def __init__(
        self, source: str, pool: Literal["first", "mean"] = "first", revision: str | None = None,
        device: str | None = None, dtype: str = "float32", batch_size: int = 32,
    ):  # fmt: skip
        with needs("models"):
            from transformers import AutoModel

            from protoscore.modeling.checkpoint import fetch, load_model
            from protoscore.modeling.records import image_processor_of, rules_digest
        checkpoint = fetch(source, revision)
        self._processor = image_processor_of(checkpoint)
        # A classifier's last layer is left over, and a pooler that was never trained is not read.
        self._model = load_model(AutoModel, checkpoint, dtype, device, may_lack=("pooler.",), may_have_more=True)
        self._pool = pool
        self.name = f"vision_tower:{source}"
        self.revision = checkpoint.revision
        self.parameters: dict[str, Any] = {"dtype": dtype, "pool": pool, "processor": rules_digest(self._processor)}
        self.batch_size = batch_size
        self.dimension = self._probe(checkpoint.source)

    def embed(self, images: Sequence[Image]) -> NDArray[np.float32]:
        import torch

        from protoscore.modeling.pixels import middle

        inputs = self._processor(images=[middle(image.convert("RGB")) for image in images], return_tensors="pt")
        with torch.inference_mode():
            return self._features(inputs.to(self._model.device, self._model.dtype)).float().cpu().numpy()

    def _features(self, inputs: Any) -> torch.Tensor:
        if hasattr(self._model, "get_image_features"):
            projected = self._model.get_image_features(**inputs)
            return getattr(projected, "pooler_output", projected)
        states = self._model(**inputs).last_hidden_state
        if states.ndim == 4:  # (n, channels, height, width) of a convolutional network
            return states.mean((2, 3))
        return states[:, 0] if self._pool == "first" else states.mean(1)

    def _probe(self, source: str) -> int:
        """How long the vectors are, of a grey picture."""
        from PIL import Image

        try:
            (vector,) = self.embed([Image.new("RGB", (64, 64), "grey")])
            return int(vector.shape[0])
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise CheckpointError(f"{source} holds no image model that gives one vector per picture") from error


def create(source: str | None = None, **options: Any) -> VisionTower:
    if not source:
        raise ConfigError("vision_tower needs a model: vision_tower:FOLDER_OR_HUB_ID, e.g. vision_tower:facebook/dinov2-base")
    return VisionTower(source, **options)
