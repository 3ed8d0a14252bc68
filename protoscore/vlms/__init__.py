"""Judges: what reads pictures and a prompt, and answers in words. One file each; ``create(source=None, **options)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from PIL.Image import Image


class Request(NamedTuple):
    """One question to a judge."""

    prompt: str  # the whole text; the pictures come before it
    images: tuple[Image, ...]  # RGB; none for a question of text alone
    schema: Mapping[str, Any]  # JSON schema of the answer, labels in the order of this question
    seed: int | None = None  # of a repeated sample; None: the judge's own, deterministic decoding


class Reply(NamedTuple):
    """What came back, or why nothing did. The text is not read here: one parser does that, for every judge.

    ``failure`` is empty for a complete reply. ``transient`` failures may be asked again (429, 5xx, timeouts), a ``permanent``
    one concerns this question only, and a ``fatal`` one would meet every other question too (key refused, no such model).
    """

    text: str = ""
    finish_reason: str = ""  # "stop", "length", "content_filter", as servers say it
    tokens_in: int | None = None  # None: the judge does not count
    tokens_out: int | None = None
    seconds: float = 0.0
    cost: float | None = None  # in the currency of the judge's prices; None: no prices known
    failure: Literal["", "transient", "permanent", "fatal"] = ""
    reason: str = ""  # of a failure, one line without any key
    retry_after: float | None = None  # seconds that the server asks to wait
    sent: bool = True  # False: there was no connection, so that nothing was asked and nothing can be billed
    probabilities: Mapping[str, Mapping[str, float]] | None = None  # field -> label -> probability, where the judge reads them


class VLM(Protocol):
    """Answers requests in order. The stage runs ``concurrency`` calls at once, each of up to ``batch_size`` requests.

    One that knows some protocols only may say so: ``taught``, their versions by name. Others are asked with a warning.
    """

    name: str
    revision: str  # of the weights or the served model
    parameters: dict[str, Any]  # what moves its answers; goes into keys and manifests, so never a key
    batch_size: int
    concurrency: int
    billed: bool  # True: a call may cost money even when its reply is lost

    async def reply(self, requests: Sequence[Request]) -> list[Reply]: ...

    async def close(self) -> None:
        """Give back what belongs to the running event loop; the judge can be used again in another."""
