"""What was measured of each model's pictures: their vectors, what a judge saw, and which of them count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from protoscore.embedding import TABLE
from protoscore.errors import DatasetError
from protoscore.schema import Status


class MeasuredModel(NamedTuple):
    """The pictures of one model, in order."""

    name: str
    ids: NDArray[np.str_]
    pairs: NDArray[np.str_]  # (pictures,) id of the pair
    vectors: Mapping[str, NDArray[np.float32]]  # embedder -> (pictures, dimensions)
    values: NDArray[np.object_] | None  # (pictures,) what a judge saw; None where it could not tell
    usable: NDArray[np.bool_]  # (pictures,) decoded, embedded by all, and good enough
    left_out: Mapping[str, int]  # reason -> pictures


def read_measured(
    name: str, embedded: Mapping[str, Path], judged: Path | None = None, scored: tuple[Path, float] | None = None
) -> MeasuredModel:
    """Read the stages' folders of one model.

    Args:
        embedded: embedder -> folder; at least one, or ``judged``.
        judged: a run of ``diversity/attribute_value``.
        scored: a run of a scorer, and the score from which on a picture counts.

    Raises:
        DatasetError: the folders are about other pictures than the first, or one holds vectors of several lengths.
    """
    tables = {embedder: pq.read_table(folder / TABLE).to_pydict() for embedder, folder in embedded.items()}
    decided = pq.read_table(judged / "decisions.parquet").to_pydict() if judged else None
    first = next(iter(tables.values()), decided)
    assert first is not None
    ids = np.array(first["id" if tables else "item"], str)
    pairs = np.array(first["pair"], str)
    usable, left_out = np.ones(len(ids), bool), dict[str, int]()
    vectors = {}
    for embedder, table in tables.items():
        order = _order(name, ids, table["id"])
        fine = np.array([table["status"][row] == Status.OK for row in order])
        left_out |= {f"no vector of {embedder}": int((usable & ~fine).sum())} if (usable & ~fine).any() else {}
        usable &= fine
        vectors[embedder] = _vectors(f"{name}, {embedder}", [table["vector"][row] for row in order])
    if scored:
        good = _good(name, ids, *scored)
        left_out |= {f"below {scored[1]:g} of {scored[0].name}": int((usable & ~good).sum())}
        usable &= good
    values = None
    if decided is not None:
        order = _order(name, ids, decided["item"])
        states, answers = decided["state_value"], decided["answer_value"]
        values = np.array([answers[row] if states[row] == Status.OK else None for row in order], object)
    return MeasuredModel(name, ids, pairs, vectors, values, usable, left_out)


def _order(name: str, ids: NDArray[np.str_], others: Sequence[Any]) -> list[int]:
    place = {str(other): row for row, other in enumerate(others)}
    if len(place) != len(ids) or set(place) != set(ids.tolist()):
        raise DatasetError(f"{name}: its folders are about different pictures; choose another --out, or delete it")
    return [place[one] for one in ids.tolist()]


def _vectors(where: str, found: Sequence[Sequence[float] | None]) -> NDArray[np.float32]:
    lengths = {len(vector) for vector in found if vector is not None}
    if len(lengths) > 1:
        raise DatasetError(
            f"{where}: there are vectors of {' and '.join(map(str, sorted(lengths)))} numbers; embed all in one way"
        )
    empty = np.full(lengths.pop() if lengths else 0, np.nan, np.float32)
    return np.array([empty if vector is None else vector for vector in found], np.float32)


def _good(name: str, ids: NDArray[np.str_], run: Path, least: float) -> NDArray[np.bool_]:
    table = pq.read_table(run / "scores.parquet").to_pydict()
    order = _order(name, ids, table["id"])
    return np.array([table["status"][row] == Status.OK and table["score"][row] >= least for row in order])
