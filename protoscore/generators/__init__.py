"""Components that make pictures. ``create(**options)`` returns a :class:`Generator`. One file each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from protoscore.scenes.spec import SceneSpec

if TYPE_CHECKING:
    from PIL.Image import Image


class Request(NamedTuple):
    """One picture to make. Diffusion models read the description, the scene world reads the spec."""

    description: str
    scene: SceneSpec
    seed: int


class Picture(NamedTuple):
    """What came of a request: an RGB image, or why there is none. ``geometry`` is what the generator knows it drew."""

    image: Image | None
    refusal: str | None = None
    geometry: list[Any] | None = None


class Generator(Protocol):
    """Makes pictures, one a request, in order. ``name`` and ``parameters`` go into manifests."""

    name: str
    parameters: dict[str, Any]
    photographic: bool  # False: every table and card must say that these are scenes

    def refuses(self, subject: str) -> str | None: ...

    def generate(self, requests: list[Request]) -> list[Picture]: ...
