"""Components that make pictures. ``create(source=None, **options)`` returns a :class:`Generator`. One file each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pydantic import BaseModel

from protoscore.schema import Status

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image


class Wanted(NamedTuple):
    """One picture to make. A diffusion model reads the text, the scene world reads the spec where there is one."""

    id: str  # no other wanted picture has it
    text: str  # its own description, which it is later held against
    seed: int  # in [0, 2**63)
    spec: BaseModel | None = None  # what it must show, as structure
    fields: Mapping[str, str] = {}  # whatever the benchmark wants to find beside the picture again; the same names in all
    group: str = ""  # pictures of one group stand together, and are of use together only: one refused, all refused


class Generated(NamedTuple):
    """What came of it: a picture, or a state and why. ``geometry``: what the generator knows it drew, as JSON holds it.

    A picture is an RGB image, or a float array (height, width, 3) in [0, 1], which the stage checks and turns into one.
    """

    image: Image | np.ndarray | None
    status: Status = Status.OK
    reason: str = ""
    geometry: Any = None


class Generator(Protocol):
    """Makes pictures, one per :class:`Wanted`, in order. It may raise: the stage finds out which one it cannot make."""

    name: str
    revision: str  # of the weights, or of what draws
    parameters: dict[str, Any]  # what else moves a picture; for manifests, so no path and no key
    photographic: bool  # False: every table and card must say that these are scenes
    batch_size: int

    def generate(self, wanted: Sequence[Wanted]) -> list[Generated]: ...
