"""Reading a dataset of cells, from a folder or by Hub id, one picture at a time.

Three layouts are known: all four cells and the foils per row (our ``foils`` config), the four cells (``controls``), and the
paper's two (``pairs``, and the set that the paper's authors published), which lets a report give the paper's accuracy and
nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from protoscore.benchmarks.protobias.schema import PICTURES, Cell, Foil
from protoscore.errors import DatasetError
from protoscore.folder import MANIFEST, parts, read_manifest
from protoscore.schema import content_id
from protoscore.sources.records import HubRecords, ParquetRecords, Records, parquet_files, picture_bytes
from protoscore.sources.rows import Row


class Layout(NamedTuple):
    """A config, and the column of each picture in it."""

    config: str
    pictures: dict[Cell | Foil, str]


LAYOUTS = tuple(  # from the one that tells most
    Layout(config, {picture: f"{name}_image" for picture, name in names.items()})
    for config, names in sorted(PICTURES.items(), key=lambda pair: -len(pair[1]))
)
_TEXT = ("domain", "knob", "text")
_DESCRIPTIONS: dict[Cell | Foil, str] = {
    Cell.NON_CORRECT: "correct", Cell.PROTO_VIOLATED: "adversarial",
    Cell.PROTO_CORRECT: "proto_correct", Cell.NON_VIOLATED: "non_violated", **{foil: foil.value for foil in Foil},
}  # fmt: skip
# By which verdicts may be grouped; also in the spellings of the authors' set.
_GROUPS = (
    "subcategory", "group_category", "socio_attr", "pole", "gender", "writer", "generator", "model", "image_model",
    "image_model_short",
)  # fmt: skip
_DOMAINS = {"animal": "animals", "object": "objects"}  # as the authors' set spells them


class CellRows:
    """Every cell of every row of a dataset, as :class:`protoscore.sources.rows.Rows`.

    A row's id is ``PAIR-CELL``. ``pair`` names the row of the dataset, ``triplet`` what was sampled independently.

    Args:
        source: a folder made by ``dataset_scripts/protobias/build.py``, one in the Hub's layout, or a Hub id.

    Raises:
        DatasetError: the source is not such a dataset.
    """

    columns: Sequence[str] = ("pair", "triplet", "cell", "domain", "knob")

    def __init__(self, source: str, split: str = "test"):
        self.source = source
        self.parameters: dict[str, Any] = {"benchmark": "protobias", "split": split}
        folder = Path(source)
        self._records = _of_folder(folder, split) if folder.exists() else HubRecords(source, split, configs=_CONFIGS)
        if not len(self._records):
            raise DatasetError(f"{source} has no rows in the split {split!r}")
        names = set(self._records.columns)
        fitting = [layout for layout in LAYOUTS if {*_TEXT, *layout.pictures.values()} <= names and names & {"triplet", "id"}]
        if not fitting:
            missing = min({*_TEXT, *LAYOUTS[-1].pictures.values(), "id"} - names)
            raise DatasetError(f"{source!r} is not a dataset of two or four cells: it lacks the column {missing!r}")
        self.layout = fitting[0]
        self.notes = _without(folder, split, self.layout.config, len(self._records))
        # In the authors' set an id names the item, which is the cluster; whatever else a row says tells it from its sisters.
        known = {"id", "domain", "knob", "text", *self._records.pictures}
        self._versions = [] if "triplet" in names else sorted(names - known)
        self.parent = folder if (folder / MANIFEST).is_file() else None
        self.scenes = None if self.parent is None else not read_manifest(self.parent).get("photographic", False)
        if self._records.revision:
            self.parameters["revision"] = self._records.revision

    def __len__(self) -> int:
        return len(self.layout.pictures) * len(self._records)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        each = len(self.layout.pictures)
        stop = len(self) if stop is None else min(stop, len(self))
        number = start - start % each
        for record in self._records.read(number // each, -(-stop // each)):
            for cell in self.layout.pictures:
                if start <= number < stop:
                    yield self._row(record, cell)
                number += 1

    def _row(self, record: dict[str, Any], cell: Cell | Foil) -> Row:
        triplet = str(record["triplet"] if record.get("triplet") is not None else record["id"])
        pair = f"{triplet}-{record.get('rendition') or 0}"
        if self._versions:
            pair = f"{triplet}-{content_id(record['text'], *(record[name] for name in self._versions))}"
        domain = str(record["domain"])
        fields = {
            "pair": pair, "triplet": triplet, "cell": cell.value, "domain": _DOMAINS.get(domain, domain),
            "knob": str(record["knob"]), "text": record["text"],
        }  # fmt: skip
        description = record.get(_DESCRIPTIONS[cell])
        if description:
            fields["description"] = description  # its own, which a filter holds it against; the text is the neutral one
        fields |= {name: record[name] for name in _GROUPS if record.get(name) is not None}
        return Row(f"{pair}-{cell}", (picture_bytes(record[self.layout.pictures[cell]]),), fields)

    def fingerprint(self) -> str | None:
        return self._records.fingerprint()

    def contents(self) -> str | None:
        return self._records.contents()


def _without(folder: Path, split: str, config: str, rows: int) -> list[str]:
    """What of a folder is not in the config that is read: a few triplets have no foils."""
    files = parts(folder / "controls", f"{split}-*.parquet") if config != "controls" and folder.exists() else []
    missing = len(ParquetRecords(files)) - rows if files else 0
    if missing <= 0:
        return []
    return [
        f"{folder}: {missing} of {missing + rows} rows have no {config}, since there is nothing else to show, and are left out"
    ]


_CONFIGS = (*(layout.config for layout in LAYOUTS), None)


def _of_folder(folder: Path, split: str) -> Records:
    """The Parquet files of a config of a folder.

    Read as files and not by ``load_dataset(folder)``: its cache would serve the rows of an earlier build of that name.
    """
    for layout in LAYOUTS:
        if files := parts(folder / layout.config, f"{split}-*.parquet"):
            return ParquetRecords(files)
    files = [] if (folder / MANIFEST).is_file() else parquet_files(folder, split)
    if not files:
        raise DatasetError(
            f"{folder} is not a four-cell dataset: no controls/{split}-*.parquet; dataset_scripts/protobias/build.py makes one"
        )
    return ParquetRecords(files)
