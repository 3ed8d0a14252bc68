"""What one picture of the scene world must show, as structure."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from protoscore.typed_yaml import Strict


class SceneSpec(Strict):
    """What one picture must show, as structure. Exactly one of the five knobs is set; ``count`` is 1 otherwise."""

    subject: str
    extra: str
    environment: str
    count: int = Field(1, ge=1, le=5)
    color_tone: str | None = None
    layout_relation: Literal["left", "right", "in_front", "behind"] | None = None
    spatial: Literal["foreground", "background"] | None = None
    scale_size: Literal["smaller", "larger"] | None = None
