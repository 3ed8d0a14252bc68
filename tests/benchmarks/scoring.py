"""Speed and memory of the scoring engine: ratios in one run, warm, alternated, medians. Random weights of true shape.

    python -m tests.benchmarks.scoring [NAME ...]     (grid, triplets, rerun, memory; default: all; one thread)

BENCH_TRIPLETS and BENCH_ROUNDS make it shorter on a slow or busy machine; what is printed says how many there were (a
twentieth of the triplets with the shape of ViT-B/32).
"""

from __future__ import annotations

import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}

import numpy as np
from PIL import Image

from protoscore.sources.rows import Row

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
SCALE = 100.0  # of the torchmetrics form


def medians(*actions: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """Median time of each action over alternated rounds, after one to warm up."""
    times: list[list[float]] = [[] for _ in actions]
    for number in range(rounds + 1):
        for action, seen in zip(actions, times, strict=True):
            start = time.perf_counter()
            action()
            if number:
                seen.append(time.perf_counter() - start)
    return [statistics.median(seen) for seen in times]


def write_model(folder: Path, small: bool = False) -> Path:
    """A CLIP with the shape of ViT-B/32 (151 M parameters) and random weights; ``small``: a sixteenth of the width."""
    import torch
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel

    from tests.scorers.conftest import clip_tokenizer

    torch.manual_seed(0)
    tokenizer = clip_tokenizer()
    ids = dict(bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
    narrow = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2) if small else {}
    CLIPModel(CLIPConfig(text_config=ids | narrow, vision_config=narrow)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    CLIPImageProcessor().save_pretrained(folder)
    return folder


def picture(*seed: int, size: int = 256) -> bytes:
    """A smooth random picture, so that its PNG is of an ordinary size."""
    coarse = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(coarse).resize((size, size), Image.Resampling.BICUBIC).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


class Made:
    """Rows made on the fly: (text, picture) by number."""

    columns, source, parent, scenes = (), "made", None, False

    def __init__(self, count: int, row: Callable[[int], tuple[str, bytes]], stamp: str | None = None):
        self._count, self._row, self._stamp = count, row, stamp
        self.parameters: dict = {}

    def __len__(self) -> int:
        return self._count

    def rows(self, start: int = 0, stop: int | None = None):
        for number in range(start, self._count if stop is None else min(stop, self._count)):
            text, data = self._row(number)
            yield Row(str(number), (data,), {"text": text})

    def fingerprint(self) -> str | None:
        return self._stamp


def scores_of(run: Path) -> np.ndarray:
    import pyarrow.parquet as pq

    return pq.read_table(run / "scores.parquet")["score"].to_numpy()


def engine_run(rows: Made, scorer, work: Path, kept: list) -> Callable[[], None]:
    """The whole stage: index, decoding, scoring, store, table; a new folder each time."""
    from protoscore.scoring.stage import score_rows

    def action() -> None:
        out = Path(tempfile.mkdtemp(dir=work))
        score_rows(rows, [scorer], out)
        kept[:] = [scores_of(out)]

    return action


def loop_run(rows: Made, scorer, kept: list) -> Callable[[], None]:
    """What most people write: open the picture, score the pair, go on."""
    return lambda: kept.__setitem__(
        slice(None),
        [np.array([scorer.score([Image.open(io.BytesIO(r.image)).convert("RGB")], [r.text])[0].value for r in rows.rows()])],
    )


def torchmetrics_run(rows: Made, folder: Path, batch: int, kept: list) -> Callable[[], None]:
    """torchmetrics' CLIPScore of each pair, in batches of the same size, with the same weights and pictures."""
    import torch
    from torchmetrics.functional.multimodal.clip_score import _clip_score_update
    from transformers import CLIPImageProcessorPil, CLIPModel, CLIPProcessor, CLIPTokenizer

    class Plain(CLIPModel):
        """Features as plain tensors, which torchmetrics expects and transformers 5 no longer gives."""

        def get_image_features(self, *inputs, **options):
            return super().get_image_features(*inputs, **options).pooler_output

        def get_text_features(self, *inputs, **options):
            return super().get_text_features(*inputs, **options).pooler_output

    model = Plain.from_pretrained(folder).eval()
    processor = CLIPProcessor(CLIPImageProcessorPil.from_pretrained(folder), CLIPTokenizer.from_pretrained(folder))

    @torch.inference_mode()
    def action() -> None:
        found, listed = [], list(rows.rows())
        for start in range(0, len(listed), batch):
            part = listed[start : start + batch]
            images = [torch.from_numpy(np.array(Image.open(io.BytesIO(r.image)).convert("RGB"))).permute(2, 0, 1) for r in part]
            found.append(_clip_score_update(images, [r.text for r in part], model, processor)[0].numpy())
        kept[:] = [np.concatenate(found)]

    return action


def grid(work: Path) -> None:
    """12 pictures x 4 texts on a CLIP of the shape of ViT-B/32, one thread."""
    from protoscore.scorers.clip_score import create

    pictures = [picture(i) for i in range(12)]
    texts = [f"a picture of {n} birds near a pond" for n in ("two", "three", "four", "five")]
    rows = Made(48, lambda n: (texts[n % 4], pictures[n // 4]))
    scorer = create(str(write_model(work / "b32")), variant="torchmetrics")
    ours, loops = [], []
    fast, slow = medians(engine_run(rows, scorer, work, ours), loop_run(rows, scorer, loops))
    apart = np.abs(ours[0] - loops[0]).max() / SCALE
    print(f"grid 12 x 4, CLIP B/32     {slow / fast:8.2f} x a loop over pairs ({fast:.2f} s, {slow:.2f} s), {apart:.0e} apart")


def triplets(work: Path) -> None:
    """500 triplets of four cells: 2,000 pictures of 256 px, 500 texts; the loop and torchmetrics on the same weights.

    With a small CLIP, where time goes into all that is around the model, and with the shape of ViT-B/32, where it goes into it.
    """
    count = int(os.environ.get("BENCH_TRIPLETS", "500"))
    _triplets(work, "a small CLIP", write_model(work / "small", small=True), count)
    _triplets(work, "CLIP B/32", write_model(work / "b32"), max(1, count // 20))


def _triplets(work: Path, shape: str, folder: Path, count: int) -> None:
    from protoscore.scorers.clip_score import create

    pictures = [picture(i) for i in range(4 * count)]
    rows = Made(4 * count, lambda n: (f"a picture of thing number {n // 4} near a pond", pictures[n]))
    scorer = create(str(folder), variant="torchmetrics")
    ours, loops, theirs = [], [], []
    actions = [engine_run(rows, scorer, work, ours), loop_run(rows, scorer, loops)]
    try:
        actions.append(torchmetrics_run(rows, folder, scorer.batch_size, theirs))
    except ImportError as error:
        print(f"triplets: without torchmetrics ({error})")
    fast, slow, *other = medians(*actions)
    print(f"{count} triplets x 4 cells, {shape:12} {slow / fast:6.2f} x a loop over pairs ({fast:.2f} s, {slow:.2f} s)")
    if other:
        apart = np.abs(ours[0] - theirs[0]).max() / SCALE
        print(f"{'':39} {other[0] / fast:6.2f} x torchmetrics' CLIPScore ({other[0]:.2f} s), {apart:.0e} apart")


def rerun(work: Path) -> None:
    """``protoscore score`` again over 45,400 finished pairs: the whole command, its start included."""
    from tests.controls import write_controls

    data = write_controls(work / "data", 11_350, group=200)
    options = ["score", str(data), "-s", "constant", "-s", "random", "--out", str(work / "again")]
    command = [sys.executable, "-c", "from protoscore.cli import main; main()", *options]
    first = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    first = time.perf_counter() - first
    (again,) = medians(lambda: subprocess.run(command, check=True, capture_output=True), rounds=3)
    print(f"score again, 45,400 pairs  {again:8.2f} s for two scorers (the first time {first:.1f} s)")


MEMORY = """
import json, resource, sys
from pathlib import Path
from protoscore.scoring.stage import score_rows
from protoscore.scorers.clip_score import create
from tests.benchmarks.scoring import Made, picture
count, folder, out = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
rows = Made(count, lambda n: (f"a picture of thing number {n // 4} near a pond", picture(n, size=64)))
score_rows(rows, [create(folder, variant="torchmetrics")], out)
print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000))
"""


def memory(work: Path) -> None:
    """Peak memory of scoring 5,000 and 20,000 rows with a small CLIP."""
    folder = write_model(work / "small", small=True)
    peaks = []
    for count in (5_000, 20_000):
        command = [sys.executable, "-c", MEMORY, str(count), str(folder), str(work / f"memory-{count}")]
        result = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2])
        peaks.append(json.loads(result.stdout.splitlines()[-1]))
    print(f"peak memory                {peaks[1]:8.0f} MB for 20,000 rows, {peaks[0]:.0f} MB for 5,000")


BENCHMARKS = {each.__name__: each for each in (grid, triplets, rerun, memory)}


def main(names: list[str]) -> None:
    import torch

    torch.set_num_threads(1)
    for name in names or BENCHMARKS:
        with tempfile.TemporaryDirectory() as folder:
            BENCHMARKS[name](Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
