"""How much faster the local judge is in batches than one by one, on a tiny model; warm, alternated, best of a few rounds.

Usage: python -m tests.benchmarks.judging [MODEL]. Without a model, a tiny one with random weights is made.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import torch

from protoscore.judges import Request
from protoscore.judges.local import create
from protoscore.judging.protocol import load_protocol
from tests.judging.support import TEXTS, picture, save_tiny_judge

REQUESTS, BATCH, ROUNDS, TOKENS = 32, 32, 2, 48


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        judge = create(sys.argv[1] if len(sys.argv) > 1 else str(save_tiny_judge(Path(folder))), max_tokens=TOKENS)
    protocol = load_protocol("fairjudge/alignment")
    some = [
        Request(protocol.render({"text": TEXTS[n % 4]}, "brief"), (picture(n, 96, 96),), protocol.schema())
        for n in range(REQUESTS)
    ]
    times: dict[int, list[float]] = {1: [], BATCH: []}
    answers: dict[int, list[str]] = {}
    asyncio.run(judge.reply(some[:2]))
    for _ in range(ROUNDS):
        for size, seen in times.items():
            start = time.process_time()
            batches = [asyncio.run(judge.reply(some[at : at + size])) for at in range(0, REQUESTS, size)]
            seen.append(time.process_time() - start)
            answers[size] = [reply.text for batch in batches for reply in batch]
    alone, together = min(times[1]), min(times[BATCH])
    equal = sum(a == b for a, b in zip(answers[1], answers[BATCH], strict=True))
    print(f"one by one   {1000 * alone / REQUESTS:7.1f} ms of CPU time a request (one thread)")
    print(
        f"batch of {BATCH:2}  {1000 * together / REQUESTS:7.1f} ms, {alone / together:.1f} x as fast; "
        f"{equal} of {REQUESTS} answers equal"
    )


if __name__ == "__main__":
    main()
