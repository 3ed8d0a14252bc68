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
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from protoscore.catalog import load, options_of
from protoscore.errors import ConfigError, DatasetError, UnknownName, suggestion
from protoscore.folder import locked, write_manifest, write_text
from protoscore.schema import Status
from protoscore.scorers import Scorer
from protoscore.scoring.described import AnyScorer, DescribedScorer, describe, described_in
from protoscore.scoring.engine import block_size, score_blocks
from protoscore.scoring.index import read_index
from protoscore.scoring.sharding import Shard, launched, ranks
from protoscore.scoring.store import Store
from protoscore.scoring.table import write_scores
from protoscore.scoring.worker import BlockWorker, Engine
from protoscore.sources.rows import Rows, contents_of

AGAIN = frozenset({Status.ERROR})  # what every run tries again
STORE = "results.sqlite"
ENGINES = ("local", "ray")


class Counts(NamedTuple):
    """What a run did. ``rows`` and the failures are those of the table; without a table (a shard) they are 0."""

    rows: int
    scored_now: int
    not_ok: int
    reason: str = ""  # the commonest one among the failures


def load_scorers(
    specs: Sequence[str], batch_size: int | None = None, options: Mapping[str, Any] | None = None
) -> dict[str, Scorer]:
    """The scorers that ``specs`` (see ``protoscore.catalog``) stand for, by spec; on this process's own GPU if it has one."""
    ranks()
    chosen = share_options(specs, options or {})
    found = {spec: load("scorers", spec, **own) for spec, own in chosen.items()}
    for scorer in found.values() if batch_size else []:
        scorer.batch_size = batch_size
    return found


