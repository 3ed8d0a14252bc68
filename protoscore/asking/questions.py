"""What is asked about one item: every combination of prompt variant, repeated sample and order of labels or alternatives."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import Any, NamedTuple

from protoscore.asking.protocol import Order, Protocol
from protoscore.errors import ConfigError
from protoscore.schema import derive_seed
from protoscore.sources.rows import Row
from protoscore.vlms import VLM, Request

MOST_ORDERS = 120  # of one field's labels that are all asked


class Robustness(NamedTuple):
    """Ways to ask the same thing more than once. All replies enter the table; ``decide`` combines them."""

    variants: tuple[str, ...] = ("",)  # "" is the protocol's own prompt
    samples: int = 1
    shuffle: int | None = None  # seed of the order of labels, drawn anew for each item and sample; None: the schema's order
    every_order: bool = False  # ask with every order of the labels instead


class Ask(NamedTuple):
    """One question about one item."""

    item: str
    variant: str = ""
    sample: int = 0
    order: Order | None = None  # None: as in the schema
    swapped: bool = False  # the item's two alternatives change places
    prompt: str = ""  # empty where none could be written
    schema: Mapping[str, Any] = {}
    seed: int | None = None


def asks(protocol: Protocol, item: Row, how: Robustness) -> Iterator[Ask]:
    """The questions about ``item``, variants outermost."""
    protocol = protocol.of(item.fields)
    for variant in how.variants:
        for sample in range(how.samples):
            seed = None if how.samples == 1 else derive_seed("sample", sample) % 2**31
            for order in _orders(protocol, how, item.id, sample):
                schema = protocol.schema(order, variant)
                for swapped in (False, True) if protocol.alternatives else (False,):
                    prompt = protocol.render(_shown(protocol, item.fields, swapped), variant, order)
                    shown = _with_alternatives(protocol, order, swapped)
                    yield Ask(item.id, variant, sample, shown, swapped, prompt, schema, seed)


def _shown(protocol: Protocol, fields: Mapping[str, Any], swapped: bool) -> Mapping[str, Any]:
    return protocol.alternatives.swapped(fields) if protocol.alternatives and swapped else fields


def _with_alternatives(protocol: Protocol, order: Order | None, swapped: bool) -> Order | None:
    """The order, with the item's alternatives as they were shown."""
    if protocol.alternatives is None:
        return order
    labels = protocol.fields[protocol.alternatives.field].labels
    return {**(order or {}), protocol.alternatives.field: (labels[1::-1] + labels[2:]) if swapped else labels}


def _orders(protocol: Protocol, how: Robustness, item: str, sample: int) -> Iterator[Order | None]:
    if how.every_order:
        name = _ordered_fields(protocol)[0]
        yield from ({name: order} for order in permutations(protocol.fields[name].labels))
    elif how.shuffle is not None:
        yield label_order(protocol, derive_seed(how.shuffle, item, sample))
    else:
        yield None


def _ordered_fields(protocol: Protocol) -> list[str]:
    """Fields whose labels may stand in any order. Numbers keep theirs: it is their meaning; so do two alternatives."""
    fixed = protocol.alternatives.field if protocol.alternatives else ""
    return [name for name, field in protocol.fields.items() if field.kind in ("label", "labels") and name != fixed]


def label_order(protocol: Protocol, seed: int) -> Order:
    """The labels of each field in an order that the seed decides."""
    draw = random.Random(seed)
    labels = protocol.labels()
    return {name: tuple(draw.sample(labels[name], len(labels[name]))) for name in _ordered_fields(protocol)}


def key_of(judge: VLM, ask: Ask, digests: tuple[str, ...]) -> str:
    """What a reply is kept under: who was asked, with what, and the content of all that was shown.

    The prompt holds the fields, the variant and the label order; so questions of equal content share one reply.
    """
    shown = list(in_order(ask, digests))
    parts = [judge.name, judge.revision, judge.parameters, ask.prompt, ask.schema, shown, ask.sample, ask.seed]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def in_order(ask: Ask, images: tuple[Any, ...]) -> tuple[Any, ...]:
    """The pictures of an item as a question shows them."""
    half = len(images) // 2
    return images[half:] + images[:half] if ask.swapped else images


def digests_of(item: Row) -> tuple[str, ...]:
    return tuple(hashlib.sha256(data).hexdigest() for data in item.images)


def check(protocol: Protocol, judge: VLM, how: Robustness) -> None:
    """Refuse what cannot mean anything.

    Raises:
        ConfigError, UnknownName: before anything is asked.
    """
    for variant in how.variants:
        protocol.in_order(variant)  # there is one of that name
    if len(set(how.variants)) != len(how.variants) or how.samples < 1:
        raise ConfigError("name each variant once, and ask for at least one sample")
    if how.samples > 1 and judge.parameters.get("temperature") == 0:
        raise ConfigError(f"repeated samples of {judge.name} at temperature 0 are all the same; give it a temperature")
    if how.every_order:
        _check_every_order(protocol, how)


def _check_every_order(protocol: Protocol, how: Robustness) -> None:
    names = _ordered_fields(protocol)
    if how.shuffle is not None:
        raise ConfigError("labels are asked in every order or in a drawn one: give --orders all or --shuffle, not both")
    if len(names) != 1:
        raise ConfigError(
            f"{protocol.name} has {len(names)} fields whose labels have an order, and --orders all needs one; use --shuffle"
        )
    orders = math.factorial(len(protocol.fields[names[0]].labels))
    if orders > MOST_ORDERS:
        raise ConfigError(
            f"the labels of {names[0]} have {orders:,} orders, more than {MOST_ORDERS}; draw one with --shuffle SEED"
        )


def check_item(protocol: Protocol, item: Row, judge: VLM, how: Robustness) -> None:
    """Write the questions about one item, so that what cannot be asked shows early.

    Raises:
        ConfigError, DatasetError: its fields or pictures do not suit the protocol.
    """
    closed = protocol.of(item.fields)
    check(closed, judge, how)
    two = closed.alternatives
    if two and two.images and (len(item.images) % 2 or not (item.images or two.swaps)):
        raise ConfigError(
            f"{protocol.name} compares two pictures, or two sets of one size, and {item.id!r} has {len(item.images)} pictures"
        )
    for _ in asks(protocol, item, how):
        pass


def request_of(ask: Ask, images: tuple[Any, ...]) -> Request:
    return Request(ask.prompt, in_order(ask, images), ask.schema, ask.seed)
