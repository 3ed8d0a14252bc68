"""Tasks for people: two sets side by side as a page that stands alone, and as a folder with a sheet to fill in.

Nobody who answers can tell which model is which: sides and the order of pictures are drawn by a seed, files have neutral names,
and pictures are written anew, without what else stood in them. ``tasks.csv`` beside the page is the key and stays with you.
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from protoscore.benchmarks.diversity.beside import Side, SideTask, comparisons
from protoscore.benchmarks.diversity.golden import CONFIGURATION
from protoscore.benchmarks.diversity.measured import MeasuredModel
from protoscore.benchmarks.diversity.set_scores import SetScores
from protoscore.errors import ConfigError, DatasetError, UnknownName
from protoscore.folder import write_text
from protoscore.reporting.pages import environment
from protoscore.schema import derive_seed
from protoscore.sources import open_rows
from protoscore.sources.decoding import open_image

Condition = Literal["count", "aspect", "none"]
SIZE = 320  # px of the pictures that people see
KEY = ("task", "pair", "left", "right", "number", "size", "expected", "condition")
GOLDEN = "golden"  # stands for a model in a task whose answer is known


class Template(NamedTuple):
    """How people are asked.

    Attributes:
        condition: ``count`` (first count, then compare), ``aspect`` (the attribute is named), ``none`` (it is not).
        limit: comparisons, drawn by the seed; None: all.
        golden: a folder with the pictures of the golden set, whose tasks are mixed in.
    """

    condition: Condition = "count"
    limit: int | None = None
    seed: int = 0
    golden: str | None = None


def write_tasks(
    sets: SetScores, measured: Sequence[MeasuredModel], sources: Mapping[str, str], out: Path, how: Template
) -> int:
    """Write the tasks below ``out``, and how many they are.

    Args:
        sources: model -> where its pictures are.

    Raises:
        ConfigError, UnknownName: the condition is none, or ``out`` holds tasks already.
        DatasetError: a picture is not where it was.
    """
    if how.condition not in get_args(Condition):
        raise UnknownName("condition", how.condition, get_args(Condition))
    if (out / "tasks.csv").is_file():
        raise ConfigError(f"{out} holds tasks already, and people may be at work on them; choose another folder")
    rng = random.Random(derive_seed(how.seed, "tasks"))
    chosen = list(comparisons(sets, measured, sources))
    rng.shuffle(chosen)
    chosen = chosen[: how.limit] + (list(_golden(how.golden)) if how.golden else [])
    rng.shuffle(chosen)
    key: list[dict[str, object]] = []
    asked: list[dict[str, object]] = []
    files: dict[str, dict[str, Path]] = {}  # source -> id -> picture file
    width = len(str(len(chosen)))
    for number, one in enumerate(chosen, 1):
        name, turned = f"t{number:0{width}d}", rng.random() < 0.5
        left, right = one.sides[::-1] if turned else one.sides
        expected = {"first": "right" if turned else "left"}.get(one.expected, one.expected)
        size = len(left.ids)
        key.append(dict(zip(KEY, (name, one.pair, left.model, right.model, one.number, size, expected, how.condition))))
        pictures = {}
        for side, shown in (("left", left), ("right", right)):
            order = rng.sample(shown.ids, len(shown.ids))
            pictures[side] = [f"pictures/{name}/{side}-{n}.png" for n in range(1, len(order) + 1)]
            for id_, path in zip(order, pictures[side], strict=True):
                files.setdefault(shown.source, {}).setdefault(f"{id_}\0{path}", out / "page" / path)
        asked.append({"task": name, "concept": one.concept, "attribute": one.attribute, "size": size, **pictures})
    for source, wanted in files.items():
        _write_pictures(source, wanted)
    page = environment(Path(__file__).parent).get_template("tasks.html.jinja").render(tasks=asked, condition=how.condition)
    write_text(out / "page" / "index.html", page)
    answers = (
        "task",
        "annotator",
        *(("count_left", "count_right") if how.condition == "count" else ()),
        "choice",
        "confidence",
    )
    write_text(out / "page" / "answers.csv", _table(answers, [{"task": one["task"]} for one in asked]))
    write_text(out / "tasks.csv", _table(KEY, key))  # last: where it stands, all is there
    return len(chosen)


def _golden(source: str) -> Iterator[SideTask]:
    """Of each pair: what varies beside what does not, and both that vary."""
    found: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for row in open_rows(source).rows():
        if CONFIGURATION not in row.fields:
            raise DatasetError(
                f"{source} is not the golden set; make it with: protoscore images diversity:golden --out {source}"
            )
        key = str(row.fields["pair"]), str(row.fields["concept"]), str(row.fields["attribute"])
        found.setdefault(key, {}).setdefault(str(row.fields[CONFIGURATION]), []).append(row.id)
    for (pair, concept, attribute), some in found.items():
        for first, second, expected in (("attribute", "concept", "first"), ("both", "attribute", "equal")):
            sides = Side(GOLDEN, source, some[first]), Side(GOLDEN, source, some[second])
            yield SideTask(pair, concept, attribute, 0, sides, expected)


def _write_pictures(source: str, wanted: Mapping[str, Path]) -> None:
    """Write pictures anew, as RGB of at most ``SIZE`` px."""
    places: dict[str, list[Path]] = {}
    for key, path in wanted.items():
        places.setdefault(key.partition("\0")[0], []).append(path)
    for row in open_rows(source).rows():
        for path in places.pop(row.id, []):
            image = open_image(row.images[0]).convert("RGB")
            image.thumbnail((SIZE, SIZE))
            image.info.clear()
            path.parent.mkdir(parents=True, exist_ok=True)
            image.save(path, "PNG")
    if places:
        raise DatasetError(f"{source} has no picture {next(iter(places))!r} any more; make the comparison again")


def _table(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
