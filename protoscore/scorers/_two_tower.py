"""What the metrics have in common that compare one vector of a picture with one of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from protoscore.batches import batched
from protoscore.scorers import Facts, Separable

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image


class TwoTower(Separable):
    """A function of the cosine between a picture and a text. ``towers`` gives the unit vectors.

    Args:
        name: as the user asked for it.
        towers: has ``prepare``, ``images``, ``texts``, ``revision`` and ``parameters``, as
            :class:`protoscore.modeling.towers.Towers` has.
        prefix: put before each text as it is.
        rule: how the score follows from the cosine, for the record.
    """

    facts: Facts

    def __init__(self, name: str, towers: Any, batch_size: int, rule: str, prefix: str = ""):
        self.name, self.batch_size = name, batch_size
        self.revision: str = towers.revision
        self.parameters: dict[str, Any] = {**towers.parameters, "prefix": prefix, "rule": rule}
        self._towers, self._prefix = towers, prefix

    def prepare(self, image: Image) -> Any:
        return self._towers.prepare(image)

    def encode_images(self, images: Sequence[Any]) -> list[torch.Tensor]:
        return [vector for part in batched(images, self.batch_size) for vector in self._towers.images(part)]

    def encode_texts(self, texts: Sequence[str]) -> tuple[list[torch.Tensor], list[bool]]:
        vectors: list[torch.Tensor] = []
        cut: list[bool] = []
        for part in batched(texts, self.batch_size):
            found, found_cut = self._towers.texts([self._prefix + text for text in part])
            vectors += list(found)
            cut += found_cut
        return vectors, cut

    def match(self, image_features: Sequence[torch.Tensor], text_features: Sequence[torch.Tensor]) -> list[float]:
        import torch

        cosines = (torch.stack(list(image_features)) * torch.stack(list(text_features))).sum(-1)
        return self._from_cosine(cosines.double().cpu()).tolist()

    def _from_cosine(self, cosines: torch.Tensor) -> torch.Tensor:
        return cosines


def named(metric: str, source: str | None, variant: str | None = None) -> str:
    """The name of a scorer: what the user would type to get it again."""
    return ":".join(part for part in (metric, variant, source) if part)
