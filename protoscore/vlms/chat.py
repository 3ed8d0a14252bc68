"""Any chat server: Hugging Face's Inference Providers, or one that speaks OpenAI's protocol (vLLM, TGI, llama.cpp,
``transformers serve``, OpenAI, Gemini's compatible endpoint).

``chat:MODEL`` asks Inference Providers with the key in ``HF_TOKEN``. ``chat:MODEL@URL`` asks the server at that URL (it
ends in ``/v1``) with the key in ``PROTOSCORE_API_KEY``, or none. Keys are read from the environment only.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from protoscore.errors import ConfigError
from protoscore.vlms import Reply, Request

if TYPE_CHECKING:
    from protoscore.vlms._wire import Wire


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
        response_format: "auto" sends the JSON schema until the server refuses it; "off" never does. What else a server refuses
            (``temperature``, ``seed``, ``max_tokens`` where it wants ``max_completion_tokens``) is left out after that too.
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
        self._model, self._url = _model_and_server(source)
        self._key = _key(self._url, key_env)
        self._provider = provider
        for name, value in {"price_in": price_in, "price_out": price_out}.items():
            _number(name, 0.0 if value is None else value, 0.0)
        _number("temperature", temperature, 0.0)
        _number("timeout", timeout, 0.001)
        for name, count in {"max_tokens": max_tokens, "concurrency": concurrency, "longest_side": longest_side}.items():
            _number(name, count, 1, whole=True)
        self._prices = None if price_in is None and price_out is None else (price_in or 0.0, price_out or 0.0)
        self._timeout, self._longest_bytes = timeout, longest_bytes
        self._left_out = set() if response_format == "auto" else {"response_format"}  # what this server does not take
        self._answered = False
        self._wire: Wire | None = None
        shown = PurePath(self._model).name if self._model.startswith(("/", ".", "~")) else self._model  # no path in a manifest
        self.name, self.revision, self.concurrency = f"chat:{shown}", revision, concurrency
        if not self._model or response_format not in ("auto", "off"):
            raise ConfigError("chat needs chat:MODEL or chat:MODEL@URL, and response_format auto or off")
        self.parameters: dict[str, Any] = {
            "temperature": temperature, "max_tokens": max_tokens, "response_format": response_format,
            "longest_side": longest_side,
        }  # fmt: skip

    async def reply(self, requests: Sequence[Request]) -> list[Reply]:
        return [await self._one(request) for request in requests]

    async def close(self) -> None:
        if self._wire is not None:
            await self._wire.close()
            self._wire = None

    async def _one(self, request: Request) -> Reply:
        from protoscore.vlms._wire import failure_of

        start, left_out = time.perf_counter(), frozenset(self._left_out)
        try:
            reply = await self._asked(request, left_out)
        except Exception as error:  # whatever went wrong becomes a state, without the key
            reply = failure_of(error, self._key, self._address)
        self._answered = self._answered or reply.sent
        reply = self._without_what_is_refused(reply, left_out)
        if not reply.sent and not self._answered:  # nobody was ever there: waiting helps as little as asking all the others
            reply = reply._replace(failure="fatal")
        return reply._replace(seconds=time.perf_counter() - start)

    def _without_what_is_refused(self, reply: Reply, left_out: frozenset[str]) -> Reply:
        """A complaint about a parameter is a reason to ask once more, without it."""
        from protoscore.vlms._wire import refused_parameter

        refused = refused_parameter(reply)
        if not refused or refused in left_out:
            return reply
        self._left_out.add(refused)
        return Reply(failure="transient", reason=f"the server takes no {refused}; asked without")

    @property
    def _address(self) -> str:
        return self._url or "Hugging Face's Inference Providers"

    async def _asked(self, request: Request, left_out: frozenset[str]) -> Reply:
        from protoscore.vlms._wire import Wire, of_status

        if self._wire is None:
            self._wire = Wire(self._url or _router(), self._key, self._timeout)
        answered = await self._wire.call("POST", "chat/completions", json=await self._body(request, left_out))
        return self._read(answered.json()) if answered.status < 400 else of_status(answered, self._key)

    async def _body(self, request: Request, left_out: frozenset[str]) -> dict[str, Any]:
        """What is sent for one question."""
        from protoscore.vlms._wire import data_uri, json_format

        side = self.parameters["longest_side"]
        uris = []
        for image in request.images:  # a large picture must not hold up the other calls
            large = image.width * image.height > LARGE
            uri = await asyncio.to_thread(data_uri, image, side, self._longest_bytes) if large else None
            uris.append(uri or data_uri(image, side, self._longest_bytes))
        # A chat template's own marks, spelled out in a caption, must not open another turn.
        text = request.prompt.replace("<|", "< |")
        shown = [{"type": "image_url", "image_url": {"url": uri}} for uri in uris]
        content = [*shown, {"type": "text", "text": text}] if shown else text  # some servers of text alone take no parts
        sent: dict[str, Any] = {
            "max_tokens": self.parameters["max_tokens"], "temperature": self.parameters["temperature"], "seed": request.seed,
            "response_format": json_format(dict(request.schema)),
        }  # fmt: skip
        if "max_tokens" in left_out:
            sent["max_completion_tokens"] = sent["max_tokens"]
        kept = {name: value for name, value in sent.items() if name not in left_out and value is not None}
        model = self._model if self._url or self._provider == "auto" else f"{self._model}:{self._provider}"
        return {"model": model, "messages": [{"role": "user", "content": content}], **kept}

    def _read(self, completion: Mapping[str, Any]) -> Reply:
        """A completed call as a reply, or why it is none: some servers answer 200 with a failure inside."""
        from protoscore.vlms._wire import is_passing, scrub_key, scrubbed, tokens

        if error := completion.get("error"):
            code = error.get("code") if isinstance(error, dict) else None
            failure: Any = "permanent" if code is not None and not is_passing(code) else "transient"
            return Reply(failure=failure, reason=scrubbed(f"the server says: {error}", self._key))
        if not (choices := completion.get("choices")):
            said = completion.get("detail") or completion.get("message") or "no answer in the reply"
            return Reply(failure="transient", reason=scrubbed(f"the server says: {said}", self._key))
        usage = completion.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        tokens_in, tokens_out = tokens(usage.get("prompt_tokens")), tokens(usage.get("completion_tokens"))
        cost = None
        if self._prices and tokens_in is not None and tokens_out is not None:
            cost = (tokens_in * self._prices[0] + tokens_out * self._prices[1]) / 1e6
        text, finish = _text_of(choices[0])
        if finish == "error" or (not text and finish in ("", "stop")):
            return Reply(failure="transient", reason="the server ended the reply with a failure of its own")
        return Reply(scrub_key(text, self._key), finish, tokens_in, tokens_out, cost=cost)


def _text_of(choice: Mapping[str, Any]) -> tuple[str, str]:
    """What a model said and how it ended. What is not an answer (reasoning alone, a call of a tool) is kept as it came."""
    message, finish = choice["message"], str(choice.get("finish_reason") or "")
    if isinstance(message.get("content"), str) and message["content"]:
        return message["content"], finish
    if refusal := message.get("refusal"):
        return str(refusal), "content_filter"
    if calls := message.get("tool_calls"):
        return json.dumps({"tool_calls": calls}, ensure_ascii=False), finish
    thought = message.get("reasoning_content") or message.get("reasoning")
    return (f"<think>{thought}" if thought else ""), finish


def _router() -> str:
    """Where Inference Providers speak OpenAI's protocol."""
    from huggingface_hub.constants import INFERENCE_PROXY_TEMPLATE

    return INFERENCE_PROXY_TEMPLATE.format(provider="v1")


