"""Two sets side by side, as they are compared: for a judge to be asked about, and for the pages that people see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from protoscore.benchmarks.diversity.measured import MeasuredModel
from protoscore.benchmarks.diversity.set_scores import SetScores
from protoscore.schema import content_id
from protoscore.sources import open_rows
from protoscore.sources.rows import Row, Rows
from protoscore.sources.sets import FIRST, MEMBERS, SECOND, SIZE


class Side(NamedTuple):
    """A set to be shown: of which model, where its pictures are, and which."""

    model: str
    source: str
    ids: list[str]


class SideTask(NamedTuple):
    """Two sets of one pair."""

    pair: str
    concept: str
    attribute: str
    number: int
    sides: tuple[Side, Side]
    expected: str = ""  # "first" or "equal", where the answer is known


def comparisons(sets: SetScores, measured: Sequence[MeasuredModel], sources: Mapping[str, str]) -> Iterator[SideTask]:
    """Every side by side of two models.

    Args:
        sources: model -> where its pictures are.
    """
    models, pairs, numbers, _ = sets.members.shape
    couples = [(a, b) for a in range(models) for b in range(a + 1, models)]
    for p, pair in enumerate(sets.pairs[:pairs]):
        for a, b in couples:
            for s in (s for s in range(numbers) if (sets.members[[a, b], p, s, 0] >= 0).all()):
                first, second = (
                    Side(measured[m].name, sources[measured[m].name], measured[m].ids[sets.members[m, p, s]].tolist())
                    for m in (a, b)
                )
                yield SideTask(pair.id, pair.concept, pair.attribute, s, (first, second))


class SideBySide:
    """Comparisons as :class:`protoscore.sources.rows.Rows`: the pictures of one set, then those of the other."""

    columns: Sequence[str] = ("pair", FIRST, SECOND)
    source = "side by side"
    parent: Path | None = None

    def __init__(self, shown: Sequence[SideTask], scenes: bool | None):
        self._shown, self.scenes = list(shown), scenes
        self._places: dict[str, tuple[Rows, dict[str, int]]] = {}  # source -> its rows, and where each id stands
        self.parameters: dict[str, Any] = {"benchmark": "diversity"}

    def __len__(self) -> int:
        return len(self._shown)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        for one in self._shown[start:stop]:
            first, second = one.sides
            images = tuple(self._picture(side.source, id_) for side in one.sides for id_ in side.ids)
            fields = {
                "pair": one.pair, "concept": one.concept, "attribute": one.attribute, FIRST: first.model, SECOND: second.model,
                SIZE: len(first.ids), MEMBERS: [*first.ids, *second.ids],
            }  # fmt: skip
            yield Row(f"{one.pair}: {first.model} beside {second.model} #{one.number}", images, fields)

    def fingerprint(self) -> str | None:
        return None

    def contents(self) -> str:
        return content_id(*((one.pair, one.number, *(id_ for side in one.sides for id_ in side.ids)) for one in self._shown))

    def _picture(self, source: str, id_: str) -> bytes:
        if source not in self._places:
            rows = open_rows(Path(source))
            self._places[source] = rows, {row.id: place for place, row in enumerate(rows.rows())}
        rows, places = self._places[source]
        if id_ not in places:
            return b""
        return next(iter(rows.rows(places[id_], places[id_] + 1))).images[0]
