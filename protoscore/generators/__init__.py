"""Components that make pictures. ``create(source=None, **options)`` returns a :class:`Generator`. One file each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pydantic import BaseModel

from protoscore.scenes.spec import SceneSpec
from protoscore.schema import Status

if TYPE_CHECKING:
    from PIL.Image import Image


class Wanted(NamedTuple):
    """One picture to make. A diffusion model reads the text, the scene world reads the spec where there is one."""

    id: str  # no other wanted picture has it
    text: str  # its own description, which it is later held against
    seed: int
    spec: BaseModel | None = None  # what it must show, as structure
    fields: Mapping[str, str] = {}  # whatever the benchmark wants to find beside the picture again
    group: str = ""  # pictures of one group stand together, and are of use together only: one refused, all refused


class Generated(NamedTuple):
    """What came of it: an RGB image, or a state and why. ``geometry``: what the generator knows it drew, as JSON holds it."""

    image: Image | None
    status: Status = Status.OK
    reason: str = ""
    geometry: Any = None


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
