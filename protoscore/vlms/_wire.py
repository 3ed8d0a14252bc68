"""What leaves and enters by the wire: pictures as data URIs, a client that keeps to the named host, and errors without keys."""

from __future__ import annotations

import base64
import email.utils
import io
import json
import re
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from huggingface_hub import AsyncInferenceClient
from huggingface_hub.errors import HfHubHTTPError, InferenceTimeoutError
from PIL import Image

from protoscore.vlms import Reply

LONGEST_BODY = 2_000_000  # bytes of a reply that are read
SMALLEST_SIDE = 64  # px; a picture is not scaled below this to make it fit

_TRANSIENT = {408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529}
_FATAL = {401: "refused the key", 402: "wants payment", 403: "refused access", 404: "knows no such model or path"}
_FILTERED = re.compile(r"content[_ ]?(?:filter|policy|management)|moderation|flagged|safety system", re.IGNORECASE)
_SCHEMA_REFUSED = re.compile(r"response_?format|json_?schema|guided|structured|grammar", re.IGNORECASE)
_KEYS = re.compile(r"\b(?:(?:sk|hf|gsk|xai|pk|key)[-_]|AIza)[\w-]{8,}|(?<=Bearer )\S+", re.IGNORECASE)


class TooLong(Exception):
    """A reply with more bytes than are read."""

    def __init__(self, start: bytes):
        super().__init__("the reply is too long")
        self.start = start


class Redirected(Exception):
    """The server points to another address, which the user did not name."""


class Client(AsyncInferenceClient):
    """The Hub's client with three differences: it follows no redirect, it reads no endless reply, and a server named by
    ``base_url`` gets ``response_format`` as OpenAI-compatible servers document it (the Hub's client writes TGI's older form).
    """

    async def _get_async_client(self) -> httpx2.AsyncClient:
        if self._async_client is None:
            client = httpx2.AsyncClient(transport=_Bounded(httpx2.AsyncHTTPTransport(retries=0)), follow_redirects=False)
            self._async_client = await self.exit_stack.enter_async_context(client)
        return self._async_client

    async def _inner_post(self, request_parameters: Any, *, stream: bool = False) -> Any:
        body, headers = request_parameters.json, request_parameters.headers
        headers["accept-encoding"] = "identity"  # the limit on bytes is meant for text and not for what text is packed in
        form = body.get("response_format") or {}
        if "value" in form and str(self.model).startswith(("http://", "https://")):
            body["response_format"] = json_format(form["value"])
        return await super()._inner_post(request_parameters, stream=stream)


class _Bounded(httpx2.AsyncBaseTransport):
    def __init__(self, inner: httpx2.AsyncBaseTransport):
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if response.is_redirect:
            await response.aclose()
            raise Redirected
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _BoundedStream(response.stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream):
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, start = 0, b""
        async for chunk in self._inner:
            start = (start + chunk)[:LONGEST_BODY] if len(start) < LONGEST_BODY else start
            size += len(chunk)
            if size > LONGEST_BODY:
                raise TooLong(start)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def json_format(schema: dict[str, Any]) -> dict[str, Any]:
    """``response_format`` for a flat schema. Strict servers want every property required."""
    strict = dict(schema) | {"required": list(schema["properties"])}
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": strict}}


def data_uri(image: Image.Image, longest_side: int, longest_bytes: int) -> str:
    """A picture as a data URI of at most ``longest_bytes``: PNG when it fits, else JPEG, scaled down as far as it takes.

    The same pixels give the same text.
    """
    side = min(longest_side, max(image.size))
    while True:
        scaled = image.copy()
        scaled.thumbnail((side, side), Image.Resampling.LANCZOS)
        for kind, options in (("PNG", {}), ("JPEG", {"quality": 90})):
            buffer = io.BytesIO()
            scaled.save(buffer, kind, **options)
            if buffer.tell() * 4 / 3 + 40 <= longest_bytes or (kind == "JPEG" and side <= SMALLEST_SIDE):
                return f"data:image/{kind.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"
        side = max(SMALLEST_SIDE, side * 2 // 3)


def scrubbed(text: str, key: str) -> str:
    """One line of at most 300 printable characters, without the key and without anything that looks like one."""
    if len(key) >= 4:
        text = text.replace(key, "***")
    text = _KEYS.sub("***", text)
    line = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(line.split())[:300]


def failure_of(error: Exception, key: str) -> Reply:
    """The reply that an exception of a call amounts to."""
    if isinstance(error, TooLong):  # it came whole and may be billed: it is kept, and read as too long
        return Reply(scrub_key(error.start.decode("utf-8", "replace"), key), "too_long")
    if isinstance(error, Redirected):
        return Reply(failure="fatal", reason="the server redirects to another address; name that one if you trust it")
    if isinstance(error, HfHubHTTPError) and error.response is not None:
        return _of_status(error.response, key)
    if isinstance(error, (InferenceTimeoutError, TimeoutError, httpx2.TimeoutException)):
        return Reply(failure="transient", reason="no reply in time")
    if isinstance(error, httpx2.TransportError):
        return Reply(failure="transient", reason=f"connection failed ({type(error).__name__})")
    if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError, TypeError, KeyError, AttributeError)):
        return Reply(failure="transient", reason=f"the reply is not what a chat server sends ({type(error).__name__})")
    return Reply(failure="permanent", reason=scrubbed(f"{type(error).__name__}: {error}", key))


def _of_status(response: httpx2.Response, key: str) -> Reply:
    status, text = response.status_code, response.text[:2000]
    said = scrubbed(f"HTTP {status}: {_message(text)}", key)
    if status in _TRANSIENT or status >= 500:
        return Reply(failure="transient", reason=f"HTTP {status}", retry_after=retry_after(response.headers))
    if _FILTERED.search(text):
        return Reply("", "content_filter")
    if status in _FATAL:
        return Reply(failure="fatal", reason=f"the server {_FATAL[status]} ({said})")
    return Reply(failure="permanent", reason=said)


def refuses_format(reply: Reply) -> bool:
    """Whether a server complains about ``response_format``."""
    return reply.failure == "permanent" and bool(_SCHEMA_REFUSED.search(reply.reason))


def _message(text: str) -> str:
    try:
        body = json.loads(text)
        error = body.get("error", body.get("detail", body))
        return str(error.get("message", error) if isinstance(error, dict) else error)
    except (ValueError, AttributeError):
        return text


def retry_after(headers: httpx2.Headers) -> float | None:
    """Seconds to wait by ``Retry-After``, which holds seconds or a date; None when there is none that can be read."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def scrub_key(text: str, key: str) -> str:
    return text.replace(key, "***") if len(key) >= 4 else text
