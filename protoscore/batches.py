"""Lists and streams in parts of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """``items`` in lists of ``size``; the last one may be shorter. A stream is read one list at a time."""
    stream = iter(items)
    while part := list(islice(stream, size)):
        yield part


def paired(images: Sequence[T], texts: Sequence[U], size: int) -> Iterator[tuple[list[T], list[U]]]:
    """Pictures (or what was made of them) and their texts, ``size`` of each at a time.

    Raises:
        ValueError: not one text per image.
    """
    refuse_unequal(images, texts)
    return zip(batched(images, size), batched(texts, size), strict=True)


def refuse_unequal(images: Sized, texts: Sized) -> None:
    """Stop where there is not one text per image.

    Raises:
        ValueError: there is not.
    """
    if len(images) != len(texts):
        raise ValueError(f"{len(images)} images and {len(texts)} texts; give one text per image")
