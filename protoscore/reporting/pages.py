"""HTML pages that stand alone: one file, no script, nothing loaded from elsewhere."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined

from protoscore.errors import ProtoscoreError
from protoscore.figures import number
from protoscore.folder import read_manifest
from protoscore.sources.decoding import open_image
from protoscore.sources.pictures import named_inside
from protoscore.stats.resampling import Estimate

THUMBNAIL = 192  # px
COLOURS = (
    "#2456a6", "#c2571a", "#1b7a44", "#8a3fa0", "#b3362b", "#0f7f8c", "#8a6d1a", "#5b6675",
    "#d0478f", "#6b4a2b", "#4f9d1f", "#6a6ae0",
)  # fmt: skip


def environment(*folders: Path) -> Environment:
    """Templates with everything escaped; a missing value is an error and not an empty place.

    Args:
        folders: of a benchmark's own templates; ``page.html.jinja`` and the other shared ones are found after them.
    """
    loader = ChoiceLoader([*map(FileSystemLoader, folders), PackageLoader("protoscore", "templates")])
    env = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    env.filters["interval"] = lambda e, signed=False: f"[{number(e.low, signed)}, {number(e.high, signed)}]"
    env.filters["number"] = number
    env.filters["short"] = lambda text, length=40: text if len(text) <= length else f"{text[: length - 1]}…"
    env.tests["number"] = lambda e: isinstance(e, Estimate) and bool(np.isfinite(e.value))
    env.globals["colours"] = COLOURS
    return env


def pictures_of(run: Path, names: Iterable[str]) -> dict[str, str]:
    """Thumbnails of pictures of a run over a team's own, by name; those that are not at hand any more are left out."""
    place = Path(read_manifest(run)["parameters"].get("source", ""))
    folder, found = place if place.is_dir() else place.parent, {}
    for name in dict.fromkeys(names):
        with suppress(ProtoscoreError, OSError):
            found[name] = thumbnail(named_inside(folder, [name])[name][1].read_bytes())
    return found


def thumbnail(data: bytes) -> str:
    """A small picture as a data URI.

    Raises:
        ImageError: the bytes are not a picture.
    """
    image = open_image(data)
    image.thumbnail((THUMBNAIL, THUMBNAIL))
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=85)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()
