"""Refusals in words, in the languages of ``refusals.yaml``. Words that stand beside an answer are none."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from importlib.resources import files

import yaml

_OPENING = 600  # characters: a refusal says so at once
# "from 1 to 5", "zwischen 1 und 5": a scale, and no answer.
SCALE = re.compile(r"\b\d+\s*(?:to|and|through|bis|und|a|y|à|et|到|-|–|—|‑)\s*\d+\b", re.IGNORECASE)


def declines(text: str, numbers: Collection[int] = (), labels: Collection[str] = ()) -> bool:
    """Whether ``text`` says that there will be no answer, and gives none.

    Args:
        numbers, labels: of the closed fields: one of them named as an answer ("Score 5.", "Answer: left") makes it none.
    """
    plain = " ".join(text.replace("\u2019", "'").split())
    if not _refusal().search(plain[:_OPENING]):
        return False
    if any(int(match.group()) in numbers for match in re.finditer(r"\b\d{1,9}\b", SCALE.sub(" ", plain))):
        return False
    known = "|".join(map(re.escape, sorted(labels, key=len, reverse=True)))
    return not (known and re.search(rf"""(?:[:=]|\b(?:is|answer))\s*["'*]*(?:{known})\b""", plain, re.IGNORECASE))


@cache
def _refusal() -> re.Pattern[str]:
    wordings = yaml.safe_load((files("protoscore.asking") / "refusals.yaml").read_text(encoding="utf-8"))
    parts = {name: wordings.pop(name).replace(" |", "|") for name in ("cannot", "verb")}
    patterns = [pattern for some in wordings.values() for pattern in some]
    for name, part in parts.items():
        patterns = [pattern.replace(f"{{{name}}}", part) for pattern in patterns]
    return re.compile("|".join(patterns), re.IGNORECASE)
