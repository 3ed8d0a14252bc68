"""Sets of rows: so many pictures that agree in some columns, drawn by a seed, and two such sets side by side."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple, TypeVar

from protoscore.errors import ConfigError, DatasetError
from protoscore.schema import content_id, derive_seed
from protoscore.sources.rows import Row, Rows, contents_of, keys_of

MEMBERS, SIZE = "members", "size"  # fields of a set: the ids of its rows in order, and how many they are
FIRST, SECOND = "first", "second"  # fields of two sets side by side: which is which
_NEAR = 16  # rows between two members that are rather read than skipped
Member = TypeVar("Member", bound=Hashable)


class Way(NamedTuple):
    """How sets are drawn.

    Attributes:
        by: columns in which the rows of a set agree.
        size: rows of a set.
        number: sets of each group; None: as many as share no row. Further ones are drawn again from all rows of the group.
        seed: of the draw.
        beside: one of ``by``: each two of its values are set side by side, where the other columns agree.
    """

    by: tuple[str, ...]
    size: int = 8
    number: int | None = None
    seed: int = 0
    beside: str | None = None

    def check(self) -> None:
        """Refuse what cannot mean anything.

        Raises:
            ConfigError: there is nothing to group by, or a number is too small.
        """
        if not self.by or len(set(self.by)) < len(self.by):
            raise ConfigError("sets are drawn from rows that agree in columns: name at least one, and each once")
        if self.size < 2 or (self.number is not None and self.number < 1):
            raise ConfigError(f"a set has 2 rows or more, and a group one set or more; not {self.size} and {self.number}")
        if self.beside and self.beside not in self.by:
            raise ConfigError(f"sets side by side differ in {self.beside!r}, which must be among: {', '.join(self.by)}")


def draw_sets(members: Sequence[Member], size: int, number: int | None, seed: int) -> list[list[Member]]:
    """Sets of ``size`` of the members. No two share a member, as far as there are enough; their order is drawn too.

    Args:
        number: None: as many as share no member.
    """
    wanted = len(members) // size if number is None else number
    if len(members) < size:
        return []
    found: list[list[Member]] = []
    for turn in range(wanted):
        fresh = random.Random(derive_seed(seed, turn)).sample(list(members), len(members))
        found += [fresh[start : start + size] for start in range(0, len(members) - size + 1, size)]
        if len(found) >= wanted:
            break
    return found[:wanted]


class _Group(NamedTuple):
    """The rows that agree: where they are, what they are called, and the fields that all of them have alike."""

    places: list[int]
    names: list[str]
    fields: dict[str, Any]


class _Drawn(NamedTuple):
    """One set, or two of them."""

    id: str
    places: tuple[int, ...]
    fields: dict[str, Any]


class Sets:
    """Sets of the rows of a source, as :class:`protoscore.sources.rows.Rows`. A row without a picture is in no set.

    The fields of a set are those that all of its rows have alike, its ``size``, and the ids of its ``members``; two sets side
    by side also have ``first`` and ``second``, the values in which they differ, and their pictures one after the other.

    Raises:
        ConfigError: the way is none.
        DatasetError: a row lacks a column, or has not exactly one picture; or a group has too few rows for a set.
    """

    def __init__(self, rows: Rows, way: Way):
        way.check()
        self._rows, self._way = rows, way
        self._groups, self.left_out = self._read()
        self._sets = self._beside() if way.beside else self._alone()
        self.columns: Sequence[str] = [
            *(name for name in way.by if name != way.beside),
            *((FIRST, SECOND) if way.beside else ()),
        ]
        self.source, self.parent, self.scenes = rows.source, rows.parent, rows.scenes
        chosen = {name: list(value) if isinstance(value, tuple) else value for name, value in way._asdict().items()}
        self.parameters: dict[str, Any] = {**rows.parameters, "sets": chosen}
        self.notes = [*getattr(rows, "notes", [])]
        if self.left_out:
            self.notes.append(f"{self.left_out} row(s) without a picture are in no set")

    def __len__(self) -> int:
        return len(self._sets)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        for one in self._sets[start:stop]:
            yield Row(one.id, self._pictures(one.places), one.fields)

    def fingerprint(self) -> str | None:
        inner = self._rows.fingerprint()
        return None if inner is None else hashlib.sha256(f"{inner}\n{self._way}".encode()).hexdigest()

    def contents(self) -> str | None:
        """Of what the sets hold; the way in which they were drawn is a parameter."""
        return contents_of(self._rows) or content_id(*(one.places for one in self._sets), length=24)

    def _read(self) -> tuple[dict[tuple[str, ...], _Group], int]:
        groups: dict[tuple[str, ...], _Group] = {}
        left_out = 0
        for place, row in enumerate(self._rows.rows()):
            key = self._key(row)
            group = groups.setdefault(key, _Group([], [], dict(row.fields)))
            if not row.images[0]:
                left_out += 1
                continue
            group.places.append(place)
            group.names.append(row.id)
            for name in [name for name, value in group.fields.items() if row.fields.get(name) != value]:
                del group.fields[name]
        few = [(key, len(group.places)) for key, group in groups.items() if len(group.places) < self._way.size]
        if few:
            key, count = few[0]
            others = f" ({len(few)} groups are too small)" if len(few) > 1 else ""
            raise DatasetError(
                f"{self._rows.source}: {' / '.join(key)} has {count} picture(s), too few for a set of "
                f"{self._way.size}{others}; make more, or ask for smaller sets"
            )
        if not groups:
            raise DatasetError(f"{self._rows.source} has no rows to draw sets from")
        return groups, left_out

    def _key(self, row: Row) -> tuple[str, ...]:
        missing = [name for name in self._way.by if row.fields.get(name) is None]
        if missing:
            held = ", ".join(row.fields)
            raise DatasetError(f"{self._rows.source}: row {row.id!r} has no {missing[0]!r} to draw sets by; it has: {held}")
        if len(row.images) != 1:
            raise DatasetError(
                f"{self._rows.source}: row {row.id!r} has {len(row.images)} pictures; sets are of single pictures"
            )
        return keys_of(row, self._way.by)

    def _of_group(self, key: tuple[str, ...]) -> list[list[int]]:
        group = self._groups[key]
        numbers = range(len(group.places))
        return draw_sets(numbers, self._way.size, self._way.number, derive_seed(self._way.seed, *key))

    def _alone(self) -> list[_Drawn]:
        found = []
        for key, group in self._groups.items():
            for number, chosen in enumerate(self._of_group(key)):
                facts = {SIZE: self._way.size, MEMBERS: [group.names[i] for i in chosen]}
                name = f"{' / '.join(key)} #{number}"
                found.append(_Drawn(name, tuple(group.places[i] for i in chosen), group.fields | facts))
        return found

    def _beside(self) -> list[_Drawn]:
        at = self._way.by.index(str(self._way.beside))
        together: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        for key in self._groups:
            together.setdefault(key[:at] + key[at + 1 :], []).append(key)
        found = [one for keys in together.values() for a, b in combinations(keys, 2) for one in self._two(a, b, (a[at], b[at]))]
        if not found:
            raise DatasetError(
                f"{self._rows.source}: nothing is there with two values of {self._way.beside!r} to set side by side"
            )
        return found

    def _two(self, first: tuple[str, ...], second: tuple[str, ...], who: tuple[str, str]) -> Iterator[_Drawn]:
        a, b = self._groups[first], self._groups[second]
        shared = {name: value for name, value in a.fields.items() if name in b.fields and b.fields[name] == value}
        at = self._way.by.index(str(self._way.beside))
        rest = " / ".join(first[:at] + first[at + 1 :])
        for number, (left, right) in enumerate(zip(self._of_group(first), self._of_group(second))):
            members = [*(a.names[i] for i in left), *(b.names[i] for i in right)]
            facts = {FIRST: who[0], SECOND: who[1], SIZE: self._way.size, MEMBERS: members}
            name = f"{rest}: {who[0]} beside {who[1]} #{number}"
            yield _Drawn(name, (*(a.places[i] for i in left), *(b.places[i] for i in right)), shared | facts)

    def _pictures(self, places: Sequence[int]) -> tuple[bytes, ...]:
        """The pictures of these rows, read in as few runs as is sensible."""
        found: dict[int, bytes] = {}
        wanted = set(places)
        for start, stop in _runs(sorted(wanted)):
            for place, row in enumerate(self._rows.rows(start, stop), start):
                if place in wanted:
                    found[place] = row.images[0]
        return tuple(found.get(place, b"") for place in places)


def _runs(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges that hold all of the places, which rise."""
    start = last = places[0]
    for place in places[1:]:
        if place - last > _NEAR:
            yield start, last + 1
            start = place
        last = place
    yield start, last + 1
