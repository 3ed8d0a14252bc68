"""Hostile pictures, and kill -9: each row ends ok or in a named state, nothing is lost, nothing is done twice."""

from __future__ import annotations

import io
import multiprocessing
import os
import random
import resource
import struct
import threading
import time
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps, PngImagePlugin

from protoscore.benchmarks.protobias.cells import CellRows
from protoscore.catalog import load
from protoscore.errors import DatasetError, ImageError
from protoscore.folder import locked, whole_file
from protoscore.schema import Status
from protoscore.scoring.sharding import Shard
from protoscore.scoring.stage import score_rows
from protoscore.scoring.store import Store
from protoscore.sources.decoding import AHEAD_PIXELS, Decoder, Picture, decode, open_image
from tests.controls import Apart, Probe, brightness, digest, png, questions, table, write_controls

SEED = int(os.environ.get("PROTOSCORE_TEST_SEED", "3"))


def saved(image: Image.Image, kind: str, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def noise(seed: int, mode: str = "RGB", size: tuple[int, int] = (24, 20)) -> Image.Image:
    rng = np.random.default_rng(seed)
    shape = (size[1], size[0], len(mode)) if mode in ("LA", "RGB", "RGBA", "CMYK") else (size[1], size[0])
    grey = Image.fromarray(rng.integers(0, 256, (size[1], size[0]), dtype=np.uint8))
    return (
        Image.frombytes(mode, size, rng.integers(0, 256, shape, dtype=np.uint8).tobytes())
        if len(shape) == 3
        else grey.convert(mode)
    )


def bomb(width: int, height: int) -> bytes:
    """A valid PNG of so many black pixels of one bit, small on disk."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    packer, line = zlib.compressobj(9), bytes(1 + (width + 7) // 8)
    body = b"".join(packer.compress(line) for _ in range(height)) + packer.flush()
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def mutated(data: bytes, rng: random.Random) -> bytes:
    """One of six kinds of damage."""
    kind, at = rng.randrange(6), rng.randrange(len(data))
    length = rng.randint(1, max(1, len(data) // 4))
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + bytes(rng.randrange(256) for _ in range(length)) + data[at + length :]
    if kind == 2:
        return data[:at] + data[at + length :]
    if kind == 3:
        return data[:at] + data[at : at + length] * 2 + data[at + length :]
    if kind == 4:
        return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
    return bytes(rng.randrange(256) for _ in range(length))


def test_200_damaged_pictures_end_ok_or_in_a_named_state(tmp_path):
    rng = random.Random(SEED)
    kinds = ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"]
    damaged = [mutated(saved(noise(i), kinds[i % 6]), rng) for i in range(200)]
    data = write_controls(
        tmp_path / "data", 200, picture=lambda row, cell: damaged[row] if cell == "non_correct" else png(row, cell)
    )
    for name, scorer in {"pairs": Probe(batch_size=16), "apart": Apart(batch_size=16)}.items():
        score_rows(CellRows(str(data)), [scorer], tmp_path / name)
        rows = table(tmp_path / name)
        assert len(rows) == 800
        assert all(row["status"] == "ok" for row in rows if row["cell"] != "non_correct"), "no other row suffers"
        hit = [row for row in rows if row["cell"] == "non_correct"]
        for row in hit:
            assert row["status"] in ("ok", "invalid", "refused")
            assert (row["score"] is None) == (row["status"] != "ok") == bool(row["reason"])
        assert 100 < sum(row["status"] != "ok" for row in hit) < 200
        for row, bytes_ in zip(hit, damaged, strict=True):  # what has a number is what Pillow sees in it
            if row["status"] == "ok" and name == "pairs":
                seen = ImageOps.exif_transpose(Image.open(io.BytesIO(bytes_))).convert("RGB")
                assert row["score"] == brightness(seen)


def test_a_flipped_bit_in_a_png_is_noticed():
    rng, noticed = random.Random(SEED), 0
    for number in range(60):
        good = saved(noise(number), "PNG")
        at = rng.randrange(8, len(good) - 12)
        noticed += decode(good[:at] + bytes([good[at] ^ (1 << rng.randrange(8))]) + good[at + 1 :]).status != Status.OK
    assert noticed == 60


def grey_of_16_bits() -> bytes:
    return saved(Image.fromarray(np.full((4, 4), 0x8040, np.uint16)), "PNG")


def turned() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return saved(noise(2, size=(8, 4)), "JPEG", exif=exif)


def animated() -> bytes:
    return saved(Image.new("RGB", (6, 6), "white"), "GIF", save_all=True, append_images=[Image.new("RGB", (6, 6), "black")])


@pytest.mark.parametrize(
    ("make", "status", "check"),
    [
        *[(lambda m=m: saved(noise(1, m), "TIFF"), Status.OK, lambda image: image.size == (24, 20))
          for m in ("1", "L", "P", "LA", "RGB", "RGBA", "CMYK")],
        (grey_of_16_bits, Status.OK, lambda image: image.getpixel((0, 0)) == (0x80,) * 3),
        (turned, Status.OK, lambda image: image.size == (4, 8)),
        (animated, Status.OK, lambda image: image.getpixel((0, 0)) == (255, 255, 255)),
        (lambda: saved(noise(1, size=(1, 1)), "PNG"), Status.OK, lambda image: image.size == (1, 1)),
        (lambda: saved(noise(1).convert("F"), "TIFF"), Status.INVALID, "no value is white"),
        (lambda: saved(noise(1).convert("I"), "TIFF"), Status.INVALID, "no value is white"),
        (lambda: b"", Status.INVALID, "not a readable picture"),
        (lambda: b"plain text", Status.INVALID, "not a readable picture (UnidentifiedImageError)"),
        (lambda: saved(noise(1), "PNG")[:-40], Status.INVALID, "not a readable picture"),
        (lambda: saved(noise(1), "JPEG")[:400], Status.INVALID, "not a readable picture"),
        (lambda: b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>", Status.INVALID, "not a readable picture"),
        (lambda: saved(noise(1), "EPS"), Status.INVALID, "not a readable picture"),
        (lambda: saved(noise(1), "ICO"), Status.INVALID, "not a readable picture"),
        (lambda: bomb(7100, 7100), Status.REFUSED, "7100 x 7100"),
        (lambda: bomb(10_000, 10_000), Status.REFUSED, "50 million"),
        (lambda: bomb(20_000, 20_000), Status.REFUSED, "50 million"),
    ],
)  # fmt: skip
def test_the_table_of_pictures_holds(make, status, check):
    picture = decode(make())
    assert picture.status == status
    if status == Status.OK:
        assert picture.image.mode == "RGB" and check(picture.image)
    else:
        assert picture.image is None and check in picture.reason


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_bomb_is_not_decoded(tmp_path):
    bombs = [bomb(20_000, 20_000 + i) for i in range(3)]
    data = write_controls(
        tmp_path / "data", 3, picture=lambda row, cell: bombs[row] if cell == "non_correct" else png(row, cell)
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    score_rows(CellRows(str(data)), [Probe()], tmp_path / "run")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert Counter(row["status"] for row in table(tmp_path / "run")) == {"refused": 3, "ok": 9}
    assert grown < 100_000, f"one of them decoded is 1,200 MB; the process grew by {grown / 1000:.0f} MB"


def test_few_huge_pictures_are_held_at_a_time():
    huge, held = bomb(7000, 7000), []

    def source():
        for number in range(40):
            held.append(number)
            yield number, f"p{number}", huge

    decoder = Decoder(ahead=256, workers=1)
    first = next(decoder.stream(source()))
    decoder.close()
    assert first == (0, Picture(first[1].image, pixels=7000 * 7000)) and len(held) * 7000 * 7000 <= AHEAD_PIXELS + 49_000_000


def test_open_image_raises_what_it_says():
    with pytest.raises(ImageError, match="not a readable picture"):
        open_image(b"no")


# ---------------------------------------------------------------------------------------------------------------- kill -9

METRIC = '''\
"""Is the picture bright?"""
import os, time
batch_size = 4


def score(images, texts):
    time.sleep(float(os.environ.get("METRIC_SLEEP", "0")))
    with open(os.environ["METRIC_LOG"], "a") as log:
        log.write("".join(f"{text}|{image.tobytes().hex()[:32]}\\n" for image, text in zip(images, texts)))
    return [sum(image.tobytes()) + len(images) * 1e-9 for image in images]
'''


def score_slowly(data: str, metric: str, out: str, sleep: float) -> None:
    os.environ |= {"METRIC_SLEEP": str(sleep), "METRIC_LOG": f"{out}.log"}
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    score_rows(questions(data), [load("scorers", metric)], Path(out))


@pytest.fixture(scope="module")
def processes():
    """Starts processes that have everything imported already, so that a kill hits the work and not the imports."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.scoring.test_faults", "pyarrow.parquet"])
    return lambda *arguments: context.Process(target=score_slowly, args=arguments)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    (folder / "bright.py").write_text(METRIC)
    return str(write_controls(folder / "data", 150)), str(folder / "bright.py")


