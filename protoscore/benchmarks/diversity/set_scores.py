"""Sets of each model's pictures, and how diverse each is by every automatic measure.

Where the paper is silent: a set's judged values count unless the judge withheld more than ``MOST_UNTOLD`` of them, and distance
is one minus the cosine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from protoscore.benchmarks.diversity.measured import MeasuredModel
from protoscore.benchmarks.diversity.pairs import ConceptPair
from protoscore.errors import DatasetError
from protoscore.schema import derive_seed
from protoscore.sources.sets import draw_sets
from protoscore.stats.diversity import coverage, effective_number, vendi_sets

MOST_UNTOLD = 0.5  # share of a set's pictures whose value the judge may withhold


class Drawing(NamedTuple):
    """How sets are drawn."""

    size: int = 8
    number: int = 2  # side-by-side comparisons of a concept and two models
    seed: int = 0
    order: float = 1.0  # of the Vendi score's entropy


class SetScores(NamedTuple):
    """(models, pairs, sets) of one shape throughout; NaN and -1 where a model has no such set."""

    models: list[str]
    pairs: list[ConceptPair]
    size: int
    members: NDArray[np.int64]  # (models, pairs, sets, size): number of the picture within its model
    scores: Mapping[str, NDArray[np.float64]]
    without: Mapping[str, int]  # model -> pairs of which it has too few usable pictures for one set


def score_sets(measured: Sequence[MeasuredModel], pairs: Sequence[ConceptPair], how: Drawing) -> SetScores:
    """Draw the sets and score them.

    Raises:
        DatasetError: no pair has enough pictures of two models.
    """
    members = np.full((len(measured), len(pairs), how.number, how.size), -1, np.int64)
    without: dict[str, int] = {}
    for m, model in enumerate(measured):
        of_pair = {pair.id: np.flatnonzero((model.pairs == pair.id) & model.usable) for pair in pairs}
        for p, pair in enumerate(pairs):
            seed = derive_seed(how.seed, model.name, pair.id)
            for s, chosen in enumerate(draw_sets(of_pair[pair.id].tolist(), how.size, how.number, seed)):
                members[m, p, s] = chosen
        without[model.name] = sum(len(found) < how.size for found in of_pair.values())
    there = members[..., 0] >= 0
    if not (there[:, :, 0].sum(0) > 1).any():
        most = max((int((m.pairs[m.usable] == p.id).sum()) for m in measured for p in pairs), default=0)
        raise DatasetError(
            f"no concept has {how.size} usable pictures of two models, a set's size (at most {most} of one); make more, or ask "
            "for smaller sets"
        )
    kinds = _kinds(measured, how)
    scores = {name: np.full(there.shape, np.nan) for name in kinds}
    for m, model in enumerate(measured):
        where = np.argwhere(there[m])
        chosen = members[m][there[m]]
        if len(chosen):
            for name, kind in kinds.items():
                scores[name][m][there[m]] = kind(model, chosen, [pairs[p] for p, _ in where])
    return SetScores([m.name for m in measured], list(pairs), how.size, members, scores, without)


Kind = Callable[[MeasuredModel, NDArray, list[ConceptPair]], NDArray[np.float64]]


def _kinds(measured: Sequence[MeasuredModel], how: Drawing) -> dict[str, Kind]:
    kinds: dict[str, Kind] = {}
    if all(model.values is not None for model in measured):
        kinds = {"judged_entropy": _judged_entropy, "judged_coverage": _judged_coverage, "judged_count": _judged_count}
    for embedder in measured[0].vectors:
        if len(lengths := {model.vectors[embedder].shape[1] for model in measured if len(model.ids)} - {0}) > 1:
            raise DatasetError(
                f"the vectors of {embedder} have {' and '.join(map(str, sorted(lengths)))} numbers; embed all in one way"
            )

        def by_vendi(model: MeasuredModel, chosen: NDArray, pairs: list[ConceptPair], embedder: str = embedder) -> NDArray:
            return vendi_sets(model.vectors[embedder][chosen], how.order)

        def by_distance(model: MeasuredModel, chosen: NDArray, pairs: list[ConceptPair], embedder: str = embedder) -> NDArray:
            return mean_distance(model.vectors[embedder][chosen])

        kinds |= {f"vendi_{embedder}": by_vendi, f"distance_{embedder}": by_distance}
    return kinds


def mean_distance(vectors: NDArray) -> NDArray[np.float64]:
    """Mean over pairs of one minus the cosine, of many sets: (sets, n, d) to (sets,), range [0, 2]."""
    x = np.asarray(vectors, float)
    x = x / np.linalg.norm(x, axis=-1, keepdims=True)
    n = x.shape[1]
    together = np.square(np.linalg.norm(x.sum(1), axis=-1))  # n + twice the sum over pairs
    return 1 - (together - n) / (n * (n - 1))


def _told(model: MeasuredModel, chosen: NDArray) -> list[list[str]]:
    assert model.values is not None
    told = [[value for value in model.values[some] if value is not None] for some in chosen]
    return [some if len(some) >= len(all_) * (1 - MOST_UNTOLD) else [] for some, all_ in zip(told, chosen)]


def _judged_entropy(model: MeasuredModel, chosen: NDArray, pairs: list[ConceptPair]) -> NDArray[np.float64]:
    """Effective number of values: exp of the entropy of their shares."""
    shares = [np.array(list(Counter(some).values()), float) for some in _told(model, chosen)]
    return np.array([float(effective_number(s / s.sum())) if len(s) else np.nan for s in shares])


def _judged_coverage(model: MeasuredModel, chosen: NDArray, pairs: list[ConceptPair]) -> NDArray[np.float64]:
    told = _told(model, chosen)
    return np.array([coverage(some, pair.values) if some else np.nan for some, pair in zip(told, pairs, strict=True)])


def _judged_count(model: MeasuredModel, chosen: NDArray, pairs: list[ConceptPair]) -> NDArray[np.float64]:
    return np.array([float(len(set(some))) if some else np.nan for some in _told(model, chosen)])
