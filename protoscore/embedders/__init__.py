"""Components that turn a picture into a vector. One file each; ``create`` returns an :class:`Embedder`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image


class Embedder(Protocol):
    """Gives a vector per picture. ``name``, ``revision`` and ``parameters`` are part of the key that a vector is kept under:
    whatever moves it belongs into one of them. The vector of a picture depends on that picture alone, but for rounding.
    """

    name: str
    revision: str  # of the weights: a commit, or a digest of the files
    parameters: dict[str, Any]
    batch_size: int
    dimension: int

    def embed(self, images: Sequence[Image]) -> NDArray[np.float32]:
        """(n, dimension) vectors of RGB pictures of any size, in order; not normalised."""
        ...
