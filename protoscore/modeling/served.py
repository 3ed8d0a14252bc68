"""ProtoScore behind a vLLM pooling server: ``vllm serve MODEL --runner pooling``, and this client. It needs no torch.

A request is ``POST /classify`` with one chat turn (picture as a PNG data URI, then the text) and ``use_activation: false``, so
that the answer holds the head's raw value and not its sigmoid. The wording around the text is the chat template of the served
checkpoint, the same that is applied locally.
"""

from __future__ import annotations

import base64
import io
import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import httpx2

from protoscore.backoff import patiently
from protoscore.batches import refuse_unequal
from protoscore.errors import ConfigError, ImageError, ProtoscoreError
from protoscore.modeling.encode import MAX_TEXT_TOKENS, message, picture, plain
from protoscore.schema import Score, Status, number

if TYPE_CHECKING:
    from PIL.Image import Image

KEY_VARIABLE = "PROTOSCORE_API_KEY"
AGAIN = {408, 429, 500, 502, 503, 504}  # worth another try
TRIES = 4
T = TypeVar("T")
R = TypeVar("R")


class ServerError(ProtoscoreError):
    """The server cannot be reached, refuses, or answers something else than a score."""


class ServedProtoScore:
    """Scores from a server.

    Args:
        base_url: e.g. ``http://localhost:8000``; a trailing ``/v1`` is left off. No other host is ever asked.
        model: the served name; the only one that the server lists if None.
        api_key: sent to that server only; default: the variable ``PROTOSCORE_API_KEY``, and none if that is not set.
        concurrency: requests in flight; the server batches them.
        timeout: seconds that one request may take.

    Raises:
        ServerError: nobody answers there, or several models are served and none was named.
    """

    def __init__(
        self, base_url: str, model: str | None = None, api_key: str | None = None, concurrency: int = 16, timeout: float = 120.0
    ):
        if not base_url.startswith(("http://", "https://")):
            raise ConfigError(f"{base_url!r} is not an address of a server; give one such as http://localhost:8000")
        if "@" in base_url:
            raise ConfigError(f"an address with a password would end up in results; set {KEY_VARIABLE} instead")
        key = api_key or os.environ.get(KEY_VARIABLE)
        self._address = base_url.rstrip("/").removesuffix("/v1").rstrip("/")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx2.Client(base_url=self._address, headers=headers, timeout=timeout, follow_redirects=False)
        self._concurrency = concurrency
        self.model = model or self._only_model()
        self.revision = f"served:{self.model}"  # a server does not say which weights it has loaded

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> list[float]:
        """Scores of row-wise pairs, higher is better.

        Raises:
            ImageError: a picture cannot be used.
            ServerError: a pair could not be scored.
        """
        refuse_unequal(images, texts)
        return [value for value, _ in self._map(lambda pair: self._one(*pair), zip(images, texts, strict=True))]

    def compare(self, text: str, image_a: Image, image_b: Image) -> float:
        """How much better ``image_a`` matches ``text`` than ``image_b``: the difference of their scores."""
        first, second = self.score([image_a, image_b], [text, text])
        return first - second

    def score_states(self, images: Sequence[Image], texts: Sequence[str]) -> list[Score]:
        """As :meth:`score`, but a pair that fails is a state with its reason, and the others are scored."""

        def one(pair: tuple[Image, str]) -> Score:
            try:
                value, cut = self._one(*pair)
                return Score(value, truncated=cut)
            except ImageError as error:
                return Score(None, Status.INVALID, str(error))
            except ServerError as error:
                return Score(None, Status.ERROR, str(error))

        return self._map(one, zip(images, texts, strict=True))

    def _map(self, action: Callable[[T], R], items: Iterable[T]) -> list[R]:
        with ThreadPoolExecutor(self._concurrency, thread_name_prefix="request") as pool:
            return list(pool.map(action, items))

    def _one(self, image: Image, text: str) -> tuple[float, bool]:
        """The score of one pair, and whether its text was cut."""
        text, cut = self._cut(plain(text))
        turn = message(text)
        turn[0]["content"][0] = {"type": "image_url", "image_url": {"url": _data_uri(picture(image))}}
        answer = self._post("/classify", {"model": self.model, "messages": turn, "use_activation": False})
        try:
            (given,) = answer["data"][0]["probs"]
            value = number(given)
            if not math.isfinite(value):
                raise ValueError(value)
        except (LookupError, TypeError, ValueError) as error:
            raise ServerError(
                f"{self._address} did not answer with one number; is {self.model!r} a ProtoScore model?"
            ) from error
        return value, cut

    def _cut(self, text: str) -> tuple[str, bool]:
        """``text`` without what lies behind 192 tokens; the server's tokenizer counts, and only where it may matter."""
        if len(text) <= MAX_TEXT_TOKENS:  # a token is at least one character
            return text, False
        asked = {"model": self.model, "prompt": text, "add_special_tokens": False}
        tokens = self._post("/tokenize", asked).get("tokens", [])
        if len(tokens) <= MAX_TEXT_TOKENS:
            return text, False
        return self._post("/detokenize", {"model": self.model, "tokens": tokens[:MAX_TEXT_TOKENS]})["prompt"], True

    def _only_model(self) -> str:
        served = [str(entry.get("id")) for entry in self._ask("GET", "/v1/models").get("data", [])]
        if len(served) != 1:
            raise ServerError(f"{self._address} serves {len(served)} models ({', '.join(served[:5])}); name one with model=")
        return served[0]

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._ask("POST", path, json=body)

    def _ask(self, method: str, path: str, **body: Any) -> dict[str, Any]:
        try:
            call = lambda: self._client.request(method, path, **body).raise_for_status()  # noqa: E731
            return _json(patiently(call, _wait, TRIES), self._address)
        except httpx2.TimeoutException as error:
            raise ServerError(f"{self._address} did not answer in time; raise timeout= or lower concurrency=") from error
        except httpx2.HTTPStatusError as error:
            code, reason = error.response.status_code, _reason(error.response)
            raise ServerError(f"{self._address} refused ({code}: {reason})") from error
        except httpx2.HTTPError as error:
            raise ServerError(f"{self._address} cannot be reached ({type(error).__name__}); is the server up?") from error


def _wait(error: Exception, attempt: int) -> float | None:
    """Seconds until another try makes sense, or None."""
    refused = isinstance(error, httpx2.HTTPStatusError) and error.response.status_code not in AGAIN
    lost = not isinstance(error, httpx2.HTTPError) or isinstance(error, httpx2.TimeoutException)
    return None if refused or lost else 0.25 * 2**attempt


def _json(response: httpx2.Response, address: str) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError as error:
        raise ServerError(f"{address} did not answer with JSON; is it a vLLM server?") from error
    if not isinstance(body, dict):
        raise ServerError(f"{address} did not answer with a JSON object; is it a vLLM server?")
    return body


def _reason(response: httpx2.Response) -> str:
    """What the server says is wrong, in a line; never the request, which may hold a key."""
    try:
        body = response.json()
        text = str((body.get("error") or {}).get("message") or body.get("detail") or body)
    except (ValueError, AttributeError):
        text = response.reason_phrase
    return " ".join(text.split())[:200]


def _data_uri(image: Image) -> str:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
