"""Words around an object that make it no answer: they deny it ("It is certainly not {...}"), doubt it ("Perhaps {...}?"),
correct it ("Correction: the score should be 2.") or offer another number or label ("Either {...} or 3.").
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import pairwise

from protoscore.asking.refusals import SCALE

_CASE = re.IGNORECASE
# In the words of the sentence that runs into the object.
_DOUBT = re.compile(
    r"\b(?:not|never|isn'?t|wasn'?t|aren'?t|neither|nor|either|perhaps|maybe|possibly|might|could|whether|between|unlike"
    r"|first thought|at first|initially|i considered|for example|for instance|e\.g|such as|in the form|vielleicht|quiz[aá]s"
    r"|peut-[eê]tre|entweder)\b",
    _CASE,
)
_DENIED = re.compile(r"\b(?:not|never|neither|either|rather than|instead of|nor|than)[\s:\"'`*(]*\Z", _CASE)
_SENTENCE_END = re.compile(r"[.!?;:\u3002\uff01\uff1f](?=\s|\Z)|\n")
# In the words behind it.
_QUESTION = re.compile(r"""\A[\s"'`)\]*]*[?\uff1f]""")
_ALTERNATIVE = re.compile(r"""\A[\s"'`)\]*.,;]*(?:(?:or|oder|ou|o bien|and/or|to)\b|/|->)""", _CASE)
_CORRECTION = re.compile(
    r"\b(?:correction|corrected|on second thoughts?|scratch that|or rather|changed? my mind|korrektur|correcci[oó]n"
    r"|i (?:meant|misspoke|retract|was wrong|made (?:a|an) (?:mistake|error)|(?:take|took) (?:that|it|this) back)"
    r"|(?:i|let me) (?:change|revise|correct|reconsider|rethink)\w*"
    r"|(?:ignore|disregard|forget) (?:that|this|it|the (?:above|previous|first|last))"
    r"|(?:that|this|it|which|the (?:above|score|answer|label)) (?:is|was) "
    r"(?:wrong|incorrect|not (?:right|correct|true)|a mistake)"
    r"|(?:score|grade|rating|answer|label|mark|count|it|that|this) (?:should|must|ought to|would|has to) "
    r"(?:rather |really |instead )?(?:be|have been)"
    r"|make (?:that|it) (?:a )?\d+)\b"
    r"|(?:\A|[.!?\n])[\s\"'`)*]*(?:no|wait|actually|hmm+|hold on|sorry)\b",
    _CASE,
)
_LONE_NUMBER = re.compile(r"""\A[\s"'`)*.:;,=>-]*(\d{1,9})(?:\.0+)?[\s"'`)*.!]*\Z""")
_WORD = re.compile(r"\w+")
_NUMBER_NAMES = "score grade rating mark answer value point count verdict better rather".split()
_LINKS = frozenset("is of would should be will now to a an the as say was about around final s".split())
_FARTHEST = 6  # words between "score" and its number
_NAMED_LABEL = (
    r"""\b(?:answer|label|choice|verdict|value|{name})\b["'*]*\s*(?:is|=|:|would be|should be)\s*["'*]*({labels})\b"""
)


def takes_back(before: str, after: str, numbers: Mapping[str, int], labels: Mapping[str, tuple[str, Collection[str]]]) -> bool:
    """Whether the words around an object deny it, doubt it or offer something else.

    Args:
        numbers: integer field -> what the object says.
        labels: field -> the label that the object gives, and all of its labels.
    """
    before, after = before.replace("\u2019", "'"), after.replace("\u2019", "'")
    sentence = before[max((match.end() for match in _SENTENCE_END.finditer(before)), default=0) :]
    if _DOUBT.search(sentence) or _DENIED.search(before):
        return True
    if _QUESTION.match(after) or _ALTERNATIVE.match(after) or _CORRECTION.search(after):
        return True
    lone = _LONE_NUMBER.match(after)
    if numbers and lone and int(lone[1]) not in numbers.values():
        return True
    return any(_offers_number(text, numbers) or _offers_label(text, labels) for text in (before, after))


def _offers_number(text: str, numbers: Mapping[str, int]) -> bool:
    """Whether another number is called the score: "the score is 3", "rating: 2"."""
    if not numbers:
        return False
    names = {*_NUMBER_NAMES, *(f"{name}s" for name in _NUMBER_NAMES), *map(str.lower, numbers)}
    named = 0  # words that a number may still be away from such a name
    words = list(_WORD.finditer(SCALE.sub(" ", text)))
    for word, following in pairwise([*words, None]):
        assert word is not None
        said = word.group().lower()
        if said.isascii() and said.isdigit() and len(said) < 10:
            fraction = (
                following is not None and word.string[word.end() : following.start()] == "." and following.group().isdigit()
            )
            if named and not fraction and int(said) not in numbers.values():
                return True
            named = 0
        else:
            named = _FARTHEST if said in names else (named - 1 if named and said in _LINKS else 0)
    return False


def _offers_label(text: str, labels: Mapping[str, tuple[str, Collection[str]]]) -> bool:
    """Whether another label is called the answer: "the answer is right"."""
    for name, (given, known) in labels.items():
        either = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
        said = re.finditer(_NAMED_LABEL.format(name=re.escape(name), labels=either), text, _CASE)
        if any(match[1].casefold() != given.casefold() for match in said):
            return True
    return False
