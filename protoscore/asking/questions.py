"""What is asked about one item: every combination of prompt variant and repeated sample, with its order of labels."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from protoscore.asking.protocol import Label, Protocol
from protoscore.errors import ConfigError, UnknownName
from protoscore.schema import derive_seed
from protoscore.sources.rows import Row
from protoscore.vlms import VLM, Request


class Robustness(NamedTuple):
    """Ways to ask the same thing more than once. All replies enter the table; ``decide`` combines them."""

    variants: tuple[str, ...] = ("",)  # "" is the protocol's own prompt
    samples: int = 1
    shuffle: int | None = None  # seed of the order of labels, drawn anew for each item and sample; None: the schema's order


class Ask(NamedTuple):
    """One question about one item."""

    item: str
    variant: str
    sample: int
    order_seed: int | None
    prompt: str
    schema: Mapping[str, Any]
    seed: int | None


def asks(protocol: Protocol, item: Row, how: Robustness) -> Iterator[Ask]:
    """The questions about ``item``, variants outermost."""
    for variant in how.variants:
        for sample in range(how.samples):
            order_seed = None if how.shuffle is None else derive_seed(how.shuffle, item.id, sample)
            labels = label_order(protocol, order_seed)
            prompt = protocol.render(item.fields, variant, labels)
            seed = None if how.samples == 1 else derive_seed("sample", sample) % 2**31
            yield Ask(item.id, variant, sample, order_seed, prompt, protocol.schema(labels), seed)


def label_order(protocol: Protocol, seed: int | None) -> dict[str, tuple[Label, ...]]:
    """The labels of each field in an order that the seed decides. Numbers keep theirs: it is their meaning."""
    ordered = protocol.labels()
    if seed is None:
        return ordered
    draw = random.Random(seed)
    for name, labels in ordered.items():
        if protocol.fields[name].kind in ("label", "labels"):
            ordered[name] = tuple(draw.sample(labels, len(labels)))
    return ordered


def key_of(judge: VLM, ask: Ask, digests: tuple[str, ...]) -> str:
    """What a reply is kept under: who was asked, with what, and the content of all that was shown.

    The prompt holds the fields, the variant and the label order; so questions of equal content share one reply.
    """
    parts = [judge.name, judge.revision, judge.parameters, ask.prompt, ask.schema, list(digests), ask.sample, ask.seed]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def digests_of(item: Row) -> tuple[str, ...]:
    return tuple(hashlib.sha256(data).hexdigest() for data in item.images)


def check(protocol: Protocol, judge: VLM, how: Robustness) -> None:
    """Refuse what cannot mean anything.

    Raises:
        ConfigError, UnknownName: before anything is asked.
    """
    for variant in how.variants:
        if variant and variant not in protocol.variants:
            raise UnknownName(f"variant of {protocol.name}", variant, protocol.variants)
    if len(set(how.variants)) != len(how.variants) or how.samples < 1:
        raise ConfigError("name each variant once, and ask for at least one sample")
    if how.samples > 1 and judge.parameters.get("temperature") == 0:
        raise ConfigError(f"repeated samples of {judge.name} at temperature 0 are all the same; give it a temperature")


def request_of(ask: Ask, images: tuple[Any, ...]) -> Request:
    return Request(ask.prompt, images, ask.schema, ask.seed)
