"""One small tree of exceptions. The CLI prints each of them in one line and exits with code 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class ProtoscoreError(Exception):
    """Base of every error that a user can cause and mend. The message says what, why and what to type next."""


class ConfigError(ProtoscoreError):
    """A YAML file, a parameter or a combination of options is malformed."""


class DatasetError(ProtoscoreError):
    """A folder or file is not the dataset (or run) that the command needs."""


class ImageError(ProtoscoreError):
    """Bytes that are not a readable image."""


class CheckpointError(ProtoscoreError):
    """A model folder misses files or holds other weights than its configuration announces."""


class HubError(ProtoscoreError):
    """The Hub refused a request, cannot be reached, or holds something that must not be overwritten."""


class MissingExtra(ProtoscoreError):
    """An optional dependency is not installed."""

    def __init__(self, module: str, extra: str):
        super().__init__(f"{module} is not installed; it comes with: pip install 'protoscore[{extra}]'")


@contextmanager
def needs(extra: str, library: str = "") -> Iterator[None]:
    """Turn an import that fails inside into the line that installs it: ``with needs("models"): import torch``.

    Args:
        library: what is missing, where the error does not say it.
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtra(error.name or library or str(error), extra) from error


class UnknownName(ProtoscoreError):
    """A component or value that does not exist; the closest known name is suggested."""

    def __init__(self, kind: str, name: str, known: Iterable[str]):
        super().__init__(f"unknown {kind} {name!r}; {suggestion(name, known)}")


def first_line(error: object) -> str:
    """The first line of an error's message, or its kind where it has none; for a message of one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def suggestion(name: str, known: Iterable[str]) -> str:
    """The closest of ``known``, where one is close, and all of them."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}known: {', '.join(known)}"
