"""One process at work on one store: which blocks are pending, and what of them is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from protoscore.schema import Status
from protoscore.scorers import Scorer
from protoscore.scoring.described import AnyScorer, DescribedScorer
from protoscore.scoring.engine import PairOutcome, Scored, block_size
from protoscore.scoring.index import Block, Index
from protoscore.scoring.store import Result, Store, result_key, scorer_key
from protoscore.sources.rows import Rows

Engine = Callable[[Rows, Scorer, Iterable[Block]], Iterator[Scored]]


class BlockWorker:
    """Scores blocks into a store. ``again``: the states that are pending even though an earlier run has left them."""

    def __init__(self, rows: Rows, index: Index, store: Store, again: frozenset[Status], engine: Engine):
        self.rows, self.index, self.store, self.again, self.engine = rows, index, store, again, engine

    def score(self, scorer: Scorer, numbers: Sequence[int], tick: Callable[[int], None]) -> int:
        """Score the given blocks as far as they are not known; how many pairs were scored here."""
        scored = 0
        for block, outcomes, made_with in self.engine(self.rows, scorer, self._pending(scorer, numbers, tick)):
            self.store.note(made_with)
            self.store.add(scorer.name, map(_result, self.keys(scorer, block), outcomes))
            scored += len(outcomes)
            tick(len(outcomes))
        return scored

    def missing(self, scorer: Scorer) -> bool:
        """Whether any pair is to be scored."""
        return any(self._todo(scorer, block) for block in self.index.blocks(block_size(scorer)))

    def lacks(self, scorer: DescribedScorer) -> bool:
        """Whether any pair is not in the store."""
        blocks = self.index.blocks(block_size(scorer))
        return any(len(self.store.known(keys)) < len(set(keys)) for keys in (self.keys(scorer, block) for block in blocks))

    def results(self, scorer: AnyScorer) -> Iterator[Result]:
        """The stored results of all pairs, in order."""
        for block in self.index.blocks(block_size(scorer)):
            keys = self.keys(scorer, block)
            known = self.store.known(keys)
            yield from (known[key] for key in keys)

    def keys(self, scorer: AnyScorer, block: Block) -> list[str]:
        """What the results of a block are kept under."""
        who = scorer_key(scorer.name, scorer.revision, scorer.parameters)
        makeup = "" if batch_free(scorer) else f"{scorer.batch_size}:{block.makeup}"
        return [result_key(who, image, text, makeup) for image, text in zip(block.images, block.texts, strict=True)]

    def _pending(self, scorer: Scorer, numbers: Sequence[int], tick: Callable[[int], None]) -> Iterator[Block]:
        for block in self.index.blocks(block_size(scorer), numbers):
            todo = self._todo(scorer, block)
            tick(len(block.texts) - (len(todo.texts) if todo else 0))
            if todo:
                yield todo

    def _todo(self, scorer: Scorer, block: Block) -> Block | None:
        """What of a block is to be scored: nothing, all of it, or, where the batch does not matter, its pending pairs."""
        keys = self.keys(scorer, block)
        known = self.store.known(keys)
        pending = [at for at, key in enumerate(keys) if key not in known or known[key].status in self.again]
        if not pending or not batch_free(scorer):
            return block if pending else None
        return block.only(pending)


def batch_free(scorer: AnyScorer) -> bool:
    return bool(getattr(scorer, "batch_free", False))


def _result(key: str, outcome: PairOutcome) -> Result:
    return Result(key, outcome.status, outcome.score, outcome.reason, outcome.truncated, outcome.seconds)
