"""The scene world's filter: the geometry that was measured while drawing (see :mod:`protoscore.scenes.geometry`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from protoscore.errors import ConfigError
from protoscore.scenes.draw import Element
from protoscore.scenes.geometry import assess

if TYPE_CHECKING:
    from protoscore.filters import Shown


def create() -> Callable[[Shown], tuple[int, str]]:
    """The filter as a component.

    Raises:
        ConfigError: when called on a picture whose generator does not know its geometry.
    """

    def check(shown: Shown) -> tuple[int, str]:
        if shown.geometry is None:
            raise ConfigError("the geometric filter works on scenes only; choose a filter that looks at the picture")
        return assess(shown.scene, [Element(*element) for element in shown.geometry])

    return check
