"""``eval.yaml`` of a benchmark dataset and ``.eval_results/*.yaml`` of a model, as the Hub reads them.

The figures of a model come out of the JSON that ``protoscore report`` wrote; none is typed by hand.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Annotated, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, Field

from protoscore.errors import ConfigError, DatasetError, UnknownName
from protoscore.reporting.results import ALL, NAME, Results, Task, read_results
from protoscore.stats.resampling import Estimate

Text = Annotated[str, Field(min_length=1)]


class EvalYaml(BaseModel):
    """What the Hub asks of ``eval.yaml``; it knows more keys, which pass as they are."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: Text
    description: Text
    evaluation_framework: Text
    tasks: Annotated[list[Task], Field(min_length=1)]


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
        ConfigError: ``benchmark`` is not such an id.
        DatasetError: ``source`` holds no results, or no figure that a leaderboard could rank.
    """
    dataset, _, revision = benchmark.partition("@")
    check_repo_id("--benchmark", dataset)
    path = source / NAME if source.is_dir() else source
    results = read_results(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    estimates = _of_scorer(results, path, scorer)
    pinned = {"revision": revision} if revision else {}
    rows = [
        {
            "dataset": {"id": dataset, "task_id": task, **pinned},
            "value": round(e.value, 6),
            "notes": f"95 % interval {e.interval}, n = {e.n}, {e.left_out} left out; results file sha256 {digest[:12]}",
        }
        for task, e in estimates.items()
        if math.isfinite(e.value)
    ]
    if not rows:
        tasks = ", ".join(task.id for task in results.tasks) or "a task that a leaderboard could rank"
        raise DatasetError(f"{path} does not hold {tasks} as a number for this scorer")
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


def _of_scorer(results: Results, path: Path, scorer: str | None) -> dict[str, Estimate]:
    """The estimates that the tasks are about."""
    names = results.names
    if scorer is None and len(names) != 1:
        raise ConfigError(f"{path} has results of {', '.join(names) or 'no scorer'}; say whose with --scorer NAME")
    if scorer is not None and scorer not in names:
        raise UnknownName("scorer in the results", scorer, names)
    whole = results.estimates[scorer or names[0]].get(ALL, {})
    return {task.id: whole[task.id] for task in results.tasks if task.id in whole}
