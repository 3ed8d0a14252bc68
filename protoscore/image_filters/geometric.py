"""The scene world's filter: the geometry that was measured while drawing (see :mod:`protoscore.scenes.geometry`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from protoscore.errors import ConfigError
from protoscore.image_filters import Measured, Shown
from protoscore.scenes.draw import Element
from protoscore.scenes.geometry import RULES, assess
from protoscore.scenes.spec import SceneSpec


class Geometric:
    """Not a model's opinion: the shares of every element that can be seen, and where they stand."""

    name = "geometric"
    revision = RULES

    def __init__(self) -> None:
        self.parameters: dict[str, Any] = {}

    def measure(self, pictures: Iterator[Shown], folder: Path) -> Iterator[Measured]:
        """Raises: ConfigError on a picture whose generator does not know its geometry."""
        for shown in pictures:
            if shown.geometry is None or shown.spec is None:
                raise ConfigError("the geometric filter works on scenes only; choose a filter that looks at the picture")
            score, reason = assess(SceneSpec.model_validate(shown.spec), [Element(*element) for element in shown.geometry])
            yield Measured(score, reason=reason)


def create() -> Geometric:
    return Geometric()
