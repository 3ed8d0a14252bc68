"""A stage's folder: Parquet parts that appear whole or not at all, and a manifest that says how they were made."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

import protoscore
from protoscore.errors import DatasetError, ProtoscoreError, first_line

MANIFEST = "manifest.json"
LOCK = ".lock"
_PASSING = re.compile(r"\.lock|\..+\.part")  # names of what belongs to a running process, and is not content


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
    # Not the process id: two containers may have the same one.
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.part")
    with plain_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("ab") as held:
            try:
                with suppress(OSError):  # a file system without locks
                    _hold(held.fileno())
                yield temporary
                with temporary.open("rb+") as handle:
                    os.fsync(handle.fileno())
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)


def _hold(descriptor: int) -> None:
    """Mark an open file as in use for as long as it is open.

    Raises:
        OSError: another process uses it.
    """
    with suppress(ImportError):  # Windows: there nothing is swept either
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def sweep(folder: Path) -> None:
    """Remove the temporary files of :func:`whole_file` that killed processes left; those in use stay."""
    for path in folder.glob(".*.part"):
        with suppress(OSError, ImportError):
            import fcntl  # noqa: F401 - without locks nobody knows what is in use

            with path.open("ab") as handle:
                _hold(handle.fileno())
                path.unlink()


@contextmanager
def locked(folder: Path, stage: str) -> Iterator[None]:
    """Let no other process work into ``folder`` meanwhile; what killed ones left unfinished there is swept.

    Raises:
        DatasetError: another process works there.
        ProtoscoreError: the folder cannot be written to.
    """
    with plain_disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK)
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise DatasetError(
                f"another process is working into {folder} ({stage}); wait for it, or choose another --out"
            ) from error
    try:
        sweep(folder)
        yield
    finally:
        lock.release()


@contextmanager
def claimed(folder: Path, stage: str, parameters: dict[str, Any], parent: Path | None = None) -> Iterator[None]:
    """:func:`claim` a folder for this process alone. Somebody else's folder is left as it is.

    Raises:
        DatasetError: it holds something else, or another process works there.
    """
    refuse_other_work(folder, stage, parameters, parent)
    with locked(folder, stage):
        claim(folder, stage, parameters, parent)
        yield


def write_text(path: Path, text: str) -> None:
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_table(path: Path, table: pa.Table, for_hub: bool = True) -> None:
    """Write one Parquet part whole. The same table gives the same bytes.

    Args:
        for_hub: cut into pages by content, so that the Hub stores equal ones once. Where the disk is full, that ends the
            process instead of raising; so not for what is big and stays here.
    """
    with table_writer(path, table.schema, for_hub) as writer:
        writer.write_table(table)


@contextmanager
def table_writer(path: Path, schema: pa.Schema, for_hub: bool = True) -> Iterator[pq.ParquetWriter]:
    """:func:`write_table` piece by piece, for a table that no memory has to hold; the same pieces give the same bytes."""
    options = {"compression": "snappy", "use_content_defined_chunking": for_hub, "write_page_index": True}
    with whole_file(path) as temporary, pq.ParquetWriter(temporary, schema, **options) as writer:
        yield writer


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
    write_text(folder / "plan.json", refuse_other_work(folder, stage, parameters, parent))


def refuse_other_work(folder: Path, stage: str, parameters: dict[str, Any], parent: Path | None = None) -> str:
    """The text of the plan that the work goes by.

    Raises:
        DatasetError: the folder holds something else; the message names the first parameter that differs.
    """
    wanted = {"stage": stage, "parameters": parameters, "parent": manifest_hash(parent) if parent else None}
    text = json.dumps(wanted, sort_keys=True)
    path = folder / "plan.json"
    content = {p.name for p in folder.iterdir() if not _PASSING.fullmatch(p.name)} if folder.is_dir() else set()
    try:
        there = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    except ValueError:  # a power cut; alone in its folder it says nothing of any work
        there, content = None, content - {path.name}
    if there is not None and there != json.loads(text):
        raise DatasetError(
            f"{folder} holds the result of other parameters ({_difference(there, json.loads(text))}); "
            "choose another --out, or delete that folder"
        )
    if there is None and content:
        raise DatasetError(f"{folder} exists and is not an unfinished '{stage}' run; choose another --out")
    return text


def _difference(there: Any, now: Any) -> str:
    """The first thing in which two plans differ, in words."""
    if not isinstance(there, dict) or there.get("stage") != now["stage"]:
        return f"not of '{now['stage']}'"
    old, new = _flat(there.get("parameters")), _flat(now["parameters"])
    for name in dict.fromkeys([*new, *old]):
        if old.get(name) != new.get(name):
            return f"{name}: {_short(old.get(name))} there, {_short(new.get(name))} now"
    return "it was made from other input"


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {name: value}
    return {k: v for key, inner in value.items() for k, v in _flat(inner, f"{name}.{key}" if name else str(key)).items()}


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:37] + "..."


def parts(folder: Path, pattern: str = "part-*.parquet") -> list[Path]:
    return sorted(Path(folder).glob(pattern))


def read_rows(paths: list[Path], columns: list[str] | None = None, batch: int = 64) -> Iterator[dict[str, Any]]:
    """Rows of Parquet files, a few at a time, so that memory does not grow with the files.

    Raises:
        DatasetError: a file is not a Parquet file or lacks a column.
    """
    for path in paths:
        try:
            with pq.ParquetFile(path) as file:
                for chunk in file.iter_batches(batch, columns=columns):
                    yield from chunk.to_pylist()
        except (pa.ArrowInvalid, KeyError) as error:
            raise DatasetError(f"{path} is not the Parquet file that was expected ({first_line(error)})") from error
