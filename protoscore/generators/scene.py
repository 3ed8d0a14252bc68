"""The embedded generator: draws the structured scene. Needs no model, no network and about 3 ms a picture."""

from __future__ import annotations

from protoscore.generators import Picture, Request
from protoscore.scenes.draw import draw_scene
from protoscore.scenes.sprites import manifest


class SceneGenerator:
    """Draws scenes of ``size`` x ``size`` px. The same request gives the same pixels on one machine."""

    name = "scene"
    photographic = False

    def __init__(self, size: int = 256):
        self.parameters = {"size": size}

    def refuses(self, subject: str) -> str | None:
        """Why ``subject`` cannot honestly be drawn; None when it can."""
        return manifest().refused.get(subject)

    def generate(self, requests: list[Request]) -> list[Picture]:
        return [self._one(request) for request in requests]

    def _one(self, request: Request) -> Picture:
        refusal = self.refuses(request.scene.subject)
        if refusal:
            return Picture(None, refusal=f"{request.scene.subject}: {refusal}")
        image, elements = draw_scene(request.scene, request.seed, self.parameters["size"])
        return Picture(image, geometry=elements)


def create(size: int = 256) -> SceneGenerator:
    return SceneGenerator(size)
