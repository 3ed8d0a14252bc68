"""``eval.yaml`` of a benchmark dataset and ``.eval_results/*.yaml`` of a model, as the Hub reads them.

The figures of a model come out of the JSON that ``protoscore report`` wrote; none is typed by hand.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Annotated, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from protoscore.benchmarks.protobias.tasks import TASKS
from protoscore.errors import ConfigError, DatasetError, UnknownName

Text = Annotated[str, Field(min_length=1)]


class Task(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)

    id: Text
    config: Text = "default"
    split: Text


class EvalYaml(BaseModel):
    """What the Hub asks of ``eval.yaml``; it knows more keys, which pass as they are."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: Text
    description: Text
    evaluation_framework: Text
    tasks: Annotated[list[Task], Field(min_length=1)]


class Figure(BaseModel):
    """One estimate of a results file."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    left_out: int = 0


class Results(BaseModel):
    """What is read of a results file: scorer -> group -> quantity -> estimate."""

    scorers: dict[str, dict[str, dict[str, Figure]]]


class Entry(NamedTuple):
    """A file for the model's repository."""

    name: str
    text: str
    digest: str  # sha256 of the results file that its figures come from


def entry(source: Path, benchmark: str, scorer: str | None = None) -> Entry:
    """The ``.eval_results`` file of one scorer.

    Args:
        source: a results file, or the folder of a run that ``protoscore report`` has read.
        benchmark: ``ORG/NAME`` or ``ORG/NAME@REVISION`` of the dataset on the Hub.
        scorer: which scorer of the file; not needed where it has only one.

    Raises:
        ConfigError: ``benchmark`` is no such id.
        DatasetError: ``source`` holds no results, or no figure that a leaderboard could rank.
    """
    dataset, _, revision = benchmark.partition("@")
    check_repo_id("--benchmark", dataset)
    path = source / "report.json" if source.is_dir() else source
    try:
        data = path.read_bytes()
        results = Results.model_validate(json.loads(data))
    except OSError as error:
        raise DatasetError(f"{path} cannot be read ({error.strerror}); 'protoscore report RUN' writes it") from error
    except (ValueError, ValidationError) as error:
        raise DatasetError(f"{path} is no results file of protoscore; 'protoscore report RUN' writes one") from error
    digest = hashlib.sha256(data).hexdigest()
    figures = _of_scorer(results, path, scorer)
    pinned = {"revision": revision} if revision else {}
    rows = [
        {
            "dataset": {"id": dataset, "task_id": task, **pinned},
            "value": round(figure.value, 6),
            "notes": _notes(figure, digest),
        }
        for task, figure in figures.items()
        if figure.value is not None and math.isfinite(figure.value)
    ]
    if not rows:
        raise DatasetError(f"{path} holds none of {', '.join(TASKS)} as a number for this scorer")
    name = f".eval_results/{dataset.rsplit('/', 1)[1]}.yaml"
    return Entry(name, yaml.safe_dump(rows, sort_keys=False, allow_unicode=True, width=120), digest)


def check_repo_id(option: str, repo_id: str) -> None:
    """Refuse what cannot be the name of a repository.

    Raises:
        ConfigError: it is not ``ORG/NAME``, or has a character that the Hub does not take.
    """
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise ConfigError(f"{option}: {' '.join(str(error).split())}") from error
    if "/" not in repo_id:
        raise ConfigError(f"{option} {repo_id!r} names no owner; write ORG/NAME")


def _of_scorer(results: Results, path: Path, scorer: str | None) -> dict[str, Figure]:
    names = list(results.scorers)
    if scorer is None and len(names) != 1:
        raise ConfigError(f"{path} has results of {', '.join(names) or 'no scorer'}; say whose with --scorer NAME")
    if scorer is not None and scorer not in names:
        raise UnknownName("scorer in the results", scorer, names)
    everything = results.scorers[scorer or names[0]].get("all", {})
    return {task: everything[task] for task in TASKS if task in everything}


def _notes(figure: Figure, digest: str) -> str:
    interval = f"95 % interval [{figure.low:.3f}, {figure.high:.3f}], " if None not in (figure.low, figure.high) else ""
    return f"{interval}n = {figure.n}, {figure.left_out} left out; results file sha256 {digest[:12]}"
