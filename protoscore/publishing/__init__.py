"""What publishing to the Hub is made of: the files of a folder, its card, the checks by kind, and the client."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What can be published."""

    DATASET = "dataset"
    MODEL = "model"
    SPACE = "space"
    MODULE = "module"
    RESULTS = "results"

    @property
    def repo_type(self) -> str:
        """The Hub's kind of repository."""
        return {Kind.MODULE: "space", Kind.RESULTS: "model"}.get(self, self.value)
