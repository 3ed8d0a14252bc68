"""A server of batches on loopback that counts what it answered, and what it was asked for. Run as a script: prints its port.

A batch ends at the third look at it. What befalls a question depends on its number, read from its text.
"""

from __future__ import annotations

import email
import email.policy
import json
import re
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PASSING, REFUSED = 7, 11  # of every 50 questions, the ones that fail once and for good


class Batches(BaseHTTPRequestHandler):
    files: dict[str, bytes] = {}
    batches: dict[str, dict] = {}
    looks: Counter[str] = Counter()
    billed: Counter[int] = Counter()
    open_looks = 3
    key = "sk-of-the-test-1234"
    lock = threading.Lock()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"] or 0))
        with self.lock:
            if self.path == "/v1/files":
                return self.say({"id": self.stored(self.part(body))})
            if self.path == "/v1/batches":
                asked = json.loads(body)
                name = f"batch_{len(self.batches)}"
                self.batches[name] = {"id": name, "status": "validating", **asked}
                return self.say(self.batches[name])
        return self.say({"error": {"message": "no such path"}}, 404)

    def do_GET(self):
        with self.lock:
            if self.path == "/v1/billed":
                return self.say({"billed": self.billed, "batches": len(self.batches)})
            if self.headers["authorization"] != f"Bearer {self.key}":
                return self.say({"error": {"message": f"no such key: {self.headers['authorization']}"}}, 401)
            if found := re.fullmatch(r"/v1/files/(\w+)/content", self.path):
                return self.say(self.files[found[1]])
            if found := re.fullmatch(r"/v1/batches/(\w+)", self.path):
                return self.say(self.looked_at(found[1]))
            return self.say(self.page())

    def page(self) -> dict:
        """Two batches a page, the newest first."""
        names = list(self.batches)[::-1]
        after = re.search(r"after=(\w+)", self.path)
        start = names.index(after[1]) + 1 if after else 0
        return {"data": [self.batches[name] for name in names[start : start + 2]], "has_more": start + 2 < len(names)}

    def looked_at(self, name: str) -> dict:
        batch = self.batches[name]
        self.looks[name] += 1
        if batch["status"] == "validating" and self.looks[name] >= self.open_looks:
            self.work(batch)
        return batch

    def work(self, batch: dict) -> None:
        good, bad = [], []
        for line in self.files[batch["input_file_id"]].splitlines():
            asked = json.loads(line)
            number = int(re.findall(r"No\. (\d+)", json.dumps(asked["body"]))[-1])
            self.billed[number] += 1
            again = self.billed[number] > 1
            status = 500 if number % 50 == PASSING and not again else 400 if number % 50 == REFUSED else 200
            said = json.dumps({"score": 1 + number % 5})
            message = {"role": "assistant", "content": said}
            body = {
                "id": "x", "created": 1, "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                "usage": {"prompt_tokens": 50, "completion_tokens": 10},
            } if status == 200 else {"error": {"message": f"no luck with {self.key}"}}  # fmt: skip
            result = {"custom_id": asked["custom_id"], "response": {"status_code": status, "body": body}, "error": None}
            (good if status == 200 else bad).append(result)
        good.reverse()  # results come in any order
        lines = ("\n".join(map(json.dumps, some)).encode() for some in (good, bad))
        batch["output_file_id"], batch["error_file_id"] = (self.stored(text) if text else None for text in lines)
        batch["status"] = "completed"

    def part(self, body: bytes) -> bytes:
        head = f"content-type: {self.headers['content-type']}\r\n\r\n".encode()
        parts = email.message_from_bytes(head + body, policy=email.policy.HTTP).iter_parts()
        return next(p.get_payload(decode=True) for p in parts if p.get_filename())

    def stored(self, data: bytes) -> str:
        name = f"file_{len(self.files)}"
        self.files[name] = data
        return name

    def say(self, said: dict | bytes, status: int = 200) -> None:
        data = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Batches)
    print(server.server_address[1], flush=True)
    server.serve_forever()
