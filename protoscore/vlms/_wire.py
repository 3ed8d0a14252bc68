"""What leaves and enters by the wire: pictures as data URIs, a client that keeps to the named host, and errors without keys."""

from __future__ import annotations

import base64
import email.utils
import io
import json
import re
import time
import zlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import httpx2
from huggingface_hub import AsyncInferenceClient
from huggingface_hub.errors import HfHubHTTPError, InferenceTimeoutError
from PIL import Image

from protoscore.vlms import Reply

LONGEST_BODY = 2_000_000  # bytes of a reply that are read
MOST_TOKENS = 10**9  # a count above this is none
SMALLEST_SIDE = 64  # px; a picture is not scaled below this to make it fit

_TRANSIENT = {408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529}
_FATAL = {401: "refused the key", 402: "wants payment", 403: "refused access", 404: "knows no such model or path"}
_FILTERED = re.compile(r"content[_ ]?(?:filter|policy|management)|moderation|flagged|safety system", re.IGNORECASE)
_NO_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|insufficient (?:balance|credits|funds)", re.IGNORECASE)
_REFUSED = {
    "response_format": re.compile(r"response_?format|json_?schema|guided|structured|grammar", re.IGNORECASE),
    "max_tokens": re.compile(r"max_completion_tokens", re.IGNORECASE),  # wanted in place of the older name
    "temperature": re.compile(r"temperature", re.IGNORECASE),
    "seed": re.compile(r"\bseed\b", re.IGNORECASE),
}
_KEYS = re.compile(r"\b(?:(?:sk|hf|gsk|xai|pk|key)[-_]|AIza)[\w-]{8,}|(?<=Bearer )\S+", re.IGNORECASE)


class TooLong(Exception):
    """A reply with more bytes than are read."""

    def __init__(self, start: bytes):
        super().__init__("the reply is too long")
        self.start = start


class Redirected(Exception):
    """The server points to another address, which the user did not name."""


class Packed(Exception):
    """A reply that is packed in a way that was not asked for and is not read here."""


class Client(AsyncInferenceClient):
    """The Hub's client with three differences: it follows no redirect, it reads no endless reply, packed or not, and a server
    named by ``base_url`` gets ``response_format`` as OpenAI-compatible servers document it (the Hub's client writes TGI's older
    form). Proxies and certificates are those of the environment (``HTTPS_PROXY``, ``NO_PROXY``, ``SSL_CERT_FILE``).
    """

    async def _get_async_client(self) -> httpx2.AsyncClient:
        if self._async_client is None:
            client = bounded_client()
            self._async_client = await self.exit_stack.enter_async_context(client)
        return self._async_client

    async def _inner_post(self, request_parameters: Any, *, stream: bool = False) -> Any:
        body, headers = request_parameters.json, request_parameters.headers
        headers["accept-encoding"] = "identity"
        form = body.get("response_format") or {}
        if "value" in form and str(self.model).startswith(("http://", "https://")):
            body["response_format"] = json_format(form["value"])
        data = await super()._inner_post(request_parameters, stream=stream)
        if isinstance(data, bytes) and not data.lstrip().startswith(b"{"):
            raise TypeError("not a JSON object")
        return data


def bounded_client(longest: int = LONGEST_BODY, **options: Any) -> httpx2.AsyncClient:
    """A client that follows no redirect and reads at most ``longest`` bytes of a reply."""
    return httpx2.AsyncClient(follow_redirects=False, event_hooks={"response": [partial(_bound, longest)]}, **options)


