"""What a benchmark found, in one form for all: scorer or model -> group -> quantity -> estimate, as JSON beside the run.

``protoscore publish results``, the leaderboard and the Space read this file and know no benchmark.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

import protoscore
from protoscore.errors import DatasetError
from protoscore.folder import manifest_hash, write_text
from protoscore.stats.resampling import Estimate

NAME = "results.json"
ALL = "all"  # the group of everything


def _estimate(value: Any) -> Any:
    """An estimate from JSON, where a number that is not defined is null."""
    if isinstance(value, dict):
        return tuple(math.nan if value.get(name) is None else value[name] for name in ("value", "low", "high")) + tuple(
            value.get(name, 0) for name in ("n", "left_out", "ties")
        )
    return value


Estimates = dict[str, dict[str, dict[str, Annotated[Estimate, BeforeValidator(_estimate)]]]]


class Task(BaseModel):
    """A figure that a leaderboard ranks: a quantity of everything, higher is better. ``config`` and ``split`` say on what."""

    model_config = ConfigDict(frozen=True)

    id: str
    config: str = "default"
    split: str = "test"


class Results(BaseModel):
    """Estimates by scorer or model, group and quantity; the group ``all`` comes first.

    Attributes:
        columns: scorer or model -> further columns of its leaderboard row.
        details: whatever else the benchmark's page shows, as plain values.
    """

    benchmark: str
    estimates: Estimates
    tasks: list[Task] = []
    columns: dict[str, dict[str, Any]] = {}
    details: dict[str, Any] = Field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The scorers or models, in order."""
        return list(self.estimates)

    def quantities(self) -> list[str]:
        """Every quantity of any of them, in order."""
        groups = (group for found in self.estimates.values() for group in found.values())
        return list(dict.fromkeys(name for group in groups for name in group))


def write_results(results: Results, run: Path, folder: Path | None = None) -> Path:
    """Write ``results.json`` into ``folder`` (default: the run itself) and return its path."""
    path = (folder or run) / NAME
    made = {"protoscore": protoscore.__version__, "run": manifest_hash(run)}
    body = {"benchmark": results.benchmark, **made, **plain({name: getattr(results, name) for name in _BODY})}
    write_text(path, json.dumps(body, indent=1, ensure_ascii=False) + "\n")
    return path


_BODY = ("tasks", "estimates", "columns", "details")


def read_results(source: Path) -> Results:
    """The results of a run, or of a results file.

    Raises:
        DatasetError: there are none, or the file holds something else.
    """
    path = source / NAME if source.is_dir() else source
    try:
        return Results.model_validate_json(path.read_bytes())
    except OSError as error:
        raise DatasetError(f"{path} cannot be read ({error.strerror}); 'protoscore report RUN' writes it") from error
    except ValidationError as error:
        raise DatasetError(f"{path} is not a results file of protoscore; 'protoscore report RUN' writes one") from error


def plain(value: Any) -> Any:
    """``value`` as JSON holds it: named tuples and models as objects, a number that is not finite as null."""
    if isinstance(value, BaseModel):
        return plain(value.model_dump())
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class EstimateLine(NamedTuple):
    """One line of a table of estimates."""

    who: str
    group: str
    quantity: str
    estimate: Estimate


def lines(results: Results) -> list[EstimateLine]:
    """Every estimate, in order."""
    return [
        EstimateLine(who, group, quantity, estimate)
        for who, groups in results.estimates.items()
        for group, found in groups.items()
        for quantity, estimate in found.items()
    ]
