"""What leaves and enters by the wire: pictures as data URIs, calls that keep to the named host, and errors without keys."""

from __future__ import annotations

import asyncio
import base64
import email.utils
import io
import json
import re
import time
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
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


class Response(NamedTuple):
    """What a server sent back, unpacked."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        """Raises: ValueError, TypeError: it is not a JSON object."""
        found = json.loads(self.body)
        if not isinstance(found, dict):
            raise TypeError("not a JSON object")
        return found


class Wire:
    """Calls to one server, which the user named: no redirect is followed, no endless reply read, packed or not. Proxies and
    certificates are those of the environment (``HTTPS_PROXY``, ``NO_PROXY``, ``SSL_CERT_FILE``).

    Args:
        timeout: seconds for a whole call.
        longest: bytes of a reply that are read, after unpacking.
    """

    def __init__(self, url: str, key: str, timeout: float, longest: int = LONGEST_BODY):
        self._url, self._timeout, self._longest = url.rstrip("/"), timeout, longest
        self._headers = {"accept-encoding": "identity"} | ({"authorization": f"Bearer {key}"} if key else {})
        parts, proxies = urlsplit(url), getproxies()
        self._proxy = None if proxy_bypass(parts.hostname or "") else proxies.get(parts.scheme)
        self._session: aiohttp.ClientSession | None = None

    async def call(self, method: str, path: str, **sent: Any) -> Response:
        """Raises: TooLong, Redirected, Packed, TimeoutError, aiohttp.ClientError."""
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, ssl=httpx2.create_ssl_context())
            no_limit = aiohttp.ClientTimeout(total=None)
            self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False, timeout=no_limit)
        how: dict[str, Any] = {"headers": self._headers, "allow_redirects": False, "proxy": self._proxy, **sent}
        async with asyncio.timeout(self._timeout), self._session.request(method, f"{self._url}/{path}", **how) as response:
            if response.status in (301, 302, 303, 307, 308):
                raise Redirected
            return Response(response.status, response.headers, await self._read(response))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        packing = response.headers.get("content-encoding", "identity").strip().lower()
        if packing not in ("identity", "", "gzip", "deflate"):
            raise Packed(packing)
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32) if packing in ("gzip", "deflate") else None  # 32: by its header
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += unpacker.decompress(chunk, self._longest + 1 - len(body)) if unpacker else chunk
            if len(body) > self._longest:
                raise TooLong(bytes(body[: self._longest]))
        return bytes(body)


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
    if isinstance(error, aiohttp.ClientConnectorError):
        return _unconnected(error, key, address)
    if isinstance(error, TimeoutError):
        return Reply(failure="transient", reason=f"no reply in time from {address}")
    if isinstance(error, aiohttp.ClientError):
        return Reply(failure="transient", reason=f"connection to {address} failed ({type(error).__name__})")
    if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError, TypeError, KeyError, AttributeError, zlib.error)):
        return Reply(failure="transient", reason=f"the reply is not what a chat server sends ({type(error).__name__})")
    return Reply(failure="permanent", reason=scrubbed(f"{type(error).__name__}: {error}", key))


def _unconnected(error: aiohttp.ClientConnectorError, key: str, address: str) -> Reply:
    """Nothing was sent. A certificate stays as it is, however often it is shown."""
    said = scrubbed(str(error), key) or "no connection"
    if "certificate" in said.lower():
        hint = "name its authority in SSL_CERT_FILE, or take another address"
        return Reply(failure="fatal", reason=f"the certificate of {address} cannot be trusted ({said}); {hint}", sent=False)
    return Reply(
        failure="transient", reason=f"no server answers at {address} ({said}); start it, or mend the address", sent=False
    )


def of_status(answered: Response, key: str) -> Reply:
    """The reply that an error status amounts to."""
    status, text = answered.status, answered.body[:8000].decode("utf-8", "replace")[:2000]
    said = scrubbed(f"HTTP {status}: {_message(text)}", key)
    if _NO_QUOTA.search(text):
        return Reply(failure="fatal", reason=f"the account has nothing left to pay with ({said})")
    if is_passing(status):
        return Reply(failure="transient", reason=f"HTTP {status}", retry_after=retry_after(answered.headers))
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


def retry_after(headers: Mapping[str, str]) -> float | None:
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
