"""A provider's batches: the questions of a chat model at about half the price, answered within a day.

``batch:MODEL@URL`` speaks OpenAI's ``/v1/batches`` (upload a file, start a batch, wait, read its results); the URL ends in
``/v1``. Every batch carries a digest of its questions. A run that was stopped, even killed, finds by it the batches that it
had sent, and waits for those: nothing is paid twice. The key is read as in ``chat``.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from protoscore.errors import ConfigError
from protoscore.vlms import Reply, Request
from protoscore.vlms.chat import Chat

if TYPE_CHECKING:
    from protoscore.vlms._wire import Response

LONGEST_FILE = 200_000_000  # bytes of one batch, the smallest limit that is documented
LONGEST_RESULTS = 256_000_000  # bytes of its results that are read
PAGES = 100  # of the list of batches that are looked through
ENDED = {"completed", "failed", "expired", "cancelled"}
PASSING_IN_A_ROW = 20  # questions about a batch that may fail while it is waited for


class Failed(Exception):
    """A call that came to nothing, as the reply that it is to every question of the batch."""

    def __init__(self, reply: Reply):
        super().__init__(reply.reason)
        self.reply = reply


class Batch(Chat):
    """``batch_size`` questions a batch, ``concurrency`` batches at once.

    Args:
        source: ``MODEL@URL``.
        batch_size: questions in a batch. They and their pictures are held in memory until it ends.
        concurrency: batches that are open at once.
        window: within which the provider promises the results.
        poll: seconds between two looks at a batch.
        longest_bytes: of a picture as a data URI.
        longest_side: px; larger pictures are scaled down.
        key_env, revision, temperature, max_tokens, response_format, price_in, price_out: as in ``chat``.
        timeout: seconds for one request, of which a batch takes several.

    Raises:
        ConfigError: no model or server is named, the key is missing, or a batch would be larger than providers take.
    """

    billed = False  # a batch that was sent is found again

    def __init__(
        self, source: str, batch_size: int = 200, concurrency: int = 8, window: str = "24h", poll: float = 30.0,
        longest_bytes: int = 400_000, longest_side: int = 1024, key_env: str = "", revision: str = "as served",
        temperature: float = 0.0, max_tokens: int = 512, timeout: float = 120.0, response_format: str = "auto",
        price_in: float | None = None, price_out: float | None = None,
    ):  # fmt: skip
        super().__init__(
            source, "auto", key_env, revision, temperature, max_tokens, timeout, concurrency, response_format, longest_side,
            longest_bytes, price_in, price_out,
        )  # fmt: skip
        if not self._url or not poll > 0:
            raise ConfigError("batch needs a server, batch:MODEL@https://HOST/v1, and poll above 0 seconds")
        if not 0 < batch_size * longest_bytes <= LONGEST_FILE:
            raise ConfigError(
                f"batch_size times longest_bytes must be 1 to {LONGEST_FILE:,} bytes, the largest file that a batch may be"
            )
        self.name, self.batch_size, self._window, self._poll = f"batch:{self._model}", batch_size, window, poll

    async def reply(self, requests: Sequence[Request]) -> list[Reply]:
        from protoscore.vlms._wire import failure_of

        start, left_out = time.perf_counter(), frozenset(self._left_out)
        try:
            replies = await self._answers(requests, left_out)
        except Failed as error:
            replies = [error.reply] * len(requests)
        except Exception as error:  # whatever went wrong becomes a state, without the key
            replies = [failure_of(error, self._key, self._address)] * len(requests)
        self._answered = self._answered or any(reply.sent for reply in replies)
        if not self._answered:
            replies = [reply._replace(failure="fatal") for reply in replies]
        spent = (time.perf_counter() - start) / len(requests)
        return [self._without_what_is_refused(reply, left_out)._replace(seconds=spent) for reply in replies]

    async def _answers(self, requests: Sequence[Request], left_out: frozenset[str]) -> list[Reply]:
        lines = []
        for number, request in enumerate(requests):
            asked = {"custom_id": str(number), "method": "POST", "url": "/v1/chat/completions"}
            lines.append(json.dumps(asked | {"body": await self._body(request, left_out)}, sort_keys=True) + "\n")
        questions = "".join(lines).encode()
        digest = hashlib.sha256(questions).hexdigest()
        batch = await self._sent_before(digest) or await self._send(questions, digest, len(requests))
        batch = await self._ended(batch)
        found: dict[str, Reply] = {}
        for name in ("error_file_id", "output_file_id"):
            if batch.get(name):
                found |= self._results(await self._call_server("GET", f"files/{batch[name]}/content"))
        missing = Reply(failure="transient", reason=f"batch {batch['id']} ended ({batch['status']}) without a reply to it")
        return [found.get(str(number), missing) for number in range(len(requests))]

    async def _sent_before(self, digest: str) -> dict[str, Any] | None:
        """The batch of these questions that is open, or ended with results."""
        after: dict[str, str] = {}
        for _ in range(PAGES):
            page = (await self._call_server("GET", "batches", params={"limit": "100"} | after)).json()
            some = [batch for batch in page.get("data") or [] if isinstance(batch, dict)]
            for batch in some:
                usable = batch.get("output_file_id") or batch.get("status") not in ENDED
                if usable and (batch.get("metadata") or {}).get("protoscore") == digest:
                    return batch
            if not page.get("has_more") or not some:
                return None
            after = {"after": str(some[-1]["id"])}
        return None

    async def _send(self, questions: bytes, digest: str, count: int) -> dict[str, Any]:
        from aiohttp import FormData

        form = FormData({"purpose": "batch"})
        form.add_field("file", questions, filename="questions.jsonl", content_type="application/jsonl")
        uploaded = (await self._call_server("POST", "files", data=form)).json()
        body = {
            "input_file_id": uploaded["id"], "endpoint": "/v1/chat/completions", "completion_window": self._window,
            "metadata": {"protoscore": digest},
        }  # fmt: skip
        batch = (await self._call_server("POST", "batches", json=body)).json()
        if (batch.get("metadata") or {}).get("protoscore") != digest:
            await self._call_server("POST", f"batches/{batch['id']}/cancel")
            reason = "the server keeps no metadata, so a batch could not be found again; ask it by chat:MODEL@URL"
            raise Failed(Reply(failure="fatal", reason=reason))
        print(f"batch {batch['id']} of {count} questions sent; stopped, the same command waits for it", file=sys.stderr)
        return batch

    async def _ended(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Wait until a batch has ended. A question about it may fail and is put again."""
        in_a_row = 0
        while batch.get("status") not in ENDED:
            await asyncio.sleep(self._poll)
            try:
                batch, in_a_row = (await self._call_server("GET", f"batches/{batch['id']}")).json(), 0
            except Failed as error:
                in_a_row += 1
                if error.reply.failure != "transient" or in_a_row == PASSING_IN_A_ROW:
                    raise
        if batch["status"] == "failed":
            raise Failed(self._refused(batch))
        return batch

    def _refused(self, batch: dict[str, Any]) -> Reply:
        from protoscore.vlms._wire import scrubbed

        errors = (batch.get("errors") or {}).get("data") or [{}]
        return Reply(
            failure="permanent", reason=scrubbed(f"the batch failed: {errors[0].get('message', errors[0])}", self._key)
        )

    async def _call_server(self, method: str, path: str, **sent: Any) -> Response:
        from protoscore.vlms._wire import TooLong, Wire, failure_of, of_status

        if self._wire is None:
            self._wire = Wire(self._url, self._key, self._timeout, LONGEST_RESULTS)
        try:
            answered = await self._wire.call(method, path, **sent)
        except TooLong:
            reason = f"the results of a batch are larger than {LONGEST_RESULTS:,} bytes; take a smaller batch_size"
            raise Failed(Reply(failure="permanent", reason=reason)) from None
        except Exception as error:
            raise Failed(failure_of(error, self._key, self._address)) from None
        if answered.status >= 400:
            raise Failed(of_status(answered, self._key))
        return answered

    def _results(self, answered: Response) -> dict[str, Reply]:
        """The replies of a file of results, by question. A line that cannot be read is none."""
        found = {}
        for line in answered.body.split(b"\n"):
            try:
                result = json.loads(line)
                found[str(result["custom_id"])] = self._result(result)
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
        return found

    def _result(self, result: dict[str, Any]) -> Reply:
        from protoscore.vlms._wire import Response, of_status, scrubbed

        response = result.get("response") or {}
        if result.get("error") or not response:
            return Reply(failure="transient", reason=scrubbed(f"the batch says: {result.get('error')}", self._key))
        if response["status_code"] >= 400:
            return of_status(Response(response["status_code"], {}, json.dumps(response.get("body")).encode()), self._key)
        return self._read(response["body"])


def create(source: str | None = None, **options: Any) -> Batch:
    if not source:
        raise ConfigError("batch needs a model and a server: batch:MODEL@https://HOST/v1")
    return Batch(source, **options)
