"""Any chat server: Hugging Face's Inference Providers, or one that speaks OpenAI's protocol (vLLM, TGI, llama.cpp,
``transformers serve``, OpenAI, Gemini's compatible endpoint).

``chat:MODEL`` asks Inference Providers with the key in ``HF_TOKEN``. ``chat:MODEL@URL`` asks the server at that URL (it
ends in ``/v1``) with the key in ``PROTOSCORE_API_KEY``, or none. Keys are read from the environment only.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from protoscore.errors import ConfigError
from protoscore.vlms import Reply, Request

if TYPE_CHECKING:
    from protoscore.vlms._wire import Client


LARGE = 512 * 512  # pixels


class Chat:
    """One request a call, ``concurrency`` calls at once.

    Args:
        source: ``MODEL`` or ``MODEL@URL``.
        provider: of Inference Providers; "auto" lets the Hub choose.
        key_env: name of the environment variable that holds the key.
        revision: what you know of the served model; it goes into manifests and keys.
        temperature: 0 unless repeated samples are wanted.
        max_tokens: of a reply.
        timeout: seconds for a whole call.
        response_format: "auto" sends the JSON schema until the server refuses it; "off" never does.
        longest_side: px; larger pictures are scaled down.
        longest_bytes: of a picture as a data URI.
        price_in, price_out: of a million tokens, in your currency; needed for a budget of cost.

    Raises:
        ConfigError: no model is named, the key is missing, or the URL carries credentials.
    """

    billed = True
    batch_size = 1

    def __init__(
        self, source: str, provider: str = "auto", key_env: str = "", revision: str = "as served", temperature: float = 0.0,
        max_tokens: int = 512, timeout: float = 120.0, concurrency: int = 8, response_format: str = "auto",
        longest_side: int = 1024, longest_bytes: int = 4_000_000, price_in: float | None = None, price_out: float | None = None,
    ):  # fmt: skip
        self._model, _, self._url = source.partition("@")
        self._key = _key(self._url, key_env)
        self._provider = provider
        self._prices = None if price_in is None and price_out is None else (price_in or 0.0, price_out or 0.0)
        self._timeout, self._longest_bytes = timeout, longest_bytes
        self._structured = response_format == "auto"
        self._client: Client | None = None
        shown = PurePath(self._model).name if self._model.startswith(("/", ".", "~")) else self._model  # no path in a manifest
        self.name, self.revision, self.concurrency = f"chat:{shown}", revision, concurrency
        if not self._model or concurrency < 1 or response_format not in ("auto", "off"):
            raise ConfigError("chat needs chat:MODEL or chat:MODEL@URL, concurrency >= 1 and response_format auto or off")
        self.parameters: dict[str, Any] = {
            "temperature": temperature, "max_tokens": max_tokens, "response_format": response_format,
            "longest_side": longest_side,
        }  # fmt: skip

    async def reply(self, requests: Sequence[Request]) -> list[Reply]:
        return [await self._one(request) for request in requests]

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _one(self, request: Request) -> Reply:
        from protoscore.vlms._wire import failure_of, refuses_format

        start, structured = time.perf_counter(), self._structured
        try:
            async with asyncio.timeout(self._timeout):
                reply = self._read(await self._call(request, structured))
        except Exception as error:  # whatever went wrong becomes a state, without the key
            reply = failure_of(error, self._key)
        if structured and refuses_format(reply):
            self._structured = False
            reply = Reply(failure="transient", reason="the server takes no response_format; asked without")
        return reply._replace(seconds=time.perf_counter() - start)

    async def _call(self, request: Request, structured: bool) -> Any:
        from protoscore.vlms._wire import Client, data_uri, json_format

        if self._client is None:
            target = {"base_url": self._url} if self._url else {"model": self._model, "provider": self._provider}
            # A placeholder key keeps the client from sending the user's Hub token to another host.
            self._client = Client(api_key=self._key or "none", timeout=self._timeout, **target)  # type: ignore[arg-type]
        side = self.parameters["longest_side"]
        uris = []
        for image in request.images:  # a large picture must not hold up the other calls
            large = image.width * image.height > LARGE
            uri = await asyncio.to_thread(data_uri, image, side, self._longest_bytes) if large else None
            uris.append(uri or data_uri(image, side, self._longest_bytes))
        content: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": uri}} for uri in uris]
        # A chat template's own marks, spelled out in a caption, must not open another turn.
        content.append({"type": "text", "text": request.prompt.replace("<|", "< |")})
        return await self._client.chat_completion(
            [{"role": "user", "content": content}], model=self._model, max_tokens=self.parameters["max_tokens"],
            temperature=self.parameters["temperature"], seed=request.seed,
            response_format=json_format(dict(request.schema)) if structured else None,  # type: ignore[arg-type]
        )  # fmt: skip

    def _read(self, completion: Any) -> Reply:
        """A completed call as a reply. Without choices it is a reply all the same: it came whole and may be billed."""
        from protoscore.vlms._wire import scrub_key

        error = getattr(completion, "error", None)
        if error:
            return _embedded(error, self._key)
        usage = getattr(completion, "usage", None)
        tokens_in, tokens_out = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
        cost = None
        if self._prices and isinstance(tokens_in, int) and isinstance(tokens_out, int):
            cost = (tokens_in * self._prices[0] + tokens_out * self._prices[1]) / 1e6
        choices = getattr(completion, "choices", None) or []
        if not choices:
            return Reply("", "no_choices", tokens_in, tokens_out, cost=cost)
        message, finish = choices[0].message, str(choices[0].finish_reason or "")
        text = message.content if isinstance(message.content, str) else ""
        if not text and getattr(message, "refusal", None):
            text, finish = str(message.refusal), "content_filter"
        return Reply(scrub_key(text, self._key), finish, tokens_in, tokens_out, cost=cost)


def _embedded(error: Any, key: str) -> Reply:
    """Some routers answer 200 with an error inside."""
    from protoscore.vlms._wire import scrubbed

    code = error.get("code") if isinstance(error, dict) else None
    passing = code in (408, 429) or (isinstance(code, int) and code >= 500)
    return Reply(failure="transient" if passing else "permanent", reason=scrubbed(f"the server says: {error}", key))


def _key(url: str, key_env: str) -> str:
    if url:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"{re.sub('//.*@', '//***@', url)!r} is no server address; give chat:MODEL@http://HOST:PORT/v1")
        if parts.username or parts.password:
            raise ConfigError("the server address carries credentials; put the key into the environment, see key_env")
    key = os.environ.get(key_env or ("PROTOSCORE_API_KEY" if url else "HF_TOKEN"), "")
    if not key and (key_env or not url):
        raise ConfigError(f"the environment variable {key_env or 'HF_TOKEN'} holds no key; set it, or name another by key_env")
    return key


def create(source: str | None = None, **options: Any) -> Chat:
    if not source:
        raise ConfigError("chat needs a model: chat:MODEL (Inference Providers) or chat:MODEL@URL (your server)")
    return Chat(source, **options)
