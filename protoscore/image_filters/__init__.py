"""Components that score one picture against its own description, from 1 to 10 (paper, section 4.2). One file each.

``create(source=None, **options)`` returns an :class:`ImageFilter`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from protoscore.schema import Status


class Shown(NamedTuple):
    """What a filter may look at: one picture and what that picture was to show. Never a pair, never a neutral text."""

    id: str
    image: bytes
    text: str  # the picture's own description
    spec: Mapping[str, Any] | None = None  # the same as structure, where there is one
    geometry: Any = None  # what the generator noted while drawing


class Measured(NamedTuple):
    """A score from 1 to 10, or the state that says why there is none."""

    score: int | None
    status: Status = Status.OK
    reason: str = ""  # why the score is no higher, or why there is none


class ImageFilter(Protocol):
    """Measures pictures. ``name``, ``revision`` and ``parameters`` say which measurement it is."""

    name: str
    revision: str
    parameters: dict[str, Any]

    def measure(self, pictures: Iterator[Shown], folder: Path) -> Iterable[Measured]:
        """One measurement per picture, in order. It may take many pictures before it gives the first.

        Args:
            folder: of the stage; what was paid for may be kept there.
        """
        ...