def run_to_the_end(*started) -> None:
    for process in started:
        process.start()
    for process in started:
        process.join(120)
        assert process.exitcode == 0


def scored_pairs(out: Path) -> Counter:
    log = Path(f"{out}.log")
    return Counter(log.read_text().splitlines() if log.exists() else ())


def test_a_new_store_is_opened_by_many_at_the_same_moment(tmp_path):
    for number in range(150):  # without waiting, one or two of them are refused
        start = threading.Barrier(8)

        def open_it(start=start, path=tmp_path / f"{number}.sqlite"):
            start.wait()
            Store(path).close()

        with ThreadPoolExecutor(8) as pool:
            opened = [pool.submit(open_it) for _ in range(8)]
        assert [each.exception() for each in opened] == [None] * 8


def test_a_second_process_is_told_to_wait_and_a_shard_is_not(processes, work, tmp_path):
    slow = processes(*work, str(tmp_path / "run"), 0.02)
    slow.start()
    while not scored_pairs(tmp_path / "run") and slow.is_alive():
        time.sleep(0.01)
    rows = CellRows(work[0])
    with pytest.raises(
        DatasetError, match=r"another process is working into .*run .*--shard.*; wait for it, or choose another"
    ):
        score_rows(rows, [Probe()], tmp_path / "run")
    assert score_rows(rows, [Probe()], tmp_path / "run", shard=Shard(1, 2)).scored_now > 0
    slow.join(120)
    assert slow.exitcode == 0 and set(scored_pairs(tmp_path / "run").values()) == {1}


