"""The embedded generator: draws the structured scene. Needs no model, no network and about 3 ms per picture."""

from __future__ import annotations

from collections.abc import Sequence

from protoscore.errors import ConfigError
from protoscore.generators import Generated, Wanted
from protoscore.scenes.alone import Alone, draw_alone
from protoscore.scenes.draw import draw_scene
from protoscore.scenes.people import Person, Two, Worker, draw_person, draw_two, draw_worker
from protoscore.scenes.spec import SceneSpec
from protoscore.scenes.sprites import drawing_revision, manifest
from protoscore.schema import Status


class SceneGenerator:
    """Draws scenes and people of ``size`` x ``size`` px. The same wish gives the same pixels on one machine."""

    name = "scene"
    photographic = False
    batch_size = 16

    def __init__(self, size: int = 256):
        if isinstance(size, bool) or not isinstance(size, int) or not 16 <= size <= 4096:
            raise ConfigError(f"scene: size is a number of pixels from 16 to 4096, not {size!r}")
        self.revision = drawing_revision()
        self.parameters = {"size": size}

    def generate(self, wanted: Sequence[Wanted]) -> list[Generated]:
        return [self._one(one) for one in wanted]

    def _one(self, wanted: Wanted) -> Generated:
        size = self.parameters["size"]
        match wanted.spec:
            case SceneSpec(subject=subject) as spec:
                if subject in manifest().refused:
                    return Generated(None, Status.REFUSED, f"{subject}: {manifest().refused[subject]}")
                image, elements = draw_scene(spec, wanted.seed, size)
                return Generated(image, geometry=elements)
            case Person() as person:
                return Generated(draw_person(person, wanted.seed, size))
            case Worker() as worker:
                return Generated(draw_worker(worker, wanted.seed, size))
            case Two(left=left, right=right):
                return Generated(draw_two(left, right, wanted.seed, size))
            case Alone() as alone:
                return Generated(draw_alone(alone, wanted.seed, size))
            case None:
                return Generated(None, Status.REFUSED, "scenes are drawn from a spec, and this one has none")
        return Generated(None, Status.REFUSED, f"scenes are not drawn from a {type(wanted.spec).__name__}")


def create(size: int = 256) -> SceneGenerator:
    return SceneGenerator(size)
