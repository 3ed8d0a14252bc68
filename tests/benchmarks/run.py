"""make bench: speeds of the embedded path, each warm and the best of a few runs, alternated. Prints, asserts nothing.

Rates depend on the machine and on what else it does; they are for comparing two versions on one machine in one sitting.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from protoscore.benchmarks.protobias.schema import Cell
from protoscore.benchmarks.protobias.taxonomy import load_taxonomy
from protoscore.benchmarks.protobias.validator import check
from protoscore.benchmarks.protobias.writers.template import write
from protoscore.generators import Wanted
from protoscore.generators._drawn import draw
from protoscore.generators.scene import create
from protoscore.scenes.sprites import manifest
from protoscore.schema import derive_seed
from protoscore.stats.pairwise import five_quantities

PAPER = {"animals": 2932, "demography": 3027, "objects": 2266}
ROUNDS = 3


def best(*actions: Callable[[], object]) -> list[float]:
    """Shortest time of each action over a few alternated rounds."""
    times = [[] for _ in actions]
    for _ in range(ROUNDS):
        for action, seen in zip(actions, times, strict=True):
            start = time.perf_counter()
            action()
            seen.append(time.perf_counter() - start)
    return [min(seen) for seen in times]


def python(code: str, *arguments: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True)


def wishes(count: int) -> list[Wanted]:
    counts = {"animals": count // 3, "objects": count // 3, "demography": count // 3}
    triplets = write(load_taxonomy(), counts, seed=8, refuses=manifest().refused.get)
    cells = list(Cell)
    chosen = ((t, cells[i % 4]) for i, t in enumerate(triplets))
    return [Wanted(t.id, t.description(c), derive_seed(t.id, c.value), t.scene(c)) for t, c in chosen]


def draw_all(part: list[Wanted]) -> int:
    return sum(drawn.png is not None for drawn in draw(create(size=256), part))


def draw_on_two_cores(work: list[Wanted], pool: ProcessPoolExecutor) -> None:
    assert sum(pool.map(draw_all, [work[0::2], work[1::2]])) == len(work)


def scores(rows: int, triplets: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(4, rows)), rng.integers(0, triplets, rows)


def main() -> None:
    interpreter, imported, helped = best(
        python("pass"), python("import protoscore"), python("from protoscore.cli import main; main()", "--help")
    )
    print(f"import protoscore          {imported - interpreter:8.3f} s beyond an empty interpreter ({interpreter:.3f} s)")
    print(f"protoscore --help          {helped:8.3f} s")

    taxonomy = load_taxonomy()
    written = list(write(taxonomy, PAPER))
    wrote, checked = best(lambda: list(write(taxonomy, PAPER)), lambda: [check(t, taxonomy) for t in written])
    print(f"8,225 triplets             {wrote + checked:8.2f} s: written {wrote:.2f}, validated {checked:.2f}, one core")

    work = wishes(1200)
    with ProcessPoolExecutor(2) as pool:
        draw_on_two_cores(work, pool)
        one, two = best(lambda: draw_all(work), lambda: draw_on_two_cores(work, pool))
    print(f"scenes at 256 px, as PNG   {len(work) / two:8.0f} a second on two cores, {len(work) / one:.0f} on one")

    columns, clusters = scores(45_400, 8_225)
    (statistics,) = best(lambda: five_quantities(*columns, clusters=clusters, resamples=10_000))
    print(f"five quantities            {statistics:8.2f} s for 45,400 rows, 8,225 clusters, 10,000 resamples, one scorer")


if __name__ == "__main__":
    main()
