"""Blocks on many machines, by Ray Data (extra ``distributed``). One process reads the plan and keeps the results; workers that
hold the weights score blocks and send the outcomes back. The rows must be readable on every machine: a Hub id, or a folder on a
disk that all of them see.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator
from typing import Any

from protoscore.catalog import load
from protoscore.errors import needs
from protoscore.schema import Status
from protoscore.scorers import Scorer
from protoscore.scoring.engine import PairOutcome, Scored, score_blocks
from protoscore.scoring.index import Block
from protoscore.sources.rows import Rows

PER_TASK = 4  # blocks that a worker takes at a time


class RayEngine:
    """An engine for ``scoring.score_rows``.

    Args:
        spec_of: how a worker makes a scorer, by the scorer's name: what was given to ``--scorer``, and its options.
        workers: how many at once; None: one a GPU of the cluster, or one a core where there is no GPU.

    Raises:
        MissingExtra: Ray is not installed.
    """

    def __init__(self, spec_of: dict[str, tuple[str, dict[str, Any]]], workers: int | None = None):
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        with needs("distributed"):
            import ray
        self._spec_of = spec_of
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        if not ray.is_initialized():
            ray.init(log_to_driver=False, logging_level=logging.ERROR)  # RAY_ADDRESS names a running cluster
        resources = ray.cluster_resources()
        self._gpus = 1 if resources.get("GPU", 0) >= 1 else 0
        self._workers = workers or max(1, int(resources["GPU"] if self._gpus else resources.get("CPU", 1)))

    def __call__(self, rows: Rows, scorer: Scorer, blocks: Iterable[Block]) -> Iterator[Scored]:
        import ray

        todo = {block.number: block for block in blocks}
        if not todo:
            return
        lines = [{"block": json.dumps(block)} for block in todo.values()]
        ray.data.DataContext.get_current().enable_progress_bars = False
        workers = min(self._workers, -(-len(lines) // PER_TASK))
        done = ray.data.from_items(lines, override_num_blocks=-(-len(lines) // PER_TASK)).map_batches(
            _Worker,
            fn_constructor_args=(rows, *self._spec_of[scorer.name], scorer.batch_size),
            batch_size=PER_TASK,
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=workers),
            num_cpus=1,
            num_gpus=self._gpus,
        )
        for row in done.iter_rows():
            outcomes = [PairOutcome(Status(state), *rest) for state, *rest in json.loads(row["outcomes"])]
            yield Scored(todo[row["number"]], outcomes, json.loads(row["made_with"]))


class _Worker:
    """Holds the weights and scores the blocks that come by."""

    def __init__(self, rows: Rows, spec: str, options: dict[str, Any], batch_size: int):
        self._rows, self._scorer = rows, load("scorers", spec, **options)
        self._scorer.batch_size = batch_size

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        scored = list(score_blocks(self._rows, self._scorer, [Block(*json.loads(line)) for line in batch["block"]]))
        return {
            "number": [each.block.number for each in scored],
            "outcomes": [json.dumps(each.outcomes) for each in scored],
            "made_with": [json.dumps(each.made_with) for each in scored],
        }
