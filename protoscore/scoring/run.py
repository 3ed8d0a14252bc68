"""One process at work on one store: which blocks are due, who has claimed them, what is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from protoscore.schema import Status
from protoscore.scorers import Scorer
from protoscore.scoring.engine import Outcome, Scored, block_size
from protoscore.scoring.index import Block, Index
from protoscore.scoring.store import Result, Store, result_key, scorer_key
from protoscore.sources.rows import Rows

Engine = Callable[[Rows, Scorer, Iterable[Block]], Iterator[Scored]]
WAIT = 0.2  # seconds between looks at what other processes are working on


class Run:
    """Scores blocks into a store. ``again``: the states that are due even though an earlier run has left them."""

    def __init__(self, rows: Rows, index: Index, store: Store, again: frozenset[Status], engine: Engine):
        self.rows, self.index, self.store, self.again, self.engine = rows, index, store, again, engine
        self.started = time.time()

    def score(self, scorer: Scorer, numbers: Sequence[int], tick: Callable[[int], None]) -> int:
        """Score the given blocks as far as they are not known; how many pairs were scored here. Blocks that another process
        has claimed are waited for, and taken over should that process die."""
        scored = 0
        waiting = numbers
        while waiting:
            held: list[int] = []
            claims: dict[int, str] = {}
            todo = self._claimed(scorer, waiting, held, claims, tick)
            for block, outcomes, made_with in self.engine(self.rows, scorer, todo):
                self.store.note(made_with)
                self.store.add(scorer.name, map(_result, self.keys(scorer, block), outcomes), claims[block.number])
                scored += len(outcomes)
                tick(len(outcomes))
            waiting = held
            if waiting:
                time.sleep(WAIT)
        return scored

    def missing(self, scorer: Scorer, numbers: Sequence[int]) -> bool:
        """Whether any pair of these blocks is not in the store."""
        return any(self._todo(scorer, b) for b in self.index.blocks(block_size(scorer), numbers))

    def results(self, scorer: Scorer) -> Iterator[Result]:
        """The stored results of all pairs, in order."""
        for block in self.index.blocks(block_size(scorer)):
            keys = self.keys(scorer, block)
            known = self.store.known(keys)
            yield from (known[key] for key in keys)

    def keys(self, scorer: Scorer, block: Block) -> list[str]:
        """What the results of a block are kept under."""
        who = scorer_key(scorer.name, scorer.revision, scorer.parameters)
        makeup = "" if _batch_free(scorer) else f"{scorer.batch_size}:{block.makeup}"
        return [result_key(who, image, text, makeup) for image, text in zip(block.images, block.texts, strict=True)]

    def _claimed(
        self, scorer: Scorer, numbers: Sequence[int], held: list[int], claims: dict[int, str], tick: Callable[[int], None]
    ) -> Iterator[Block]:
        """What is to be scored of the given blocks, claimed one by one as they are asked for; others' go to ``held``."""
        who = scorer_key(scorer.name, scorer.revision, scorer.parameters)
        for block in self.index.blocks(block_size(scorer), numbers):
            todo = self._todo(scorer, block)
            if todo:
                claims[block.number] = f"{who}:{scorer.batch_size}:{block.makeup}"
                if not self.store.claim(claims[block.number]):
                    held.append(block.number)
                    continue
                todo = self._todo(scorer, block)  # its last owner may have finished it just before
            tick(len(block.texts) - (len(todo.texts) if todo else 0))
            if todo:
                yield todo

    def _todo(self, scorer: Scorer, block: Block) -> Block | None:
        """What of a block is to be scored: nothing, all of it, or where the batch does not matter the pairs that are due."""
        keys = self.keys(scorer, block)
        known = self.store.known(keys)
        due = [at for at, key in enumerate(keys) if key not in known or self._is_due(known[key])]
        if not due or not _batch_free(scorer):
            return block if due else None
        return block.only(due)

    def _is_due(self, result: Result) -> bool:
        return result.status in self.again and result.made < self.started


def _result(key: str, outcome: Outcome) -> Result:
    return Result(key, outcome.status, outcome.score, outcome.reason, outcome.truncated, outcome.seconds)


def _batch_free(scorer: Scorer) -> bool:
    return bool(getattr(scorer, "batch_free", False))
