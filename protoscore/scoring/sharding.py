"""Who does which part, when several processes share one table: ``--shard i/n`` by hand, or the ranks of ``torchrun``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import NamedTuple

from protoscore.errors import ConfigError, MissingExtra


class Shard(NamedTuple):
    """Part ``number`` of ``of``, counted from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``i/n``.

        Raises:
            ConfigError: it is not of that form, or i is not in 1..n.
        """
        found = re.fullmatch(r"(\d+)/(\d+)", text.strip())
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise ConfigError(f"--shard {text}: give i/n with i from 1 to n, as in --shard 2/8")
        return cls(int(found[1]), int(found[2]))

    def part(self, count: int) -> range:
        """Its share of ``count`` things: neighbours, so that each shard reads one stretch of the rows."""
        return range(count * (self.number - 1) // self.of, count * self.number // self.of)


def launched() -> Shard | None:
    """The part of this process when ``torchrun`` or ``accelerate launch`` started several; None otherwise."""
    try:
        number, of = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return None
    return Shard(number + 1, of) if of > 1 else None


def use_own_gpu() -> None:
    """Let "cuda" mean the GPU of this rank. Call it before weights are loaded; without a launcher it does nothing."""
    if launched():
        import torch

        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())


@contextmanager
def ranks() -> Iterator[Callable[[int], int]]:
    """A place where the ranks meet: a function that returns when each of them has called it, with the sum of what they gave.
    Carried by gloo, so no GPU is needed for it."""
    try:
        import torch
        import torch.distributed as dist
    except ImportError as error:
        raise MissingExtra("torch", "models") from error
    # A slow rank is no dead rank: the launcher ends the others when one dies.
    dist.init_process_group("gloo", timeout=timedelta(days=30))

    def meet(number: int = 0) -> int:
        total = torch.tensor(number)
        dist.all_reduce(total)
        return int(total)

    try:
        yield meet
    finally:
        dist.destroy_process_group()