def _model_and_server(source: str) -> tuple[str, str]:
    """``MODEL@URL`` in two; a model's own name may hold an @ too."""
    at = source.rfind("@http")
    if at < 0 and (other := re.search(r"@\w+://", source)):
        at = other.start()
    return (source, "") if at < 0 else (source[:at], source[at + 1 :])


def _number(name: str, value: Any, low: float, whole: bool = False) -> None:
    good = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
    if not good or not low <= value < math.inf:
        kind = "a whole number" if whole else "a number (with a point, as in 0.4)"
        raise ConfigError(f"chat: {name}={value} is not {kind} from {low:g} on")


def _key(url: str, key_env: str) -> str:
    if url:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"{re.sub('//.*@', '//***@', url)!r} is not a server address; give chat:MODEL@http://HOST:PORT/v1"
            )
        if parts.username or parts.password:
            raise ConfigError("the server address carries credentials; put the key into the environment, see key_env")
    name = key_env or ("PROTOSCORE_API_KEY" if url else "HF_TOKEN")
    key = os.environ.get(name, "")
    if not key and (key_env or not url):
        raise ConfigError(f"the environment variable {name} holds no key; set it, or name another by key_env")
    if not re.fullmatch(r"[!-~]*", key):
        raise ConfigError(f"the key in {name} holds a space, a line end or a letter that no key has; set it again without")
    return key


def create(source: str | None = None, **options: Any) -> Chat:
    if not source:
        raise ConfigError("chat needs a model: chat:MODEL (Inference Providers) or chat:MODEL@URL (your server)")
    return Chat(source, **options)
