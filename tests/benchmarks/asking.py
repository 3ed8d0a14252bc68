"""The cost of asking: 50,000 items taken up and audited, and a chat server with 64 calls in flight.

Usage: python -m tests.benchmarks.asking. The server waits 0.25 s before each answer and runs in a process of its own.
"""

from __future__ import annotations

import asyncio
import csv
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from protoscore.asking.protocol import load_protocol
from protoscore.judging.audit import audit
from protoscore.judging.stage import judge_items
from protoscore.sources.datasets import DatasetRows
from protoscore.sources.rows import Row
from protoscore.vlms.chat import create as create_chat
from protoscore.vlms.scripted import create as create_scripted

ITEMS, QUESTIONS, IN_FLIGHT, LATENCY = 50_000, 4_000, 64, 0.25
ANSWER = json.dumps({"score": 3})
COMPLETION = {
    "id": "x", "created": 1, "model": "m", "usage": {"prompt_tokens": 50, "completion_tokens": 10},
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}],
}  # fmt: skip


def timed(name: str, work: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock and of this process's CPU, printed with the memory so far."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name:34} {wall:7.2f} s, {cpu:7.2f} s of CPU, {peak:6.0f} MiB at most so far", flush=True)
    return wall, cpu


def many_items(folder: Path) -> None:
    with (folder / "items.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "text"])
        rows.writerows([f"i{n:05}", f"A bird beside exactly {n} stones."] for n in range(ITEMS))
    (folder / "judge.jsonl").write_text(json.dumps({"reply": ANSWER}) + "\n")
    protocol, out = load_protocol("fairjudge/alignment"), folder / "run"

    def judged() -> None:
        judge_items(protocol, DatasetRows(str(folder / "items.csv")), create_scripted(str(folder / "judge.jsonl")), out)

    timed(f"{ITEMS:,} items asked", judged)
    timed(f"{ITEMS:,} items taken up again", judged)
    timed(f"{ITEMS:,} items audited", lambda: audit(out))


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    body = json.dumps(COMPLETION).encode()
    said = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            await reader.readexactly(int(length[1]) if length else 0)
            await asyncio.sleep(LATENCY)
            writer.write(said)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def serve() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=2**24)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def in_flight(folder: Path) -> None:
    code = "import asyncio; from tests.benchmarks.asking import serve; asyncio.run(serve())"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        items = [Row(f"{n:05}", (), {"text": f"A bird beside exactly {n} stones."}) for n in range(QUESTIONS)]
        judge = create_chat(f"m@{url}", concurrency=IN_FLIGHT)
        protocol = load_protocol("fairjudge/alignment")
        wall, cpu = timed(f"{QUESTIONS:,} chat questions", lambda: judge_items(protocol, items, judge, folder / "chat"))
    finally:
        process.kill()
        process.wait()
    ideal = QUESTIONS / IN_FLIGHT * LATENCY
    print(f"{ideal / wall:.2f} of what the latency allows; {1000 * cpu / QUESTIONS:.2f} ms of CPU per question")


def main() -> None:
    os.environ.pop("PROTOSCORE_API_KEY", None)
    with tempfile.TemporaryDirectory() as folder:
        many_items(Path(folder))
        in_flight(Path(folder))


if __name__ == "__main__":
    main()
