"""Opening pictures that nobody vouches for, and decoding them ahead of whoever scores them.

What becomes of a picture:

====================================================  =========  ====================================================
what the bytes are                                    state      what is scored, or the reason
====================================================  =========  ====================================================
PNG, JPEG, WebP, GIF, BMP, TIFF, PPM or AVIF          ok         the picture as RGB (alpha is dropped, as CLIP's own
                                                                 preprocessing does)
16 bits a channel in grey (mode ``I;16``)             ok         the upper 8 bits
EXIF says that it is turned                           ok         the picture turned upright
animation, several pages                              ok         the first frame
1 x 1, or any other size up to 50 million pixels      ok         whatever the metric makes of it
empty, no picture, truncated, bad checksum (PNG)      invalid    "not a readable picture (...)"
32-bit integers or floats (modes ``I``, ``F``)        invalid    no value of them is white by definition
header announces more than 50 million pixels          refused    it is not decoded at all
any other format (EPS, SVG, PSD, ICO ...)             invalid    their decoders are not run on what strangers send
memory ran out                                        error      tried again by the next run
====================================================  =========  ====================================================

Damage that a format cannot show (a flipped bit in a JPEG that still decodes) is not seen: the picture is then what the
decoder makes of it, as for every other program.
"""

from __future__ import annotations

import io
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple, TypeVar

from PIL import Image, ImageOps

from protoscore.errors import ImageError, ProtoscoreError
from protoscore.schema import Status

MAX_PIXELS = 50_000_000
AHEAD_PIXELS = 200_000_000  # decoded and not yet scored: 600 MB at most, plus one picture
BATCH_PIXELS = 200_000_000  # a batch of pictures closes early here, so that a few huge ones cannot fill the memory
SMALL = 64 * 64  # pixels that are decoded faster than a thread is woken
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF")

T = TypeVar("T")


class RefusedImage(ImageError):
    """A picture that is not decoded, because of what its header announces."""


def open_image(data: bytes) -> Image.Image:
    """Bytes of a picture as RGB, turned upright; the first frame of an animation. The module says what is accepted.

    Raises:
        ImageError: they are not a picture that can be read; :class:`RefusedImage`: one that is too large.
    """
    try:
        image = _header(data)
        if image.format == "PNG":
            image.verify()  # checksums, which decoding alone may pass over
            image = _header(data)
        if image.mode.startswith("I;16"):
            image = image.convert("I").point(lambda value: value / 256).convert("L")
        elif image.mode in ("I", "F"):
            raise ImageError(f"its pixels are of mode {image.mode}, in which no value is white; save it with 8 bits a channel")
        return ImageOps.exif_transpose(image).convert("RGB")
    except (ImageError, MemoryError):
        raise
    except Exception as error:  # Pillow's decoders raise many kinds on damaged files
        raise ImageError(f"not a readable picture ({type(error).__name__})") from error


@cache
def _formats() -> tuple[str, ...]:
    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)  # older Pillows know no AVIF


def _header(data: bytes) -> Image.Image:
    try:
        image = Image.open(io.BytesIO(_without_text(data)), formats=_formats())
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:  # Pillow's own, larger limits
        raise RefusedImage(f"the picture has more than {MAX_PIXELS // 10**6} million px; it was not decoded") from error
    if image.width * image.height > MAX_PIXELS:
        raise RefusedImage(
            f"the picture has {image.width} x {image.height} px, more than {MAX_PIXELS // 10**6} million; it was not decoded"
        )
    return image


def _without_text(data: bytes) -> bytes:
    """A PNG without its texts (prompts and whole workflows, perhaps larger than Pillow reads); anything else as it is."""
    if not data.startswith(b"\x89PNG\r\n\x1a\n"):
        return data
    kept, start, at = [], 0, 8
    while at + 12 <= len(data):
        end = at + 12 + int.from_bytes(data[at : at + 4])
        if data[at + 4 : at + 8] in (b"tEXt", b"zTXt", b"iTXt"):
            kept.append(data[start:at])
            start = end
        at = end
    return b"".join([*kept, data[start:]]) if kept else data


class Picture(NamedTuple):
    """A decoded picture, or what a scorer made of it; or the state that it ended in and why."""

    image: Any | None
    status: Status = Status.OK
    reason: str = ""
    pixels: int = 0  # what it holds, as long as it is a picture


def decode(data: bytes, prepare: Callable[[Image.Image], Any] | None = None) -> Picture:
    """:func:`open_image`, and ``prepare`` of what it gives, with failures as states."""
    try:
        image = open_image(data)
        prepared = prepare(image) if prepare else image
    except RefusedImage as error:
        return Picture(None, Status.REFUSED, str(error))
    except ImageError as error:
        return Picture(None, Status.INVALID, str(error))
    except MemoryError:
        return Picture(None, Status.ERROR, "no memory to decode the picture")
    except ProtoscoreError:
        raise
    except (Exception, SystemExit) as error:  # whatever a scorer raises on some picture
        return Picture(None, Status.ERROR, what_happened(error))
    return Picture(prepared, pixels=image.width * image.height if prepared is image else 0)


def what_happened(error: BaseException) -> str:
    """The first line of an error that is not ours, after its type."""
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:200]}"


class Decoder:
    """Threads that decode (Pillow lets go of the interpreter meanwhile), in order and only so far ahead.

    Args:
        prepare: what else is done with a picture there; its result takes the picture's place.
    """

    def __init__(self, ahead: int, workers: int | None = None, prepare: Callable[[Image.Image], Any] | None = None):
        self._ahead, self._prepare = ahead, prepare
        self._pool = ThreadPoolExecutor(workers or min(8, os.cpu_count() or 1), thread_name_prefix="decode")

    def stream(self, items: Iterable[tuple[T, str, bytes]]) -> Iterator[tuple[T, Picture]]:
        """(tag, name, bytes) to (tag, picture), in order. Items of one name that are near each other are decoded once."""
        window: deque[tuple[T, str, Future[Picture], int]] = deque()
        source, pixels = iter(items), 0
        while True:
            while len(window) < self._ahead and (pixels < AHEAD_PIXELS or not window):
                item = next(source, None)
                if item is None:
                    break
                tag, name, data = item
                twin = next((entry for entry in window if entry[1] == name), None)
                size = 0 if twin else _pixels(data)
                window.append((tag, name, twin[2] if twin else self._start(data, size), size))
                pixels += size
            if not window:
                return
            tag, _, future, size = window.popleft()
            pixels -= size
            yield tag, future.result()

    def _start(self, data: bytes, size: int) -> Future[Picture]:
        if size > SMALL:
            return self._pool.submit(decode, data, self._prepare)
        done: Future[Picture] = Future()
        done.set_result(decode(data, self._prepare))
        return done

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def batches(items: Iterable[T], size: int, picture: Callable[[T], Picture]) -> Iterator[list[T]]:
    """At most ``size`` items and, beyond the first, no more than so many pixels."""
    batch: list[T] = []
    pixels = 0
    for item in items:
        held = picture(item).pixels
        if batch and (len(batch) == size or pixels + held > BATCH_PIXELS):
            yield batch
            batch, pixels = [], 0
        batch.append(item)
        pixels += held
    if batch:
        yield batch


def _pixels(data: bytes) -> int:
    """What decoding will hold, from the header; 0 when nothing will be decoded."""
    try:
        image = _header(data)
        return image.width * image.height
    except Exception:
        return 0
