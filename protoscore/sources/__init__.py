"""One way in: a row is an id, any number of pictures and named fields, whatever it comes from.

:func:`open_rows` reads folders, tables, Parquet files, Hub datasets, pictures made here and finished runs;
:mod:`protoscore.sources.pairing` decides which prompt belongs to which of a team's own pictures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from protoscore.sources.rows import Rows


def open_rows(
    source: str | Path, split: str = "test", images: Sequence[str] = (), fields: Mapping[str, str] | None = None,
    id_column: str | None = None, benchmark: str | None = None, config: str | None = None,
) -> Rows:  # fmt: skip
    """The rows of a dataset; see :class:`protoscore.sources.datasets.DatasetRows` for the arguments.

    Args:
        benchmark: the name of the benchmark whose rows these are, so that a run over them knows where it belongs.

    Raises:
        DatasetError: the source is not one, or lacks a column.
    """
    from protoscore.sources.datasets import DatasetRows

    rows = DatasetRows(str(source), split, images, fields, id_column, config=config)
    if benchmark:
        rows.parameters = {"benchmark": benchmark, **rows.parameters}
    return rows


def columns_of(source: str | Path, split: str = "test") -> frozenset[str]:
    """The columns that a dataset has, over all of its Parquet files where it is a folder of several configs."""
    from protoscore.sources.datasets import records_of
    from protoscore.sources.records import ParquetRecords, parquet_files

    if Path(source).is_dir() and (files := parquet_files(Path(source), split)):
        return frozenset(name for path in files for name in ParquetRecords([path]).columns)
    return frozenset(records_of(str(source), split).columns)
