"""From blocks of pairs to outcomes: each picture and each text of a block is encoded once, and no failure stops the rest.

Pictures are read forward, decoded and prepared in threads, ahead of the device and across blocks. What a batch holds is
settled by its block alone (see ``scoring.index``): pictures in their order, texts and whole pairs sorted by length so that
little is padded. A batch in which the scorer raises is scored one by one, so that the guilty input ends as ``error`` with the
reason and the others get their number.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

from PIL.Image import Image

from protoscore.errors import ProtoscoreError
from protoscore.provenance import made_with
from protoscore.schema import Status
from protoscore.scorers import Score, Scorer, Separable, number
from protoscore.scoring.described import AnyScorer
from protoscore.scoring.index import Block
from protoscore.sources.decoding import Decoder, Picture, batches, what_happened
from protoscore.sources.rows import Row, Rows

CHANGED = Picture(None, Status.ERROR, "changed while scoring; run the command again")
SKIP = 512  # rows; a longer gap is left out by opening the source anew

T = TypeVar("T")


class PairOutcome(NamedTuple):
    """What became of one pair. ``seconds``: its share of what its block took in the scorer."""

    status: Status
    score: float | None
    reason: str = ""
    truncated: bool = False
    seconds: float = 0.0


class Failure(NamedTuple):
    """Why there is no value."""

    status: Status
    reason: str


NO_TEXT = Failure(Status.INVALID, "empty prompt")  # no scorer is shown a pair without a text


class Scored(NamedTuple):
    """A block with the outcomes of its pairs, in their order, and with what they were made."""

    block: Block
    outcomes: list[PairOutcome]
    made_with: dict[str, Any]


def block_size(scorer: AnyScorer) -> int:
    """Pairs of a block: four batches, and at most 256 so that a kill loses little."""
    return min(256, 4 * scorer.batch_size)


def score_blocks(rows: Rows, scorer: Scorer, blocks: Iterable[Block]) -> Iterator[Scored]:
    """Score blocks in the order given."""
    apart = isinstance(scorer, Separable)
    decoder = Decoder(ahead=min(256, 2 * scorer.batch_size), prepare=scorer.prepare if isinstance(scorer, Separable) else None)
    try:
        stream = decoder.stream(_pictures(rows, blocks, apart))
        for block, group in groupby(stream, key=lambda item: item[0][0]):
            clock = _Clock(scorer)
            pictures = (CHANGED if changed else picture for (_, changed), picture in group)
            outcomes = _score_apart(clock, block, pictures) if apart else _score_pairs(clock, block, pictures)
            share = clock.seconds / len(outcomes)
            yield Scored(block, [outcome._replace(seconds=share) for outcome in outcomes], made_with())
    finally:
        decoder.close()


def _pictures(rows: Rows, blocks: Iterable[Block], apart: bool) -> Iterator[tuple[tuple[Block, bool], str, bytes]]:
    """The pictures in the order in which they are scored: each one once, or one for every pair, by length of the text. With
    each, whether its bytes are not those any more that the index knows; a score of them would be kept for another picture."""
    reader = _Reader(rows)
    for block in blocks:
        distinct = dict(zip(block.images, block.rows, strict=True))
        held = ((name, reader.read(row).images[0]) for name, row in distinct.items())
        if not apart:
            data = dict(held)
            held = ((block.images[pair], data[block.images[pair]]) for pair in _by_length(block.texts))
        for name, picture in held:
            changed = hashlib.sha256(picture).hexdigest() != name
            yield (block, changed), f"{name} changed" if changed else name, b"" if changed else picture


class _Reader:
    """Rows by number, fast when they are asked for in ascending order."""

    def __init__(self, rows: Rows):
        self._rows, self._next = rows, 0
        self._open: Iterator[Row] | None = None

    def read(self, number: int) -> Row:
        if self._open is None or not self._next <= number < self._next + SKIP:
            self._open, self._next = self._rows.rows(number), number
        for row in self._open:
            self._next += 1
            if self._next > number:
                return row
        raise ProtoscoreError(f"{self._rows.source} ended before row {number}; it was changed meanwhile: run the command again")


class _Clock:
    """Calls a scorer and adds up how long it takes."""

    def __init__(self, scorer: Any):
        self.scorer, self.seconds = scorer, 0.0

    def run(self, what: str, call: Callable[[list[T]], Iterable[Any]], items: list[T]) -> list[Any]:
        """One value an item, or its :class:`Failure`. ``items`` go together, and one by one when that raises."""
        if not items:
            return []
        start = time.perf_counter()
        try:
            values = list(call(items))
        except ProtoscoreError:
            raise
        except (Exception, SystemExit) as error:  # whatever a model, a server or a custom metric raises on some input
            if len(items) > 1:
                return [value for item in items for value in self.run(what, call, [item])]
            return [Failure(Status.ERROR, what_happened(error))]
        finally:
            self.seconds += time.perf_counter() - start
        if len(values) != len(items):
            raise ProtoscoreError(f"scorer {self.scorer.name!r} gave {len(values)} {what} for {len(items)}; one each is needed")
        return values


def _score_apart(clock: _Clock, block: Block, pictures: Iterator[Picture]) -> list[PairOutcome]:
    """A two-part metric: texts once, pictures once, then the pairs of each batch of pictures while their features are there."""
    scorer = clock.scorer
    texts = _encode_texts(clock, list(dict.fromkeys(filter(None, block.texts)))) | {"": (NO_TEXT, False)}
    pairs_of: dict[str, list[int]] = {}
    for pair, image in enumerate(block.images):
        pairs_of.setdefault(image, []).append(pair)
    outcomes: dict[int, PairOutcome] = {}
    for batch in batches(zip(pairs_of, pictures, strict=True), scorer.batch_size, lambda item: item[1]):
        readable = [(name, picture.image) for name, picture in batch if picture.image is not None]
        features = clock.run("image features", lambda some: scorer.encode_images([image for _, image in some]), readable)
        by_name: dict[str, Any] = {name: Failure(p.status, p.reason) for name, p in batch if p.image is None}
        by_name |= {name: feature for (name, _), feature in zip(readable, features, strict=True)}
        pairs = [pair for name, _ in batch for pair in pairs_of[name]]
        outcomes |= _match(clock, pairs, [by_name[block.images[p]] for p in pairs], [texts[block.texts[p]] for p in pairs])
    return [outcomes[pair] for pair in range(len(block.texts))]


def _encode_texts(clock: _Clock, texts: list[str]) -> dict[str, tuple[Any, bool]]:
    """Feature (or failure) and truncation of each text."""
    ordered, size = [texts[i] for i in _by_length(texts)], clock.scorer.batch_size
    found: list[Any] = []
    for start in range(0, len(ordered), size):
        part = ordered[start : start + size]
        found += clock.run("text features", lambda some: zip(*clock.scorer.encode_texts(some), strict=True), part)
    return {t: (value, False) if isinstance(value, Failure) else value for t, value in zip(ordered, found, strict=True)}


def _match(clock: _Clock, pairs: list[int], images: list[Any], texts: list[tuple[Any, bool]]) -> dict[int, PairOutcome]:
    outcomes, whole = {}, []
    for pair, image, (text, cut) in zip(pairs, images, texts, strict=True):
        failed = image if isinstance(image, Failure) else text
        if isinstance(failed, Failure):
            outcomes[pair] = PairOutcome(failed.status, None, failed.reason, cut)
        else:
            whole.append((pair, image, text, cut))
    for start in range(0, len(whole), clock.scorer.batch_size):
        part = whole[start : start + clock.scorer.batch_size]
        values = clock.run("scores", lambda some: clock.scorer.match([w[1] for w in some], [w[2] for w in some]), part)
        for (pair, _, _, cut), value in zip(part, values, strict=True):
            outcomes[pair] = _outcome(value if isinstance(value, Failure) else Score(value, truncated=cut), cut)
    return outcomes


def _score_pairs(clock: _Clock, block: Block, pictures: Iterator[Picture]) -> list[PairOutcome]:
    """Any other metric: whole pairs, in order of the length of their text."""
    outcomes: dict[int, PairOutcome] = {}
    ordered = zip(_by_length(block.texts), pictures, strict=True)
    for batch in batches(ordered, clock.scorer.batch_size, lambda item: item[1]):
        outcomes |= {pair: PairOutcome(p.status, None, p.reason) for pair, p in batch if p.image is None}
        outcomes |= {pair: _outcome(NO_TEXT) for pair, p in batch if p.image is not None and not block.texts[pair]}
        readable = [(pair, picture.image) for pair, picture in batch if picture.image is not None and block.texts[pair]]
        scores = clock.run("scores", lambda some: _score(clock.scorer, block, some), readable)
        outcomes |= {pair: _outcome(score) for (pair, _), score in zip(readable, scores, strict=True)}
    return [outcomes[pair] for pair in range(len(block.texts))]


def _score(scorer: Scorer, block: Block, some: list[tuple[int, Image]]) -> list[Score]:
    return scorer.score([image for _, image in some], [block.texts[pair] for pair, _ in some])


def _outcome(score: Score | Failure, cut: bool = False) -> PairOutcome:
    """A score as an outcome; a number that is not finite is invalid and no number."""
    if isinstance(score, Failure):
        return PairOutcome(score.status, None, score.reason, cut)
    if score.status != Status.OK:
        return PairOutcome(score.status, None, score.reason, score.truncated)
    try:
        value = math.nan if score.value is None else number(score.value)
    except (TypeError, OverflowError) as error:
        return PairOutcome(Status.ERROR, None, f"the scorer gave {error}", score.truncated)
    if not math.isfinite(value):
        return PairOutcome(Status.INVALID, None, f"the scorer gave {score.value}", score.truncated)
    return PairOutcome(Status.OK, value, score.reason, score.truncated)


def _by_length(texts: list[str]) -> list[int]:
    return sorted(range(len(texts)), key=lambda i: (len(texts[i]), i))
