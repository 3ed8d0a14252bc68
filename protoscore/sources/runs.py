"""A finished run as a dataset: its replies or scores, with the fields and the pictures of what they are about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from protoscore.folder import MANIFEST, read_manifest
from protoscore.sources.pictures import named_inside
from protoscore.sources.records import ListedRecords, ParquetRecords, Records
from protoscore.sources.rows import Rows

TABLES = {"judge": "verdicts.parquet", "score": "scores.parquet"}  # stage -> what it leaves, one row per question
_HOW = frozenset(
    "judge protocol version order cause repairs raw finish_reason tokens_in tokens_out seconds cost probabilities abstained "
    "unmapped answer".split()
)


def is_run(folder: Path) -> bool:
    """Whether a folder is a finished run of ``judge`` or ``score``."""
    return (folder / MANIFEST).is_file() and any((folder / table).is_file() for table in TABLES.values())


def run_records(run: Path, asked: Rows | None = None, place: str | None = None) -> Records:
    """One record per reply or score: ``reply`` (raw), ``answer_<field>``, ``state`` and ``answered_by``, or ``scorer``,
    ``score`` and ``status``; the fields of what it is about; ``item``, whose id that was.

    A failed question stays, with its state and reason and without a reply. Fields of an earlier run in a chain that would
    have these names are called ``item_<field>``.

    Args:
        asked: what the run was about, for its pictures, which are found by id.
        place: of a run over a team's own pictures: their folder, where the pictures are found by name.

    Raises:
        DatasetError: the run is not finished.
    """
    manifest = read_manifest(run)
    own = ParquetRecords([run / TABLES[manifest["stage"]]])
    records, seen = [], Counter[str]()
    for record in own.read(0, len(own)):
        item = record["item"] if manifest["stage"] == "judge" else record.pop("id")
        seen[item] += 1
        name = item if seen[item] == 1 else f"{item}#{seen[item]}"
        records.append(_told(record) | {"id": name, "item": item})
    files = [run / TABLES[manifest["stage"]]]
    if place is not None and "pairs" in manifest["parameters"]:
        return _beside(records, Path(place), files)
    first = None
    if asked is not None and records:
        first = next((row for row in asked.rows() if row.id == records[0]["item"]), None)
        if first is not None and first.images:
            return _Joined(records, asked, own)
    texts = ListedRecords(records, lambda record: {}, files)
    if first is None:
        texts.notes = [
            f"{run}: what it was about is not at hand, so its rows are texts without pictures; name it with --source"
        ]
    return texts


def _told(record: dict[str, Any]) -> dict[str, Any]:
    """What a verdict says to whoever reads it next; a record of a score is that already."""
    if "raw" not in record:
        return record
    new = {"reply": record["raw"], "answered_by": record["judge"]}
    older = {f"item_{name}": record[name] for name in new if name in record}
    return {name: value for name, value in record.items() if name not in _HOW} | older | new


def _beside(records: list[dict[str, Any]], place: Path, files: list[Path]) -> Records:
    """Records whose field ``image`` names a picture below a folder."""
    folder = place if place.is_dir() else place.parent
    paths = named_inside(folder, [record["image"] for record in records])

    def pictures(record: dict[str, Any]) -> dict[str, Path]:
        return {"image": paths[record["image"]][1]}

    return ListedRecords(records, pictures, files, {path: name for name, path in paths.values()})


class _Joined:
    """Records with the pictures of the rows that they are about. Those are read forward, and again where a later record is
    about an earlier row (a second judge)."""

    revision: str | None = None
    notes: list[str] = []

    def __init__(self, records: list[dict[str, Any]], asked: Rows, own: Records):
        self._records, self._asked, self._own = records, asked, own
        self._places: dict[str, int] = {}  # id -> number of the row, as far as it was read
        first = self._images(records[0]["item"])
        self.pictures = ["image"] if len(first) == 1 else [f"image_{n}" for n in range(len(first))]
        self.columns = list(dict.fromkeys([*(name for record in records for name in record), *self.pictures]))

    def __len__(self) -> int:
        return len(self._records)

    def read(self, start: int, stop: int) -> Iterator[dict[str, Any]]:
        last, images = None, tuple[bytes, ...]()
        for record in self._records[start:stop]:
            if record["item"] != last:
                last, images = record["item"], self._images(record["item"])
            padded = (*images, *(b"",) * len(self.pictures))
            shown = {name: {"bytes": data, "path": record.get("image")} for name, data in zip(self.pictures, padded)}
            yield record | shown

    def _images(self, item: str) -> tuple[bytes, ...]:
        """The pictures of a row; none where it is not there any more, which is that record's state."""
        if item in self._places:
            place = self._places[item]
            return next(iter(self._asked.rows(place, place + 1))).images
        for row in self._asked.rows(len(self._places)):
            self._places[row.id] = len(self._places)
            if row.id == item:
                return row.images
        return ()

    def fingerprint(self) -> str | None:
        parts = self._own.fingerprint(), self._asked.fingerprint()
        return None if None in parts else "-".join(map(str, parts))

    def contents(self) -> str | None:
        return self._own.contents()
