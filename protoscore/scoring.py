"""Stage: a four-cell dataset and some scorers in, one table of scores out. Resumes where it was stopped."""

from __future__ import annotations

import io
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from PIL import Image
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from protoscore.cells import CellRows
from protoscore.errors import ImageError, ProtoscoreError
from protoscore.folder import write_manifest, write_table, write_text
from protoscore.rows import Row, Rows
from protoscore.schema import Status
from protoscore.scorers import Score, Scorer
from protoscore.store import Result, Store, result_key

OUTCOME = [
    ("scorer", pa.string()),
    ("status", pa.string()),
    ("reason", pa.string()),
    ("score", pa.float64()),
    ("truncated", pa.bool_()),
]


class Counts(NamedTuple):
    """How many scores there are, and how many of them were made just now."""

    rows: int
    scored_now: int
    not_ok: int


def score_dataset(source: str, scorers: list[Scorer], out: Path, split: str = "test", limit: int | None = None) -> Counts:
    """Score every cell of a four-cell dataset; see :func:`score_rows`."""
    return score_rows(CellRows(source, split, limit), scorers, out)


def score_rows(rows: Rows, scorers: list[Scorer], out: Path) -> Counts:
    """Score every row of ``rows`` with every scorer and write ``out/scores.parquet``.

    Its columns are the key columns of ``rows`` and scorer, status, reason, score, truncated. It depends on the rows and the
    scorers only, and not on how often the run was stopped.
    """
    store = Store(out / "results.sqlite")
    schema = pa.schema([(name, pa.string()) for name in rows.columns] + OUTCOME)
    tables, scored_now = [], 0
    try:
        with _progress() as bar:
            for scorer in scorers:
                task = bar.add_task(scorer.name, total=len(rows))
                found: list[dict[str, Any]] = []
                for batch in _batches(rows.rows(), scorer.batch_size):
                    results, fresh = _score_batch(batch, scorer, store)
                    scored_now += fresh
                    found += [_row(rows, row, scorer, result) for row, result in zip(batch, results, strict=True)]
                    bar.advance(task, len(batch))
                tables.append(pa.Table.from_pylist(found, schema))
        seconds = {scorer.name: round(store.seconds(scorer.name), 2) for scorer in scorers}
    finally:
        store.close()
    table = pa.concat_tables(tables).combine_chunks()
    write_table(out / "scores.parquet", table)
    parameters = {"source": rows.source, **rows.parameters, "scorers": [_describe(s) for s in scorers]}
    write_manifest(out, "score", parameters, rows.parent, scenes=rows.scenes, rows=table.num_rows)
    write_text(out / "timing.json", json.dumps({"scoring_seconds": seconds}, indent=2) + "\n")
    not_ok = table.num_rows - pc.sum(pc.equal(table["status"], Status.OK.value)).as_py()
    return Counts(table.num_rows, scored_now, not_ok)


def open_image(data: bytes) -> Image.Image:
    """Bytes of a picture as RGB, turned upright; the first frame of an animation.

    Raises:
        ImageError: they are no picture that can be read.
    """
    from PIL import ImageOps

    try:
        image = Image.open(io.BytesIO(data))
        if image.width * image.height > 50_000_000:
            raise ImageError(f"the picture has {image.width} x {image.height} px, more than 50 million")
        return ImageOps.exif_transpose(image).convert("RGB")
    except ImageError:
        raise
    except Exception as error:  # Pillow's decoders raise many kinds on damaged files
        raise ImageError(f"not a readable picture ({type(error).__name__})") from error


def _score_batch(batch: list[Row], scorer: Scorer, store: Store) -> tuple[list[Result], int]:
    """Results of a batch in order; only pairs that the store does not hold are scored, and kept all together."""
    keys = [result_key(scorer.name, scorer.revision, scorer.parameters, item.image, item.text) for item in batch]
    known = store.known(keys)
    todo = {key: item for key, item in zip(keys, batch, strict=True) if key not in known}
    if todo:
        fresh = _score_fresh(todo, scorer)
        # An error may be the machine's and not the picture's: it is reported, but tried again by the next run.
        store.add(scorer.name, [r for r in fresh.values() if r.status != Status.ERROR])
        known |= fresh
    return [known[key] for key in keys], len(todo)


def _score_fresh(todo: dict[str, Row], scorer: Scorer) -> dict[str, Result]:
    images, readable, results = [], [], {}
    for key, item in todo.items():
        try:
            images.append(open_image(item.image))
            readable.append(key)
        except ImageError as error:
            results[key] = Result(key, Status.ERROR, None, str(error), False, 0.0)
    start = time.perf_counter()
    scores = scorer.score(images, [todo[key].text for key in readable]) if readable else []
    if len(scores) != len(readable):
        raise ProtoscoreError(f"scorer {scorer.name!r} gave {len(scores)} scores for {len(readable)} pairs")
    share = (time.perf_counter() - start) / max(1, len(readable))
    for key, score in zip(readable, scores, strict=True):
        results[key] = _result(key, score, share)
    return results


def _result(key: str, score: Score, seconds: float) -> Result:
    """A score as a result; a number that is not finite is invalid and no number."""
    if score.status == Status.OK and (score.value is None or not math.isfinite(score.value)):
        return Result(key, Status.INVALID, None, f"the scorer gave {score.value}", score.truncated, seconds)
    value = score.value if score.status == Status.OK else None
    return Result(key, score.status, value, score.reason, score.truncated, seconds)


def _row(rows: Rows, row: Row, scorer: Scorer, result: Result) -> dict[str, Any]:
    # Direction is settled here, once: in the table, higher is better for every scorer.
    sign = 1.0 if scorer.facts.higher_is_better else -1.0
    return dict(zip(rows.columns, row.keys, strict=True)) | {
        "scorer": scorer.name, "status": result.status.value, "reason": result.reason,
        "score": None if result.score is None else sign * result.score, "truncated": result.truncated,
    }  # fmt: skip


def _describe(scorer: Scorer) -> dict[str, Any]:
    facts = scorer.facts.model_dump()
    return {"name": scorer.name, "revision": scorer.revision, "parameters": scorer.parameters, **facts}


def _batches(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    """Fixed batches: their make-up must not depend on what is already stored, since it moves scores in the last digit."""
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _progress() -> Progress:
    return Progress(TextColumn("{task.description:<24.24}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
