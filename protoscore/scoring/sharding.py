"""Who does which part, when several processes share one table: ``--shard i/n`` by hand, or the ranks of ``torchrun``."""

from __future__ import annotations

import atexit
import os
import re
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from protoscore.errors import ConfigError, needs

if TYPE_CHECKING:
    from accelerate import PartialState


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

    @property
    def folder(self) -> str:
        """Where in a run's folder it keeps its results."""
        return f"shard-{self.number}-of-{self.of}"

    def part(self, count: int) -> range:
        """Its share of ``count`` things: neighbours, so that each shard reads one stretch of the rows."""
        return range(count * (self.number - 1) // self.of, count * self.number // self.of)


def launched() -> bool:
    """Whether ``torchrun`` or ``accelerate launch`` started several processes, of which this is one."""
    return "RANK" in os.environ and int(os.environ.get("WORLD_SIZE") or 1) > 1


def ranks() -> PartialState | None:
    """Where this process stands among those that ``torchrun`` or ``accelerate launch`` started; None when it is alone.

    Call it before weights are loaded: from then on "cuda" means the GPU of this rank.

    Raises:
        MissingExtra: accelerate is not installed.
    """
    if not launched():  # and does without torch
        return None
    with needs("models"):
        import torch
        from accelerate import PartialState
    # Without a GPU it has to be told so. By gloo, since ranks that wait by NCCL keep their GPU busy. A slow rank is not a dead
    # rank: the launcher ends the others when one dies.
    state = PartialState(cpu=not torch.cuda.is_available(), backend="gloo", timeout=timedelta(days=30))
    atexit.register(state.destroy_process_group)
    return state
