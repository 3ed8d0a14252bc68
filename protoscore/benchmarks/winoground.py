"""Winoground (arXiv 2204.03162): two captions of the same words, two pictures; 400 items.

With s(c, i) the score of caption c and picture i, all comparisons strict, so that a tie is a failure:

* text score: s(c0, i0) > s(c1, i0) and s(c1, i1) > s(c0, i1); chance 0.25
* image score: s(c0, i0) > s(c0, i1) and s(c1, i1) > s(c1, i0); chance 0.25
* group score: both; chance 1/6
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from protoscore.benchmarks._others import OthersBenchmark
from protoscore.errors import DatasetError
from protoscore.reporting.results import ALL, Task
from protoscore.sources.records import ListedRecords, Origin, Records, find, picture_bytes
from protoscore.sources.rows import Row
from protoscore.sources.tables import read_table
from protoscore.stats.resampling import Estimate
from protoscore.stats.transfer import winoground_scores

COLUMNS = ("id", "image_0", "image_1", "caption_0", "caption_1", "collapsed_tag")
PAIRS = [(caption, image) for caption in (0, 1) for image in (0, 1)]


class Winoground(OthersBenchmark):
    name = "winoground"
    tasks = (Task(id="group"), Task(id="text"), Task(id="image"))
    columns = ("item", "caption", "image", "tag")
    origin = Origin(
        "facebook/winoground",
        "META IMAGES RESEARCH LICENSE (research only)",
        "Winoground is gated: accept its terms on the Hub page of facebook/winoground, then type: hf auth login",
    )

    @cached_property
    def _records(self) -> Records:
        listed = _from_list(Path(self.given)) if self.given and Path(self.given).is_dir() else None
        return listed or find(self.given, "test", COLUMNS, self.origin)

    def __len__(self) -> int:
        return len(PAIRS) * len(self._records)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        stop = len(self) if stop is None else min(stop, len(self))
        number = start - start % len(PAIRS)
        for record in self._records.read(number // len(PAIRS), -(-stop // len(PAIRS))):
            for caption, image in PAIRS:
                if start <= number < stop:
                    item, tag = str(record["id"]), str(record["collapsed_tag"])
                    fields = {"item": item, "caption": caption, "image": image, "tag": tag}
                    text, picture = record[f"caption_{caption}"], picture_bytes(record[f"image_{image}"])
                    yield Row(f"{item}-{caption}-{image}", (picture,), fields | {"text": text})
                number += 1

    def fingerprint(self) -> str | None:
        return self._records.fingerprint()

    def groups(self, scores: list[dict[str, Any]]) -> dict[str, dict[str, Estimate]]:
        items: dict[str, list[float]] = {}
        tags: dict[str, str] = {}
        for row in scores:
            place = 2 * int(row["caption"]) + int(row["image"])
            items.setdefault(row["item"], [float("nan")] * 4)[place] = float("nan") if row["score"] is None else row["score"]
            tags[row["item"]] = row["tag"]
        groups = {ALL: list(items)} | {tag: [i for i in items if tags[i] == tag] for tag in sorted(set(tags.values()))}
        return {
            name: winoground_scores([items[i] for i in members], self.resamples)._asdict() for name, members in groups.items()
        }


def _from_list(folder: Path) -> Records | None:
    """The layout of the original download: ``examples.jsonl`` and a folder of PNG files."""
    listing = next(iter(sorted(folder.glob("**/examples.jsonl"))), None)
    if listing is None:
        return None
    records = [line.values for line in read_table(listing)]
    if missing := [name for name in COLUMNS if name not in records[0]]:
        raise DatasetError(f"{listing} is not Winoground's: no field {missing[0]!r}")
    images = listing.parent / "images"

    def pictures(record: dict[str, Any]) -> dict[str, Path]:
        return {f"image_{i}": images / f"{Path(str(record[f'image_{i}'])).name}.png" for i in (0, 1)}

    return ListedRecords(records, pictures, [listing])


def recognises(columns: Collection[str]) -> bool:
    return {"caption_0", "caption_1", "image_0", "image_1"} <= set(columns)


def create(source: str | None = None, resamples: int = 2000) -> Winoground:
    return Winoground(source, resamples)
