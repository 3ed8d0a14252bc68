"""A judge that reads its replies from a file: for tests, tutorials, and for re-reading replies collected elsewhere.

``scripted:replies.jsonl`` (or ``.yaml``): records with ``reply`` (text, or an object that is written as JSON) and, when it
is meant for some questions only, ``when`` (a text that the prompt must contain). The first record that fits answers; records
may add ``finish_reason``. ``scripted:rule.py`` calls the file's ``reply(request)``, which returns text or a ``Reply``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from importlib import util
from pathlib import Path
from typing import Any

import yaml

from protoscore.errors import ConfigError, first_line
from protoscore.sources.tables import read_table
from protoscore.vlms import Reply, Request

Rule = Callable[[Request], "str | Reply"]


class Scripted:
    """Answers by a rule. ``revision`` is a digest of the file."""

    billed = False

    def __init__(self, source: str, batch_size: int = 64):
        path = Path(source)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ConfigError(
                f"{source} cannot be read ({error.strerror}); give scripted:FILE (.jsonl, .yaml or .py)"
            ) from error
        self.name = f"scripted:{path.name}"
        self.revision = hashlib.sha256(data).hexdigest()[:16]
        self.parameters: dict[str, Any] = {}
        self.batch_size, self.concurrency = batch_size, 1
        self._rule = _module(path) if path.suffix == ".py" else _first_fit(_records(path, data))

    async def reply(self, requests: Sequence[Request]) -> list[Reply]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: Request) -> Reply:
        try:
            answer = self._rule(request)
        except (Exception, SystemExit) as error:  # somebody's own code
            return Reply(failure="permanent", reason=f"the script fails ({type(error).__name__}: {first_line(error)})")
        return answer if isinstance(answer, Reply) else Reply(answer, "stop")

    async def close(self) -> None:
        pass


def _module(path: Path) -> Rule:
    spec = util.spec_from_file_location(f"protoscore_rule_{path.stem}", path)
    assert spec is not None and spec.loader is not None  # the name ends in .py
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not callable(getattr(module, "reply", None)):
        raise ConfigError(f"{path} defines no function reply(request)")
    return module.reply


def _records(path: Path, data: bytes) -> list[dict[str, Any]]:
    if path.suffix == ".jsonl":
        records: Any = [line.values for line in read_table(path, "scripted replies:")]
    else:
        try:
            records = yaml.safe_load(data.decode("utf-8"))
        except (ValueError, yaml.YAMLError) as error:
            raise ConfigError(f"{path} is not a list of replies ({first_line(error)}); see: protoscore judge --help") from error
    if not isinstance(records, list) or not all(isinstance(record, dict) and "reply" in record for record in records):
        raise ConfigError(f"{path}: every record needs a 'reply'")
    return records


def _first_fit(records: list[dict[str, Any]]) -> Rule:
    def rule(request: Request) -> Reply:
        for record in records:
            if str(record.get("when", "")) in request.prompt:
                answer = record["reply"]
                text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
                return Reply(text, record.get("finish_reason") or "stop")
        return Reply(failure="permanent", reason="no record of the script fits this prompt")

    return rule


def create(source: str | None = None, **options: Any) -> Scripted:
    if not source:
        raise ConfigError("the scripted judge needs its replies: scripted:FILE (.jsonl, .yaml or .py)")
    return Scripted(source, **options)
