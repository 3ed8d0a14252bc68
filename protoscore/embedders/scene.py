"""The vision tower of a Qwen3-VL checkpoint: the mean of the states that it hands to the language model.

Without a source it is that of ``scene-judge-tiny``, which ships and knows drawn scenes only.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from protoscore.errors import CheckpointError, needs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image


class SceneEmbedder:
    """Means over the merged patches, of as many dimensions as the language model is wide.

    Args:
        source: folder or Hub id of any Qwen3-VL checkpoint.
        revision: branch, tag or commit of the Hub.
    """

    def __init__(
        self, source: str | None = None, revision: str | None = None, device: str | None = None,
        dtype: str = "float32", batch_size: int = 32,
    ):  # fmt: skip
        with needs("models"):
            from transformers import AutoModelForImageTextToText

            from protoscore.modeling.checkpoint import fetch, load_model
            from protoscore.modeling.patches import embed_patches_by_product
            from protoscore.modeling.records import image_processor_of, rules_digest
        shipped = files("protoscore") / "assets" / "scene-judge-tiny"
        checkpoint = fetch(source or str(shipped), revision)
        model = load_model(AutoModelForImageTextToText, checkpoint, dtype, device)
        tower = getattr(getattr(model, "model", None), "visual", None)
        if tower is None or not hasattr(tower, "spatial_merge_size"):
            raise CheckpointError(f"{checkpoint.source} has no vision tower of Qwen's; for others there is vision_tower:MODEL")
        if model.device.type == "cpu":
            embed_patches_by_product(tower)
        self._tower, self._processor = tower, image_processor_of(checkpoint)
        self.name = f"scene:{source}" if source else "scene"
        self.revision = checkpoint.revision
        self.parameters: dict[str, Any] = {"dtype": dtype, "processor": rules_digest(self._processor)}
        self.batch_size, self.dimension = batch_size, int(tower.config.out_hidden_size)

    def embed(self, images: Sequence[Image]) -> NDArray[np.float32]:
        import torch

        from protoscore.modeling.encode import not_too_long

        inputs = self._processor(images=[not_too_long(image.convert("RGB")) for image in images], return_tensors="pt")
        pixels, grid = inputs["pixel_values"].to(self._tower.device, self._tower.dtype), inputs["image_grid_thw"]
        with torch.inference_mode():
            merged = self._tower(pixels, grid_thw=grid.to(self._tower.device)).pooler_output
        parts = merged.float().split((grid.prod(-1) // self._tower.spatial_merge_size**2).tolist())
        return torch.stack([part.mean(0) for part in parts]).cpu().numpy()


def create(source: str | None = None, **options: Any) -> SceneEmbedder:
    return SceneEmbedder(source, **options)
