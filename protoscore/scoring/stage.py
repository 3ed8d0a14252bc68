"""Stage: rows and some scorers in, one table of scores out. Resumes where it was stopped, alone or as one of many.

The table depends on the rows, the scorers and their batch size, and not on stops, on shards, or on what an earlier run left in
the store: what is computed is always a whole block (``scoring.index`` says why), and a result is kept under its block. A
scorer with ``batch_free = True`` says that its scores do not move with the batch at all; its results are kept by pair alone,
and what it has scored in another dataset or order is taken as it is. A batch that ran out of memory and was scored one by one
is the one exception in the last digit.

What failed: ``error`` (a machine's fault, perhaps) is tried again by the next run, every other state only with ``retry``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from protoscore.catalog import load
from protoscore.errors import ConfigError, UnknownName
from protoscore.folder import write_manifest, write_text
from protoscore.schema import Status
from protoscore.scorers import Scorer
from protoscore.scoring.engine import block_size, score_blocks
from protoscore.scoring.index import Index, read_index
from protoscore.scoring.run import Engine, Run
from protoscore.scoring.sharding import Shard, launched, ranks, use_own_gpu
from protoscore.scoring.store import Store
from protoscore.scoring.table import write_scores
from protoscore.sources.decoding import open_image as open_image  # where it used to live
from protoscore.sources.rows import Rows

AGAIN = frozenset({Status.ERROR})  # what every run tries again
STORE = "results.sqlite"
ENGINES = ("local", "ray")


class Counts(NamedTuple):
    """What a run did. ``rows`` and the failures are those of the table; without a table (a shard) they are 0."""

    rows: int
    scored_now: int
    not_ok: int
    reason: str = ""  # the commonest one among the failures


def load_scorers(specs: Sequence[str], batch_size: int | None = None) -> dict[str, Scorer]:
    """The scorers that ``specs`` (see ``protoscore.catalog``) stand for, by spec; on this process's own GPU if it has one."""
    use_own_gpu()
    found = {spec: load("scorers", spec) for spec in dict.fromkeys(specs)}
    for scorer in found.values() if batch_size else []:
        scorer.batch_size = batch_size
    return found


def score_named(
    rows: Rows, specs: Sequence[str], out: Path, shard: Shard | None = None, retry: Sequence[str] = (),
    batch_size: int | None = None, engine: str = "local",
) -> Counts:  # fmt: skip
    """:func:`score_rows` in the words of the command line.

    Raises:
        UnknownName: a state of ``retry`` or an ``engine`` that does not exist.
    """
    if engine not in ENGINES:
        raise UnknownName("engine", engine, ENGINES)
    states = [state for word in retry for state in _states(word)]
    if engine == "ray" and (shard or launched()):
        raise ConfigError("--engine ray shares the work by itself; leave --shard and torchrun out")
    scorers = load_scorers(specs, batch_size)
    if engine == "local":
        return score_rows(rows, list(scorers.values()), out, shard, states)
    from protoscore.scoring.ray_engine import RayEngine

    ray = RayEngine({scorer.name: spec for spec, scorer in scorers.items()})
    return score_rows(rows, list(scorers.values()), out, retry=states, engine=ray)


def score_rows(
    rows: Rows,
    scorers: list[Scorer],
    out: Path,
    shard: Shard | None = None,
    retry: Iterable[Status] = (),
    engine: Engine = score_blocks,
) -> Counts:
    """Score every row with every scorer and write ``out/scores.parquet``: the key columns of ``rows`` and scorer, status,
    reason, score, truncated.

    Under ``torchrun`` or ``accelerate launch`` each rank takes a part and the first one writes the table.

    Args:
        shard: do this part only, into a store of its own in ``out``, and write no table. A run without it takes the stores
            of all shards that it finds there, scores what is still missing and writes the table.
        retry: states of earlier runs to try again, besides ``error``.
        engine: what turns blocks into outcomes, e.g. :class:`protoscore.scoring.ray_engine.RayEngine`.
    """
    _refuse_twins(scorers)
    again = AGAIN | set(retry)
    rank = launched()
    if shard and rank:
        raise ConfigError("--shard is for separate commands; under torchrun each rank takes its part by itself")
    if rank:
        return _score_in_ranks(rows, scorers, out, rank, again)
    index = read_index(rows, out)
    if shard:
        return _score_shard(rows, index, scorers, out, shard, again)
    return _finish(rows, index, scorers, out, again, engine)


