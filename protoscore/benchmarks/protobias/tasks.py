"""What a leaderboard of ProtoBias ranks: the quantities that are best at 1 (preference and bias gap are not)."""

from __future__ import annotations

import yaml

from protoscore.reporting.results import Task

TASKS = (
    Task(id="incongruent", config="pairs"),
    Task(id="congruent", config="controls"),
    Task(id="sensitivity", config="controls"),
    Task(id="elements", config="foils"),
)


def eval_yaml(name: str) -> str:
    """``eval.yaml`` of a ProtoBias dataset called ``name``: how the Hub learns that it is a benchmark."""
    body = {
        "name": name,
        "description": (
            "Does a text-to-image metric follow the text, or what looks typical? Each task is a share of comparisons that "
            "the metric orders rightly, from 0 to 1; a tie counts as wrong. Read them together: a metric that "
            "has learned to prefer the unusual is near 1 in incongruent and near 0 in congruent, and one that ignores the "
            "nouns of the text is near 0.5 in elements."
        ),
        "evaluation_framework": "protoscore",
        "tasks": [task.model_dump() for task in TASKS],
    }
    return yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=110)
