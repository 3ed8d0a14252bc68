"""How much faster the local judge is in batches than one by one, on fresh scenes; warm, alternated, best of a few rounds.

Usage: python -m tests.benchmarks.judging [MODEL]. Without a model, the embedded judge.
"""

from __future__ import annotations

import asyncio
import sys
import time

import torch

from protoscore.asking.protocol import load_protocol
from protoscore.vlms import Request
from protoscore.vlms.local import Local, create
from training.embedded.tasks import example

REQUESTS, BATCHES, ROUNDS, TOKENS = 128, (1, 16, 32), 3, 48
PROTOCOLS = "fairjudge/attributes", "fairjudge/alignment", "protobias/image_filter"


def requests(name: str) -> list[Request]:
    protocol = load_protocol(name)
    drawn = [example(name, 10**9 + number, "test") for number in range(REQUESTS)]
    return [Request(protocol.render(scene.fields), tuple(scene.images), protocol.schema()) for scene in drawn]


def measure(judge: Local, some: list[Request]) -> dict[int, tuple[float, list[str]]]:
    """By batch size: seconds of the best round, and the answers."""
    found: dict[int, tuple[float, list[str]]] = {}
    asyncio.run(judge.reply(some[:2]))
    for _ in range(ROUNDS):
        for size in BATCHES:
            start = time.perf_counter()
            batches = [asyncio.run(judge.reply(some[at : at + size])) for at in range(0, REQUESTS, size)]
            spent = time.perf_counter() - start
            answers = [reply.text for batch in batches for reply in batch]
            found[size] = min(found.get(size, (spent, answers)), (spent, answers))
    return found


def main() -> None:
    judge = create(*sys.argv[1:2], max_tokens=TOKENS)
    print(f"{judge.name}, {REQUESTS} scenes a protocol, {torch.get_num_threads()} threads")
    for name in PROTOCOLS:
        found = measure(judge, requests(name))
        alone, answers = found[1]
        for size, (spent, others) in found.items():
            equal = sum(a == b for a, b in zip(answers, others, strict=True))
            print(
                f"{name:24} batch of {size:2} {1000 * spent / REQUESTS:6.1f} ms, {alone / spent:4.1f} x one by one, "
                f"{equal} of {REQUESTS} answers equal"
            )


if __name__ == "__main__":
    main()
