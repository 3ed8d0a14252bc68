"""Components that write triplets from a taxonomy. One file each; the file name is the component's name.

``create(source=None, **options)`` returns a :class:`Writer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from protoscore.benchmarks.protobias.schema import Domain, Triplet
    from protoscore.benchmarks.protobias.taxonomy import Contrast, Taxonomy


class Writer(Protocol):
    """Writes triplets; the same arguments give the same ones. ``name``, ``revision`` and ``parameters`` are for manifests."""

    name: str
    revision: str
    parameters: dict[str, Any]

    def write(
        self, taxonomy: Taxonomy, counts: Mapping[Domain, int], seed: int = 0, split: str | None = None,
        refuses: Callable[[str], str | None] = lambda subject: None, keeps: Callable[[Contrast], bool] = lambda contrast: True,
    ) -> Iterator[Triplet]:  # fmt: skip
        """``counts[domain]`` distinct triplets of each domain.

        Args:
            split: one side of the fixed train/test partition only.
            refuses: why a subject cannot be drawn, or None; contrasts with such a subject are left out.
            keeps: whether a contrast may be used.

        Raises:
            ConfigError: the taxonomy cannot yield that many.
        """
        ...
