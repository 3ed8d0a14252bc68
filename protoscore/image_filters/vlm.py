"""Any VLM as a filter: ``vlm:PROTOCOL:VLM``, e.g. ``vlm:protobias/image_filter:local`` or ``...:chat:MODEL@URL``.

The protocol's one whole number, from 1 to 10, is the score. Each picture is held against its own description, which the
prompt knows as ``item.text``. A reply is kept in the stage's folder and never asked for twice; an invalid one is
a state, and so is a question that got none.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from protoscore.asking.dispatch import Budget
from protoscore.asking.protocol import Protocol, load_protocol
from protoscore.asking.stage import ONCE, PATIENT, AskingRun
from protoscore.asking.verdicts import Verdict
from protoscore.catalog import load
from protoscore.errors import ConfigError, ProtoscoreError
from protoscore.image_filters import Measured, Shown
from protoscore.schema import Status
from protoscore.sources.rows import TEXT, Row
from protoscore.vlms import VLM


class VLMFilter:
    """Asks ``judge`` the protocol's question about each picture."""

    def __init__(self, protocol: Protocol, judge: VLM, budget: Budget, ask_lost: bool = False):
        self._protocol, self._judge, self._budget, self._ask_lost = protocol, judge, budget, ask_lost
        self._field = _score_field(protocol)
        self.name = f"vlm:{protocol.name}:{judge.name}"
        self.revision = f"{protocol.version}-{judge.revision}"
        self.parameters = judge.parameters

    def measure(self, pictures: Iterator[Shown], folder: Path) -> Iterator[Measured]:
        """Raises: ProtoscoreError when the budget or the server ended the asking; what was answered is kept."""
        items = (Row(shown.id, (shown.image,), {TEXT: shown.text}) for shown in pictures)
        run = AskingRun(folder, self._protocol, items, self._budget, PATIENT)
        try:
            verdicts = list(run.ask(self._judge, ONCE, self._ask_lost))
        finally:
            run.ledger.close()
        if run.stopped:
            raise ProtoscoreError(f"{run.stopped} (what was answered is kept; the same command goes on)")
        return map(self._measured, verdicts)

    def _measured(self, verdict: Verdict) -> Measured:
        parsed = verdict.parsed
        state = parsed.of(self._field)
        if state != Status.OK or parsed.answer is None:
            return Measured(None, state, f"{parsed.cause}: {parsed.reason}")
        said = next((str(value) for name, value in parsed.answer.items() if name != self._field and value), "")
        return Measured(parsed.answer[self._field], reason=said)


def _score_field(protocol: Protocol) -> str:
    numbers = [field for field in protocol.fields.values() if field.kind == "integer"]
    if len(numbers) != 1 or set(numbers[0].labels) != set(range(1, 11)):
        raise ConfigError(f"{protocol.name} cannot filter: a filter's answer has one whole number, from 1 to 10")
    return numbers[0].name


def create(
    source: str | None = None, max_calls: int | None = None, max_tokens: int | None = None, max_cost: float | None = None,
    ask_lost: bool = False, **options: Any,
) -> VLMFilter:  # fmt: skip
    """The filter of a protocol and a VLM; ``options`` are the VLM's own.

    Args:
        max_calls, max_tokens, max_cost: budget of the stage's folder, over all its processes.
        ask_lost: ask again what was in flight when a process was killed, and may have been billed.

    Raises:
        ConfigError: one of the two is missing, or the protocol's answer is not a score.
    """
    protocol, _, judge = (source or "").partition(":")
    if not judge:
        raise ConfigError("name a protocol and a model, as in vlm:protobias/image_filter:local")
    asked = load_protocol(protocol)
    _score_field(asked)
    return VLMFilter(asked, load("vlms", judge, **options), Budget(max_calls, max_tokens, max_cost), ask_lost)
