"""The files of a folder that may go to the Hub, and those that must never go."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from protoscore.errors import DatasetError

RECORD = ".protoscore-publish.json"  # what was published from a folder, and as which revision; it stays here
SENT_THOUGH_HIDDEN = (".gitattributes", ".eval_results")
LEFT_BEHIND = ("__pycache__", "*.pyc", "*.egg-info")
# What a Trainer keeps beside a model, for itself: to go on from, and its logs.
TRAINERS_OWN = (
    "checkpoint-*", "runs/*", "training_args.bin", "trainer_state.json", "optimizer.*", "scheduler.pt", "scaler.pt",
    "rng_state*",
)  # fmt: skip

PICKLES = (".bin", ".ckpt", ".h5", ".joblib", ".npy", ".npz", ".pickle", ".pkl", ".pt", ".pth")
SECRET_NAMES = (
    ".env", ".env.*", "*.env", ".netrc", ".npmrc", ".pypirc", ".git-credentials", "*.pem", "*.key", "*.p12", "*.pfx",
    "id_rsa*", "id_ecdsa*", "id_ed25519*", "token", "token.txt", "*_token", "*_token.txt", "credentials", "credentials.*",
    "secrets.*", "stored_tokens",
)  # fmt: skip
SECRET_TEXTS = re.compile(
    rb"\bhf_[A-Za-z0-9]{30,}|\bgh[pousr]_[A-Za-z0-9]{30,}|\bsk-[A-Za-z0-9_-]{30,}|\bAKIA[0-9A-Z]{16}\b"
    rb"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
TEXTS = (".cfg", ".csv", ".ini", ".ipynb", ".jinja", ".json", ".jsonl", ".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml")
TEXT_LIMIT = 5_000_000  # bytes; larger files are data and are not searched for keys


class File(NamedTuple):
    """One file to publish."""

    name: str  # its path in the repository, with forward slashes
    path: Path
    size: int  # bytes

    def sha256(self) -> str:
        with self.path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()

    def git_oid(self) -> str:
        """The name that git gives to this content."""
        data = self.path.read_bytes()
        return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def collect(folder: Path, token: str | None = None, left_behind: Sequence[str] = ()) -> list[File]:
    """The files of ``folder`` that are published, by name. Hidden files and caches stay here.

    Args:
        token: the user's own token; a file that holds it is refused.
        left_behind: patterns of names that stay here too, unread.

    Raises:
        DatasetError: no such folder; nothing in it; a link, a pickle, or something that looks like a secret.
    """
    if not folder.is_dir():
        raise DatasetError(f"{folder} is not a folder; give the folder to publish")
    files = []
    for path in _walk(folder):
        name = path.relative_to(folder).as_posix()
        if matches(name, left_behind):
            continue
        _refuse_secret_name(name)
        if not _is_left_behind(name):
            files.append(File(name, path, _size(name, path)))
    if not files:
        raise DatasetError(f"{folder} holds no file to publish")
    for file in files:
        _refuse_content(file, token)
    return files


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a file's path in its folder fits one of ``patterns``, in which ``*`` stands for folders too."""
    return any(fnmatch(name, pattern) for pattern in patterns)


def build_id(folder: Path, files: list[File], seen: Callable[[File], None] = lambda file: None) -> str:
    """sha256 that names a build: of its manifest where it has one, else of the names and contents of its files."""
    manifest = folder / "manifest.json"
    if manifest.is_file():
        return hashlib.sha256(manifest.read_bytes()).hexdigest()
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0{file.sha256()}\n".encode())
        seen(file)
    return digest.hexdigest()


def _walk(folder: Path) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:  # os.walk passes over such folders without a word
        raise DatasetError(f"{error.filename} cannot be read ({error.strerror})") from error

    for root, folders, names in os.walk(folder, onerror=unreadable):
        folders.sort()
        for name in folders:
            if (Path(root) / name).is_symlink():
                raise DatasetError(f"{Path(root) / name} is a link to a folder; put the files themselves there")
        for name in sorted(names):
            path = Path(root) / name
            if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
                raise DatasetError(f"{path} is a link that leads out of the folder; copy the file itself there (cp -L)")
            yield path


def _is_left_behind(name: str) -> bool:
    steps = name.split("/")
    hidden = any(step.startswith(".") for step in steps) and steps[0] not in SENT_THOUGH_HIDDEN
    return hidden or any(matches(step, LEFT_BEHIND) for step in steps)


def _size(name: str, path: Path) -> int:
    try:
        facts = path.stat()
    except OSError as error:
        raise DatasetError(f"{path} cannot be read ({error.strerror})") from error
    if not stat.S_ISREG(facts.st_mode):
        raise DatasetError(f"{path} is not an ordinary file; take it out of the folder")
    if path.suffix.lower() in PICKLES:
        raise DatasetError(
            f"{name} may hold code and not only numbers; save weights as safetensors, or take it out of the folder"
        )
    return facts.st_size


def _refuse_secret_name(name: str) -> None:
    base = name.rsplit("/", 1)[-1].lower()
    if matches(base, SECRET_NAMES):
        raise DatasetError(f"{name} looks like a secret; take it out of the folder")


def _refuse_content(file: File, token: str | None) -> None:
    if file.size > TEXT_LIMIT or file.path.suffix.lower() not in TEXTS:
        return
    try:
        data = file.path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{file.path} cannot be read ({error.strerror})") from error
    if SECRET_TEXTS.search(data) or (token and token.encode() in data):
        raise DatasetError(f"{file.name} holds what looks like an access key; take the key out of it")
