"""The embedding stage: each picture once, failures as states, the same bytes whatever stopped it."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import random
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from protoscore.embedding import embed_rows
from protoscore.errors import DatasetError, ProtoscoreError
from protoscore.sources.decoding import open_image
from protoscore.sources.rows import Row
from tests.conftest import cli
from tests.controls import png

SEED = int(os.environ.get("PROTOSCORE_TEST_SEED", "3"))


class Listed:
    """Rows from a list of pictures, with one key column."""

    columns, source, parent, scenes, parameters = ("model",), "a list", None, True, {"split": "test"}

    def __init__(self, pictures):
        self.pictures = pictures

    def __len__(self):
        return len(self.pictures)

    def rows(self, start=0, stop=None):
        for number, data in list(enumerate(self.pictures))[start:stop]:
            yield Row(f"r{number}", (data,), {"model": f"m{number % 2}"})

    def fingerprint(self):
        return None


class Means:
    """Mean colours, whose last digits move with the batch as those of a real model do; logs what it embeds."""

    name, revision, batch_size, dimension = "means", "1", 4, 3

    def __init__(self, log=None, sleep=0.0):
        self.parameters, self.seen, self._log, self._sleep = {}, [], log, sleep

    def embed(self, images):
        if any(image.width == 1 for image in images):
            raise ValueError("too narrow")
        self.seen += images
        time.sleep(self._sleep)
        vectors = np.stack([np.asarray(image, np.float32).mean((0, 1)) for image in images])
        if self._log:
            with Path(self._log).open("a") as log:
                log.write("".join(f"{image.tobytes().hex()[:32]}\n" for image in images))
        return vectors + np.float32(vectors.sum() * 1e-6)


def table(run: Path) -> list[dict]:
    return pq.read_table(run / "embeddings.parquet").to_pylist()


def digest(run: Path) -> str:
    return hashlib.sha256((run / "embeddings.parquet").read_bytes() + (run / "manifest.json").read_bytes()).hexdigest()


def test_each_distinct_picture_is_embedded_once_and_what_fails_is_a_state(tmp_path):
    pictures = [png(n % 7) for n in range(20)] + [b"no picture", png("narrow", size=1)]
    means = Means()
    assert embed_rows(Listed(pictures), means, tmp_path) == (22, 9, 2, "not a readable picture (UnidentifiedImageError)")
    assert len(means.seen) == 7, "the batch with the narrow one is tried again one by one, and nothing else"
    rows = table(tmp_path)
    assert [(row["id"], row["model"]) for row in rows[:2]] == [("r0", "m0"), ("r1", "m1")]
    for row, data in zip(rows[:20], pictures, strict=False):
        assert row["status"] == "ok"
        np.testing.assert_allclose(row["vector"], np.asarray(open_image(data), float).mean((0, 1)), atol=0.01)
    assert [(row["status"], row["vector"], row["reason"]) for row in rows[20:]] == [
        ("invalid", None, "not a readable picture (UnidentifiedImageError)"), ("error", None, "ValueError: too narrow"),
    ]  # fmt: skip
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["parameters"]["embedder"]["dimension"] == 3 and manifest["states"] == {"error": 1, "invalid": 1, "ok": 20}
    assert embed_rows(Listed(pictures), Means(), tmp_path).embedded_now == 1, "an error is tried again, with its block"


@pytest.mark.parametrize(
    ("vectors", "says"),
    [(lambda n: np.zeros((n, 2)), r"vectors of shape \(4, 2\)"), (lambda n: np.zeros((n - 1, 3)), r"shape \(3, 3\)")],
)
def test_vectors_of_another_form_stop_the_run(tmp_path, vectors, says):
    wrong = Means()
    wrong.embed = lambda images: vectors(len(images))
    with pytest.raises(ProtoscoreError, match=says):
        embed_rows(Listed([png(n) for n in range(4)]), wrong, tmp_path)


def test_a_vector_that_is_not_finite_is_none(tmp_path):
    odd = Means()
    odd.embed = lambda images: np.where(np.arange(len(images))[:, None] == 1, np.nan, 1.0) * np.ones(3)
    embed_rows(Listed([png(n) for n in range(3)]), odd, tmp_path)
    assert [(row["status"], row["vector"]) for row in table(tmp_path)] == [
        ("ok", [1.0] * 3), ("invalid", None), ("ok", [1.0] * 3),
    ]  # fmt: skip


def test_other_work_in_the_same_folder_is_refused(tmp_path):
    pictures = [png(n) for n in range(9)]
    embed_rows(Listed(pictures), Means(), tmp_path)
    before = digest(tmp_path)
    for rows, embedder in ((Listed(pictures[:8]), Means()), (Listed(pictures), Means())):
        embedder.revision = "2" if len(rows) == 9 else "1"
        with pytest.raises(DatasetError, match="other parameters"):
            embed_rows(rows, embedder, tmp_path)
    assert digest(tmp_path) == before and embed_rows(Listed(pictures), Means(), tmp_path).embedded_now == 0


def test_a_row_with_two_pictures_is_refused(tmp_path):
    rows = Listed([png(1)])
    rows.rows = lambda start=0, stop=None: iter([Row("both", (png(1), png(2)), {"model": "m"})])
    with pytest.raises(DatasetError, match="row 'both' has 2 pictures, not one"):
        embed_rows(rows, Means(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_picture_that_changes_meanwhile_gets_no_vector(tmp_path):
    rows = Listed([png(1), png(2)])
    read = []

    def changing(start=0, stop=None):
        read.append(start)
        return Listed([png(1), png(2 if len(read) == 1 else 3)]).rows(start, stop)

    rows.rows = changing
    embed_rows(rows, Means(), tmp_path)
    assert [row["status"] for row in table(tmp_path)] == ["ok", "error"]


def embed_slowly(out: str, sleep: float) -> None:
    embed_rows(Listed([png(n % 150, size=16) for n in range(200)]), Means(f"{out}.log", sleep), Path(out))


def test_killed_at_random_moments_the_bytes_are_the_same_and_little_is_done_twice(tmp_path):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.test_embedding", "pyarrow.parquet"])

    def to_the_end(out: Path) -> None:  # with the same libraries loaded as those that are killed
        process = context.Process(target=embed_slowly, args=(str(out), 0.0))
        process.start()
        process.join(120)
        assert process.exitcode == 0

    to_the_end(tmp_path / "calm")
    rng, stormy, killed = random.Random(SEED), tmp_path / "stormy", 0
    for _ in range(10):
        process = context.Process(target=embed_slowly, args=(str(stormy), 0.02))
        process.start()
        process.join(rng.uniform(0.05, 0.4))
        killed += process.is_alive()
        process.kill()
        process.join()
    to_the_end(stormy)
    assert digest(stormy) == digest(tmp_path / "calm")
    log = Path(f"{stormy}.log").read_text().splitlines()
    assert killed >= 5 and len(set(log)) == 150 and len(log) <= 150 + 4 * killed, "a kill costs a block of 4"


def test_the_command(tmp_path):
    (tmp_path / "pics").mkdir()
    for n in range(3):
        (tmp_path / "pics" / f"{n}.png").write_bytes(png(n, size=40))
    result = cli("embed", tmp_path / "pics", "--out", tmp_path / "run", "-o", "batch_size=2")
    assert result.returncode == 0, result.stderr
    assert "3 rows, 3 pictures embedded now" in result.stdout
    assert {len(row["vector"]) for row in table(tmp_path / "run")} == {128}
    result = cli("embed", tmp_path / "pics", "-e", "sceen", "--out", tmp_path / "other")
    assert result.returncode == 2 and "unknown embedder 'sceen'; did you mean 'scene'?" in result.stderr
    assert not (tmp_path / "other").exists()
