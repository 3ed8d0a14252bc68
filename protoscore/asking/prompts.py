"""Prompts as Jinja2 text in a sandbox, with data quoted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from protoscore.errors import ConfigError


class NothingToAsk(ConfigError):
    """A field that a prompt quotes holds nothing."""


def _quoted(value: object) -> str:
    """A prompt's filter: text as a JSON string, so that quotes and line ends inside it cannot look like the prompt's own.

    Raises:
        NothingToAsk: it is null, blank or not a number; a model is never asked about "None" or "nan".
        ConfigError: it is a truth value.
    """
    if isinstance(value, bool):
        raise ConfigError(f"it quotes a field as text that is {value}")
    if value is None or value != value or not str(value).strip():
        raise NothingToAsk("a field that the prompt quotes is empty")
    return json.dumps(str(value), ensure_ascii=False)


_JINJA = SandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
_JINJA.filters["quoted"] = _quoted


@cache
def _template(text: str) -> Template:
    return _JINJA.from_string(text)


def render(protocol: str, text: str, item: Mapping[str, Any], **names: Any) -> str:
    """The prompt ``text`` filled in.

    Raises:
        ConfigError: it needs a field that the item lacks, or is not a template.
    """
    try:
        return _template(text).render(item=dict(item), **names).strip()
    except TemplateError as error:
        raise ConfigError(
            f"prompt of {protocol}: {error}; the items have: {', '.join(sorted(item)) or 'no fields'}; "
            "name a column with --field FIELD=COLUMN"
        ) from error
