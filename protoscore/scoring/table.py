"""The table of scores, written row group by row group from the results of the distinct pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from protoscore.folder import whole_file
from protoscore.schema import Status
from protoscore.scoring.described import AnyScorer
from protoscore.scoring.index import Index
from protoscore.scoring.store import Result

OUTCOME = [
    ("scorer", pa.string()),
    ("status", pa.string()),
    ("reason", pa.string()),
    ("score", pa.float64()),
    ("truncated", pa.bool_()),
]
_GROUP = 65_536  # rows


def write_scores(
    path: Path, index: Index, scorers: Sequence[AnyScorer], results: Callable[[AnyScorer], Iterable[Result]],
    failures: Counter[str], seconds: dict[str, float],
) -> int:  # fmt: skip
    """Write the table, scorer after scorer in the order of the rows; how many rows it has.

    Args:
        results: the results of a scorer, one a distinct pair in the order of ``index``.
        failures: is filled with how often each reason occurs among the rows without a number.
        seconds: is filled with the time that each scorer took, by name.
    """
    schema = pa.schema([(name, pa.string()) for name in index.columns] + OUTCOME)
    written = 0
    options = {"compression": "snappy", "use_content_defined_chunking": True, "write_page_index": True}
    with whole_file(path) as temporary, pq.ParquetWriter(temporary, schema, **options) as writer:
        for scorer in scorers:
            columns, seconds[scorer.name] = _columns(scorer, results(scorer))
            start = 0
            for keys in index.keys(_GROUP):
                pairs = pa.array(index.pair_of_row[start : start + keys.num_rows])
                names = pa.array([scorer.name] * keys.num_rows)
                rest = [column.take(pairs) for column in columns]
                writer.write_batch(pa.record_batch([*keys.columns, names, *rest], schema=schema))
                start += keys.num_rows
                failed = rest[1].filter(pc.not_equal(rest[0], Status.OK.value))
                failures.update({entry["values"]: entry["counts"] for entry in failed.value_counts().to_pylist()})
            written += start
    return written


def _columns(scorer: AnyScorer, results: Iterable[Result]) -> tuple[list[pa.Array], float]:
    """Status, reason, score and truncation of each pair, and the seconds altogether."""
    # Direction is settled here, once: in the table, higher is better for every scorer.
    sign = 1.0 if scorer.facts.higher_is_better else -1.0
    states: list[str] = []
    reasons: list[str] = []
    scores, cuts, seconds = [], [], []
    for result in results:
        states.append(result.status.value)
        reasons.append(result.reason)
        scores.append(np.nan if result.score is None else sign * result.score)
        cuts.append(result.truncated)
        seconds.append(result.seconds)
    values = np.array(scores, float)
    return [
        pa.array(states, pa.string()), pa.array(reasons, pa.string()),
        pa.array(values, mask=np.isnan(values)), pa.array(cuts, pa.bool_()),
    ], round(float(np.sum(seconds)), 2)  # fmt: skip
