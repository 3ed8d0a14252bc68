"""Speeds of the statistics: ratios of CPU time in one run, warm, alternated, best of a few. Prints, asserts nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy import linalg
from sklearn.metrics import cohen_kappa_score, f1_score
from sklearn.preprocessing import normalize

from protoscore.stats.agreement import cohen_kappa
from protoscore.stats.diversity import vendi
from protoscore.stats.groups import group_scores


def best(*actions: Callable[[], object], rounds: int = 9) -> list[float]:
    """Shortest CPU time of each action over a few alternated rounds."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(rounds):
        for action, seen in zip(actions, times, strict=True):
            start = time.process_time()
            action()
            seen.append(time.process_time() - start)
    return [min(seen) for seen in times]


def published_vendi(similarities: np.ndarray) -> float:
    """The published algorithm: eigenvalues of the (n, n) similarities over n."""
    p = linalg.eigvalsh(similarities / len(similarities))
    p = p[p > 0]
    return float(np.exp(-(p * np.log(p)).sum()))


def by_kernel(x: np.ndarray) -> float:
    """Its general form, which calls a similarity function for each pair of items."""
    x = normalize(x, axis=1)
    similarities = np.empty((len(x), len(x)))
    for i in range(len(x)):
        for j in range(i, len(x)):
            similarities[i, j] = similarities[j, i] = x[i] @ x[j]
    return published_vendi(similarities)


def by_product(x: np.ndarray) -> float:
    """Its short cut for embeddings."""
    x = normalize(x, axis=1)
    return published_vendi(x @ x.T)


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 512))
    product, ours = best(lambda: by_product(x), lambda: vendi(x))
    (kernel,) = best(lambda: by_kernel(x), rounds=2)
    error = abs(vendi(x) / by_product(x) - 1)
    show("Vendi score, 1,000 x 512", kernel / ours, f"published, from a kernel ({ours * 1e3:.0f} ms; differs by {error:.0e})")
    show("", product / ours, "published, from embeddings")

    a, b = rng.integers(0, 3, (2, 900))
    rows = rng.integers(0, 900, (20, 900))
    theirs, ours = best(lambda: [cohen_kappa_score(a[r], b[r]) for r in rows], lambda: cohen_kappa(a, b, resamples=2000))
    show("kappa, 2,000 resamples", theirs * 100 / ours, f"scikit-learn in a loop ({ours:.2f} s for 900 rows)")

    groups, truth = rng.integers(0, 4, 1200), rng.integers(0, 6, 1200)
    said = np.where(rng.random(1200) < 0.7, truth, rng.integers(0, 6, 1200))
    one = [np.flatnonzero(groups == g) for g in range(4)]
    theirs, ours = best(
        lambda: [f1_score(truth[r], said[r], average="macro") for r in one], lambda: group_scores(said, truth, groups)
    )
    show("GMF1, 2,000 resamples", theirs * 2000 / ours, f"scikit-learn in a loop ({ours:.2f} s for 1,200 rows)")


def show(what: str, ratio: float, than: str) -> None:
    print(f"{what:26} {ratio:8.1f} times as fast as {than}")


if __name__ == "__main__":
    main()