async def _bound(longest: int, response: httpx2.Response) -> None:
    """Before a body is read: refuse what leads elsewhere, and limit what is read, after unpacking."""
    if response.is_redirect:
        raise Redirected
    packing = response.headers.get("content-encoding", "identity").strip().lower()
    if packing not in ("identity", "", "gzip", "deflate"):
        raise Packed(packing)
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _BoundedStream(response.stream, longest, unpack=packing in ("gzip", "deflate"))
    response.headers.pop("content-encoding", None)  # it is unpacked here, where its size is known


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, longest: int, unpack: bool):
        self._inner, self._longest = inner, longest
        self._unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32) if unpack else None  # 32: gzip or zlib, by its header

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, start = 0, b""
        async for chunk in self._inner:
            if self._unpacker is not None:
                chunk = self._unpacker.decompress(chunk, self._longest + 1 - size)
            start = (start + chunk)[:LONGEST_BODY] if len(start) < LONGEST_BODY else start
            size += len(chunk)
            if size > self._longest:
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


def failure_of(error: Exception, key: str, address: str = "the server") -> Reply:
    """The reply that an exception of a call amounts to."""
    if isinstance(error, TooLong):  # it came whole and may be billed: it is kept, and read as too long
        return Reply(scrub_key(error.start.decode("utf-8", "replace"), key), "too_long")
    if isinstance(error, Redirected):
        return Reply(failure="fatal", reason="the server redirects to another address; name that one if you trust it")
    if isinstance(error, Packed):
        return Reply(
            failure="fatal", reason=f"{address} packs its replies ({scrubbed(str(error), key)}), which is not read here"
        )
    if isinstance(error, HfHubHTTPError) and error.response is not None:
        return of_status(error.response, key)
    if isinstance(error, httpx2.ConnectError):
        return _unconnected(error, key, address)
    if isinstance(error, (InferenceTimeoutError, TimeoutError, httpx2.TimeoutException)):
        return Reply(failure="transient", reason=f"no reply in time from {address}")
    if isinstance(error, httpx2.TransportError):
        return Reply(failure="transient", reason=f"connection to {address} failed ({type(error).__name__})")
    if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError, TypeError, KeyError, AttributeError, zlib.error)):
        return Reply(failure="transient", reason=f"the reply is not what a chat server sends ({type(error).__name__})")
    return Reply(failure="permanent", reason=scrubbed(f"{type(error).__name__}: {error}", key))


def _unconnected(error: httpx2.ConnectError, key: str, address: str) -> Reply:
    """Nothing was sent. A certificate stays as it is, however often it is shown."""
    said = scrubbed(str(error), key) or "no connection"
    if "certificate" in said.lower():
        hint = "name its authority in SSL_CERT_FILE, or take another address"
        return Reply(failure="fatal", reason=f"the certificate of {address} cannot be trusted ({said}); {hint}", sent=False)
    return Reply(
        failure="transient", reason=f"no server answers at {address} ({said}); start it, or mend the address", sent=False
    )


def of_status(response: httpx2.Response, key: str) -> Reply:
    status, text = response.status_code, response.text[:2000]
    said = scrubbed(f"HTTP {status}: {_message(text)}", key)
    if _NO_QUOTA.search(text):
        return Reply(failure="fatal", reason=f"the account has nothing left to pay with ({said})")
    if is_passing(status):
        return Reply(failure="transient", reason=f"HTTP {status}", retry_after=retry_after(response.headers))
    if _FILTERED.search(text):
        return Reply("", "content_filter")
    if status in _FATAL:
        return Reply(failure="fatal", reason=f"the server {_FATAL[status]} ({said})")
    return Reply(failure="permanent", reason=said)


def is_passing(code: Any) -> bool:
    """Whether an error code, as a number or as text, is of a kind that passes."""
    try:
        number = int(code)
    except (TypeError, ValueError):
        return str(code).lower() in ("overloaded", "overloaded_error", "server_error", "rate_limit_exceeded", "timeout")
    return number in _TRANSIENT or number >= 500


def refused_parameter(reply: Reply) -> str:
    """Which parameter of a request a server complains about; "" for none that it can do without."""
    if reply.failure != "permanent":
        return ""
    return next((name for name, said in _REFUSED.items() if said.search(reply.reason)), "")


def tokens(value: Any) -> int | None:
    """A count of tokens as servers write it; None when it is none."""
    try:
        number = int(value) if not isinstance(value, bool) else -1
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 <= number <= MOST_TOKENS else None


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
