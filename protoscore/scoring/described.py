"""Scorers as a manifest describes them: enough to name, and to find again, what they have scored."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from protoscore.errors import DatasetError
from protoscore.folder import MANIFEST, read_manifest
from protoscore.scorers import Facts, Scorer


class DescribedScorer(NamedTuple):
    """A scorer without its weights."""

    name: str
    revision: str
    parameters: dict[str, Any]
    batch_size: int
    facts: Facts
    batch_free: bool


AnyScorer = Scorer | DescribedScorer


def describe(scorer: AnyScorer) -> dict[str, Any]:
    """What a manifest says of a scorer."""
    return scorer.facts.model_dump() | {
        "name": scorer.name, "revision": scorer.revision, "parameters": scorer.parameters, "batch_size": scorer.batch_size,
    } | ({"batch_free": True} if getattr(scorer, "batch_free", False) else {})  # fmt: skip


def warn_of(scorers: Iterable[AnyScorer]) -> None:
    """Say on stderr which metrics know one kind of pictures only; for pictures that may be of another."""
    for scorer in scorers:
        if known := scorer.facts.trained_on:
            print(
                f"{scorer.name} was trained on {known} only: on other pictures its numbers mean nothing. Metrics for "
                "photographs: protoscore scorers", file=sys.stderr,
            )  # fmt: skip


def described_in(run: Path) -> list[DescribedScorer]:
    """The scorers of a run, in the order of its table; none where it has not come to one.

    Raises:
        DatasetError: the folder is another stage's, or its manifest is damaged.
    """
    if not (run / MANIFEST).is_file():
        return []
    found = read_manifest(run, "score")["parameters"]["scorers"]
    try:
        return [_scorer(entry) for entry in found]
    except (KeyError, TypeError, ValidationError) as error:
        raise DatasetError(f"{run / MANIFEST} does not describe its scorers; delete it and score again") from error


def _scorer(entry: dict[str, Any]) -> DescribedScorer:
    facts = Facts.model_validate({name: entry[name] for name in Facts.model_fields if name in entry})
    identity = entry["name"], entry["revision"], entry["parameters"], int(entry["batch_size"])
    return DescribedScorer(*identity, facts, entry.get("batch_free", False))