def share_options(specs: Sequence[str], options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Each scorer's share of ``options``: those that it has. What none of them has goes to those that hand options on.

    Raises:
        ConfigError: no scorer has the option; the closest one is suggested.
    """
    known = {spec: options_of("scorers", spec) for spec in dict.fromkeys(specs)}
    named: set[str] = set().union(*(each.types for each in known.values()))
    unnamed = options.keys() - named
    if unnamed and not any(each.hands_on for each in known.values()):
        first = min(unnamed)
        hint = suggestion(first, named) if named else "they take none"
        raise ConfigError(f"{', '.join(known)}: no option {first!r}; {hint}")
    return {
        spec: {name: value for name, value in options.items() if name in types or (hands_on and name in unnamed)}
        for spec, (types, hands_on) in known.items()
    }


def score_named(
    rows: Rows, specs: Sequence[str], out: Path, shard: Shard | None = None, retry: Sequence[str] = (),
    batch_size: int | None = None, engine: str = "local", options: Mapping[str, Any] | None = None,
) -> Counts:  # fmt: skip
    """:func:`score_rows` in the words of the command line; ``options`` go to the scorers that have them.

    Raises:
        UnknownName: a state of ``retry`` or an ``engine`` that does not exist.
    """
    if engine not in ENGINES:
        raise UnknownName("engine", engine, ENGINES)
    states = [state for word in retry for state in _states(word)]
    if engine == "ray" and (shard or launched()):
        raise ConfigError("--engine ray shares the work by itself; leave --shard and torchrun out")
    scorers = load_scorers(specs, batch_size, options)
    if engine == "local":
        return score_rows(rows, list(scorers.values()), out, shard, states)
    from protoscore.scoring.ray_engine import RayEngine

    chosen = share_options(specs, options or {})
    ray = RayEngine({scorer.name: (spec, chosen[spec]) for spec, scorer in scorers.items()})
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
    reason, score, truncated. Scorers of an earlier run over the same rows stay in the table.

    Under ``torchrun`` or ``accelerate launch`` each rank takes a part and the first one writes the table.

    Args:
        shard: do this part only, into a store of its own in ``out``, and write no table. A run without it takes the stores
            of all shards that it finds there, scores what is still missing and writes the table.
        retry: states of earlier runs to try again, besides ``error``.
        engine: what turns blocks into outcomes, e.g. :class:`protoscore.scoring.ray_engine.RayEngine`.

    Raises:
        DatasetError: another process is at work on ``out``, or it holds the scores of other scorers over other rows.
    """
    _refuse_twins(scorers)
    again = AGAIN | set(retry)
    if shard and launched():
        raise ConfigError("--shard is for separate commands; under torchrun each rank takes its part by itself")
    if shard:
        return _score_shard(rows, scorers, out, shard, again)
    if launched():
        return _score_in_ranks(rows, scorers, out, again)
    with locked(out, "score; --shard lets several share the work"):
        return _finish(rows, scorers, out, again, engine)


def _score_in_ranks(rows: Rows, scorers: list[Scorer], out: Path, again: frozenset[Status]) -> Counts:
    from accelerate.utils import gather_object

    state = ranks()
    assert state is not None
    shard = Shard(state.process_index + 1, state.num_processes)
    with locked(out, "score") if state.is_main_process else nullcontext():
        with state.main_process_first():
            read_index(rows, out)
        counts = _score_shard(rows, scorers, out, shard, again, visible=state.is_main_process)
        scored = sum(gather_object([counts.scored_now]))
        if state.is_main_process:
            # What just failed is reported and not tried again at once.
            counts = _finish(rows, scorers, out, frozenset(), score_blocks, absorb=True)._replace(scored_now=scored)
        state.wait_for_everyone()
    return counts


def _score_shard(
    rows: Rows, scorers: list[Scorer], out: Path, shard: Shard, again: frozenset[Status], visible: bool = True
) -> Counts:
    with locked(out / shard.folder, "score"):
        store = Store(out / shard.folder / STORE, base=out / STORE)
        try:
            worker, scored = BlockWorker(rows, read_index(rows, out), store, again, score_blocks), 0
            with _progress(visible) as bar:
                for scorer in scorers:
                    part = shard.part(worker.index.count(block_size(scorer)))
                    total = sum(len(b.texts) for b in worker.index.blocks(block_size(scorer), part))
                    task = bar.add_task(scorer.name, total=total)
                    scored += worker.score(scorer, part, lambda n, task=task: bar.advance(task, n))  # type: ignore[misc]
            return Counts(0, scored, 0)
        finally:
            store.close()


def _finish(
    rows: Rows, scorers: list[Scorer], out: Path, again: frozenset[Status], engine: Engine, absorb: bool = False
) -> Counts:
    """Score what is missing and write the table. Shards' stores are taken over when something is missing, or ``absorb``."""
    earlier, index = described_in(out), read_index(rows, out)
    store = Store(out / STORE)
    try:
        worker, scored = BlockWorker(rows, index, store, again, engine), 0
        shards = sorted(out.glob(f"shard-*-of-*/{STORE}"))
        if shards and (absorb or any(worker.missing(scorer) for scorer in scorers)):
            for path in shards:
                store.absorb(path)
        shown = _together(worker, earlier, scorers, out)
        with _progress() as bar:
            for scorer in scorers:
                task, numbers = bar.add_task(scorer.name, total=len(index)), range(index.count(block_size(scorer)))
                scored += worker.score(scorer, numbers, lambda n, task=task: bar.advance(task, n))  # type: ignore[misc]
        return _write(worker, shown, out, scored)
    finally:
        store.close()


def _together(worker: BlockWorker, earlier: list[DescribedScorer], scorers: list[Scorer], out: Path) -> list[AnyScorer]:
    """Whose scores the table shows: those of an earlier run in their order, anew where they are given again, then the rest.

    Raises:
        DatasetError: earlier scores are of other rows, so that they can neither be shown with the new ones nor be lost.
    """
    given: dict[str, Scorer] = {scorer.name: scorer for scorer in scorers}
    kept: dict[str, AnyScorer] = {before.name: given.get(before.name, before) for before in earlier}
    for before in earlier:
        if before.name not in given and worker.lacks(before):
            raise DatasetError(
                f"{out} holds scores of {before.name} over other rows, which this would replace; choose another --out, or add "
                f"-s {before.name}"
            )
    return list((kept | given).values())


def _write(worker: BlockWorker, scorers: list[AnyScorer], out: Path, scored: int) -> Counts:
    failures: Counter[str] = Counter()
    seconds: dict[str, float] = {}
    written = write_scores(out / "scores.parquet", worker.index, scorers, worker.results, failures, seconds)
    rows = worker.rows
    held = contents_of(rows)
    where = {"source": rows.source, **rows.parameters, **({"rows": held} if held else {})}
    parameters = {**where, "scorers": [describe(scorer) for scorer in scorers]}
    write_manifest(out, "score", parameters, rows.parent, scenes=rows.scenes, rows=written, made_with=worker.store.notes())
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


def _progress(visible: bool = True) -> Progress:
    columns = TextColumn("{task.description:<24.24}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    return Progress(*columns, disable=not visible)
