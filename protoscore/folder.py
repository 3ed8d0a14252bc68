"""A stage's folder: Parquet parts that appear whole or not at all, and a manifest that says how they were made."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

import protoscore
from protoscore.errors import DatasetError, ProtoscoreError

MANIFEST = "manifest.json"
STALE = 3600.0  # seconds after which a temporary file that nobody writes into is what a killed process left


@contextmanager
def plain_disk_errors(path: Path) -> Iterator[None]:
    """Say in one line that the disk is full, or that ``path`` cannot be written.

    Raises:
        ProtoscoreError: instead of the OSError.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise ProtoscoreError(
                f"the disk is full while writing {path}; free some space and run the same command again"
            ) from error
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR, errno.EEXIST):
            raise ProtoscoreError(f"{path} cannot be written ({error.strerror}); choose another folder with --out") from error
        raise


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path that becomes ``path`` when the block ends well, and vanishes when it does not.

    Raises:
        ProtoscoreError: the disk is full or the place cannot be written to.
    """
    temporary = path.with_name(f".{path.name}.{uuid4().hex[:12]}.part")
    with plain_disk_errors(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            with temporary.open("rb+") as handle:
                os.fsync(handle.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def locked(folder: Path, stage: str) -> Iterator[None]:
    """Keep ``folder`` for this process. What killed processes left half written there is removed.

    Raises:
        DatasetError: another process is at work on it. The system frees the lock of a process that dies, however it dies.
    """
    folder = Path(folder)
    with plain_disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock")
        try:
            lock.acquire(blocking=False)
        except Timeout as error:
            raise DatasetError(
                f"another process is at work on {folder} ({stage}); wait for it, or choose another --out"
            ) from error
    try:
        for left in folder.glob(".*.part"):
            if time.time() - left.stat().st_mtime > STALE:
                left.unlink(missing_ok=True)
        yield
    finally:
        lock.release()


def write_text(path: Path, text: str) -> None:
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_table(path: Path, table: pa.Table) -> None:
    """Write one Parquet part whole. The same table gives the same bytes."""
    with whole_file(path) as temporary:
        pq.write_table(table, temporary, compression="snappy", use_content_defined_chunking=True, write_page_index=True)


def write_manifest(folder: Path, stage: str, parameters: dict[str, Any], parent: Path | None = None, **facts: Any) -> None:
    """Record what was made, from what, with which version and parameters. Holds no time and no path: the same work
    gives the same manifest."""
    body = {
        "stage": stage,
        "protoscore": protoscore.__version__,
        "parameters": parameters,
        "parent": manifest_hash(parent) if parent else None,
        **facts,
    }
    write_text(folder / MANIFEST, json.dumps(body, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def read_manifest(folder: Path, stage: str | None = None) -> dict[str, Any]:
    """The manifest of ``folder``.

    Raises:
        DatasetError: the folder is none of ours, or another stage made it.
    """
    path = Path(folder) / MANIFEST
    if not path.is_file():
        raise DatasetError(f"{folder} is not a protoscore folder (it has no {MANIFEST}); give the --out of an earlier command")
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        made_by = body["stage"]
    except (ValueError, KeyError, TypeError) as error:
        raise DatasetError(f"{path} is damaged ({error}); make the folder again") from error
    if stage and made_by != stage:
        raise DatasetError(f"{folder} was made by '{made_by}', and this command needs the output of '{stage}'")
    return body


def manifest_hash(folder: Path) -> str:
    """sha256 of a folder's manifest: the name of what was built from it."""
    return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()


def claim(folder: Path, stage: str, parameters: dict[str, Any], parent: Path | None = None) -> None:
    """Make ``folder`` ready for a stage, or for going on with the same work.

    Raises:
        DatasetError: the folder already holds something else.
    """
    plan = {"stage": stage, "parameters": parameters, "parent": manifest_hash(parent) if parent else None}
    path = folder / "plan.json"
    wanted = json.dumps(plan, sort_keys=True)
    if path.is_file() and path.read_text(encoding="utf-8") != wanted:
        raise DatasetError(f"{folder} holds the result of other parameters; choose another --out, or delete that folder")
    if not path.is_file() and folder.is_dir() and any(folder.iterdir()):
        raise DatasetError(f"{folder} exists and is not an unfinished '{stage}' run; choose another --out")
    write_text(path, wanted)


def parts(folder: Path, pattern: str = "part-*.parquet") -> list[Path]:
    return sorted(Path(folder).glob(pattern))


def read_rows(paths: list[Path], columns: list[str] | None = None, batch: int = 64) -> Iterator[dict[str, Any]]:
    """Rows of Parquet files, a few at a time, so that memory does not grow with the files.

    Raises:
        DatasetError: a file is no Parquet file or lacks a column.
    """
    for path in paths:
        try:
            with pq.ParquetFile(path) as file:
                for chunk in file.iter_batches(batch, columns=columns):
                    yield from chunk.to_pylist()
        except (pa.ArrowInvalid, KeyError) as error:
            raise DatasetError(f"{path} is not the Parquet file that was expected ({str(error).splitlines()[0]})") from error