def test_killed_at_30_random_moments_nothing_is_lost_and_nothing_twice(processes, work, tmp_path):
    run_to_the_end(processes(*work, str(tmp_path / "calm"), 0.0))
    rng, stormy = random.Random(SEED + 1), tmp_path / "stormy"
    killed, halfway = 0, 0
    for moment in range(30):
        process = processes(*work, str(stormy), 0.04)
        before = scored_pairs(stormy).total()
        process.start()
        # Most while scoring, some while starting; on a busy machine a start takes as long as it takes.
        while moment % 5 and scored_pairs(stormy).total() == before and process.is_alive():
            time.sleep(0.01)
        process.join(rng.uniform(0, 0.25))
        killed += process.is_alive()
        process.kill()
        process.join()
        halfway += 0 < len(scored_pairs(stormy)) < 600
    assert killed >= 25 and halfway >= 15, "the kills are to hit work"
    run_to_the_end(processes(*work, str(stormy), 0.0))
    assert digest(stormy) == digest(tmp_path / "calm")
    store = Store(stormy / "results.sqlite")
    assert store._db.execute("SELECT COUNT(*), COUNT(DISTINCT key), COUNT(made) FROM scores").fetchone() == (600, 600, 600)
    store.close()
    # A kill costs the block that was being scored, 16 pairs, and nothing that was finished before.
    assert scored_pairs(stormy).total() <= 600 + 16 * killed


def test_what_killed_processes_left_half_written_is_removed(tmp_path):
    left = tmp_path / ".rows.parquet.0.part"
    left.write_text("half")
    with whole_file(tmp_path / "now.txt") as temporary, locked(tmp_path, "score"):
        assert temporary.exists() and not left.exists(), "somebody is writing into the first one"
        temporary.write_text("whole")
        with pytest.raises(DatasetError, match="another process is working into"), locked(tmp_path, "score"):
            pass
    with locked(tmp_path, "score"):
        assert (tmp_path / "now.txt").read_text() == "whole"


@pytest.mark.parametrize("packed", [False, True])
def test_a_png_with_megabytes_of_text_is_the_picture_that_it_holds(packed):
    """As programs write whole workflows beside the pixels. Before and after them."""
    notes = PngImagePlugin.PngInfo()
    notes.add_text("workflow", "x" * 3_000_000, zip=packed)
    notes.add_itxt("prompt", "y" * 3_000_000, zip=packed)
    notes.add_text("after", "z" * 3_000_000, zip=packed)
    buffer, image = io.BytesIO(), Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3))
    image.save(buffer, "PNG", pnginfo=notes)
    assert open_image(buffer.getvalue()).tobytes() == image.tobytes()
