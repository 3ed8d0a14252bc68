"""A chat server on loopback that misbehaves by plan, and counts what it answered. Run as a script: prints its port.

What befalls a question depends on its number and on how often it was asked, so that a test knows it beforehand. An answer
is counted as billed when its first byte is written: from then on the work is done, whoever reads it.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter

ANSWERED = {"ok", "slow", "text_plain", "huge", "malformed", "refusal", "filtered", "cut_off", "echo_key"}
PASSING = ["429_wait", "429", "500", "503", "cut", "html", "empty_choices", "empty_text", "failed", "detail"]
FINAL = ["slow", "text_plain", "huge", "malformed", "refusal", "filtered", "cut_off", "echo_key"]


def plan(number: int, attempt: int) -> str:
    """What happens to question ``number`` when it is asked for the ``attempt``-th time (from 1)."""
    draw = random.Random(number)
    if number % 500 == 499:
        return "500"  # always
    if number % 500 == 498:
        return "400"
    troubles = [draw.choice(PASSING) for _ in range(draw.choice([0] * 12 + [1, 1, 2]))]
    if attempt <= len(troubles):
        return troubles[attempt - 1]
    return draw.choice(FINAL) if draw.random() < 0.05 else "ok"


class Server:
    def __init__(self) -> None:
        self.asked: Counter[int] = Counter()
        self.billed: Counter[int] = Counter()
        self.now = self.most = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
                body = await reader.readexactly(int(length[1])) if length else b""
                if head.startswith(b"GET"):
                    self.send(writer, 200, json.dumps({"billed": self.billed, "asked": self.asked, "most": self.most}))
                elif not await self.answer(head, body, writer):
                    break
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def answer(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> bool:
        """Answer one question; False when the connection is to be cut."""
        number = int(re.findall(rb"No\. (\d+)", body)[-1])
        self.asked[number] += 1
        self.now += 1
        self.most = max(self.most, self.now)
        kind = plan(number, self.asked[number])
        try:
            await asyncio.sleep(0.05 if kind == "slow" else 0.002)
            if kind in ANSWERED:
                self.billed[number] += 1
        finally:
            self.now -= 1
        if kind == "cut":
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 4000\r\n\r\n" + b'{"choices": ['
            )
            return False
        key = re.search(rb"authorization: Bearer (\S+)", head, re.IGNORECASE)
        self.send(writer, *_response(kind, number, key[1].decode() if key else ""))
        return True

    def send(self, writer: asyncio.StreamWriter, status: int, text: str, *headers: str) -> None:
        body = text.encode()
        kind = "" if any(h.startswith("content-type") for h in headers) else "content-type: application/json\r\n"
        lines = "".join(f"{header}\r\n" for header in headers)
        writer.write(f"HTTP/1.1 {status} X\r\n{kind}{lines}content-length: {len(body)}\r\n\r\n".encode() + body)


def _response(kind: str, number: int, key: str) -> tuple:
    if kind == "429_wait":
        return 429, '{"error": {"message": "slow down"}}', "retry-after: 0.02"
    if kind in ("429", "500", "503"):
        return int(kind), f'{{"error": {{"message": "no luck, {key}"}}}}'
    if kind == "400":
        return 400, json.dumps({"error": {"message": f"picture not supported; your key is {key}"}})
    if kind == "html":
        return 200, "<html>bad gateway</html>", "content-type: text/html"
    if kind == "empty_choices":
        return 200, json.dumps({"id": "x", "model": "m", "created": 1, "choices": []})
    if kind == "detail":
        return 200, '{"detail": "overloaded"}'
    text = {
        "empty_text": "", "failed": '{"score": 1', "huge": "x" * 10_000_000, "malformed": "{'score': 4",
        "refusal": "I'm sorry, I can't help with that.",
        "echo_key": f"the key is {key}",
    }.get(kind, json.dumps({"score": 1 + number % 5}))  # fmt: skip
    finish = {"filtered": "content_filter", "cut_off": "length", "failed": "error"}.get(kind, "stop")
    return 200, json.dumps(_completion(text, finish)), *(["content-type: text/plain"] if kind == "text_plain" else [])


def _completion(text: str, finish: str) -> dict:
    return {
        "id": "x", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60},
    }  # fmt: skip


async def main() -> None:
    state = Server()
    server = await asyncio.start_server(state.serve, "127.0.0.1", 0, limit=2**24)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