def _score_in_ranks(rows: Rows, scorers: list[Scorer], out: Path, rank: Shard, again: frozenset[Status]) -> Counts:
    with ranks() as meet:
        if rank.number == 1:
            read_index(rows, out)
        meet(0)
        counts = _score_shard(rows, read_index(rows, out), scorers, out, rank, again)
        scored = meet(counts.scored_now)
        if rank.number == 1:
            # What just failed is reported and not tried again at once.
            counts = _finish(rows, read_index(rows, out), scorers, out, frozenset(), score_blocks, absorb=True)
            counts = counts._replace(scored_now=scored)
        meet(0)
    return counts


def _score_shard(rows: Rows, index: Index, scorers: list[Scorer], out: Path, shard: Shard, again: frozenset[Status]) -> Counts:
    store = Store(out / f"results-{shard.number}-of-{shard.of}.sqlite", base=out / STORE)
    try:
        run, scored = Run(rows, index, store, again, score_blocks), 0
        with _progress(visible=shard.number == 1 or not launched()) as bar:
            for scorer in scorers:
                part = shard.part(index.count(block_size(scorer)))
                total = sum(len(b.texts) for b in index.blocks(block_size(scorer), part))
                task = bar.add_task(scorer.name, total=total)
                scored += run.score(scorer, part, lambda n, task=task: bar.advance(task, n))  # type: ignore[misc]
        return Counts(0, scored, 0)
    finally:
        store.close()


def _finish(
    rows: Rows, index: Index, scorers: list[Scorer], out: Path, again: frozenset[Status], engine: Engine, absorb: bool = False
) -> Counts:
    """Score what is missing and write the table. Shards' stores are taken over when something is missing, or ``absorb``."""
    store = Store(out / STORE)
    try:
        run, scored = Run(rows, index, store, again, engine), 0
        everything = {scorer.name: range(index.count(block_size(scorer))) for scorer in scorers}
        shards = sorted(out.glob("results-*-of-*.sqlite"))
        if shards and (absorb or any(run.missing(scorer, everything[scorer.name]) for scorer in scorers)):
            for path in shards:
                store.absorb(path)
        with _progress() as bar:
            for scorer in scorers:
                task = bar.add_task(scorer.name, total=len(index))
                scored += run.score(scorer, everything[scorer.name], lambda n, task=task: bar.advance(task, n))  # type: ignore[misc]
        return _write(run, scorers, out, scored)
    finally:
        store.close()


def _write(run: Run, scorers: list[Scorer], out: Path, scored: int) -> Counts:
    failures: Counter[str] = Counter()
    seconds: dict[str, float] = {}
    written = write_scores(out / "scores.parquet", run.index, scorers, run.results, failures, seconds)
    described = [_describe(scorer) for scorer in scorers]
    parameters = {"source": run.rows.source, **run.rows.parameters, "scorers": described}
    facts = {"scenes": run.rows.scenes, "rows": written, "made_with": run.store.notes()}
    write_manifest(out, "score", parameters, run.rows.parent, **facts)
    write_text(out / "timing.json", json.dumps({"scoring_seconds": seconds}, indent=2) + "\n")
    commonest = failures.most_common(1)
    return Counts(written, scored, failures.total(), commonest[0][0] if commonest else "")


def _states(word: str) -> list[Status]:
    failures: dict[str, list[Status]] = {status.value: [status] for status in Status if status != Status.OK}
    known = failures | {"all": [status for states in failures.values() for status in states]}
    if word not in known:
        raise UnknownName("state", word, known)
    return known[word]


def _refuse_twins(scorers: list[Scorer]) -> None:
    twins = [name for name, count in Counter(scorer.name for scorer in scorers).items() if count > 1]
    if twins:
        raise ConfigError(f"two scorers are called {twins[0]!r}; rename one of the files, or score them into two --out folders")


def _describe(scorer: Scorer) -> dict[str, Any]:
    facts = scorer.facts.model_dump()
    return facts | {
        "name": scorer.name, "revision": scorer.revision, "parameters": scorer.parameters, "batch_size": scorer.batch_size,
    }  # fmt: skip


def _progress(visible: bool = True) -> Progress:
    columns = TextColumn("{task.description:<24.24}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    return Progress(*columns, disable=not visible)
