"""Small four-cell datasets made of plain pictures, and scorers of the tests that do what a test needs."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from protoscore.benchmarks.protobias.cells import CellRows
from protoscore.benchmarks.protobias.schema import Cell
from protoscore.scorers import Facts, Score, Separable
from protoscore.sources.rows import View

FACTS = Facts(question="How bright?", paper="none", licence="none")


def png(*seed: object, size: int = 8, mode: str = "RGB") -> bytes:
    """A picture of noise; the same seed gives the same bytes."""
    rng = np.random.default_rng(list(hashlib.sha256(repr(seed).encode()).digest()))
    shape = (size, size, len(mode)) if len(mode) > 1 else (size, size)
    buffer = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8), mode if mode != "L" else None).save(buffer, "PNG")
    return buffer.getvalue()


def write_controls(folder: Path, count: int, picture=png, text="a thing with {} dots", group: int = 100) -> Path:
    """``count`` rows of four cells in two Parquet files. ``picture(row, cell)`` gives the bytes of one."""
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    schema = pa.schema(
        [
            ("triplet", pa.string()),
            ("rendition", pa.int32()),
            ("domain", pa.string()),
            ("knob", pa.string()),
            ("text", pa.string()),
        ]
        + [(f"{cell.value}_image", image) for cell in Cell]
    )
    (folder / "controls").mkdir(parents=True)
    half = count - count // 2
    for part, numbers in enumerate((range(half), range(half, count))):
        with pq.ParquetWriter(folder / "controls" / f"test-{part:05}.parquet", schema) as writer:
            for start in range(0, len(numbers), group):
                rows = [
                    {"triplet": f"t{n}", "rendition": 0, "domain": "animals", "knob": "count", "text": text.format(n)}
                    | {f"{cell.value}_image": {"bytes": picture(n, cell.value), "path": None} for cell in Cell}
                    for n in numbers[start : start + group]
                ]
                writer.write_table(pa.Table.from_pylist(rows, schema))
    return folder


def table(run: Path) -> list[dict]:
    return pq.read_table(run / "scores.parquet").to_pylist()


def digest(run: Path) -> str:
    """Of the table and the manifest."""
    return hashlib.sha256((run / "scores.parquet").read_bytes() + (run / "manifest.json").read_bytes()).hexdigest()


def brightness(image: Image.Image) -> float:
    return float(np.asarray(image).mean())


class Probe:
    """Brightness, with chosen misbehaviour, that counts its own calls."""

    revision, batch_size = "1", 7

    def __init__(self, answer=None, higher: bool = True, name: str = "probe", batch_size: int = 7):
        self.parameters, self.calls, self.batches, self.answer, self.name = {}, 0, [], answer, name
        self.batch_size = batch_size
        self.facts = FACTS.model_copy(update={"higher_is_better": higher})

    def score(self, images, texts):
        self.calls += len(texts)
        self.batches.append(list(texts))
        if self.answer is not None:
            return [self.answer] * len(texts)
        return [Score(brightness(image)) for image in images]


class Picky(Probe):
    """Raises on any batch that holds a picture one pixel wide or a text with the word "boom"."""

    def score(self, images, texts):
        if any(image.width == 1 for image in images) or any("boom" in text for text in texts):
            raise ValueError("this one I cannot take")
        return super().score(images, texts)


class Drifting(Probe):
    """Its last digits move with the make-up of the batch, as those of a real model do."""

    def score(self, images, texts):
        self.calls += len(texts)
        drift = len(texts) * 1e-9 + sum(map(len, texts)) * 1e-12
        return [Score(brightness(image) + len(text) + drift) for image, text in zip(images, texts, strict=True)]


class Apart(Separable):
    """Brightness plus the length of the text, in two parts that drift with their batch, and count what they encode."""

    facts, revision, name = FACTS, "1", "apart"

    def __init__(self, batch_size: int = 4):
        self.parameters, self.batch_size = {}, batch_size
        self.images, self.texts, self.matched = [], [], 0

    def encode_images(self, images):
        self.images += [image.tobytes() for image in images]
        drift = len(images) * 1e-9 + sum(map(brightness, images)) * 1e-12
        if any(image.width == 1 for image in images):
            raise ValueError("too narrow")
        return [brightness(image) + drift for image in images]

    def encode_texts(self, texts):
        self.texts += texts
        drift = sum(map(len, texts)) * 1e-12
        return [len(text) + drift for text in texts], [len(text) > 24 for text in texts]

    def match(self, image_features, text_features):
        self.matched += len(image_features)
        return [a + b for a, b in zip(image_features, text_features, strict=True)]


def questions(source: Path | str, limit: int | None = None, split: str = "test") -> View:
    """The first rows of a dataset, ``limit`` of them with all their pictures."""
    rows = CellRows(str(source), split)
    return View(rows, None if limit is None else len(rows.layout.pictures) * limit)
