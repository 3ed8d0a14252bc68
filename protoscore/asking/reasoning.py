"""What a reply says after its reasoning. What stands in a reasoning block is never an answer, closed or not, whatever its name.

A block is opened by the model, or by the chat template, which then is not part of the reply: a mark that closes what nobody
opened ends everything before it. Known names open a block even when nothing closes it; any other tag does where it is closed
too, unless it is one that wraps answers. Marks inside a readable object are text. Only what follows the last block is read.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from protoscore.asking.lenient_json import Malformed, end_of_object

_NAMES = re.compile(
    r"(?:\w+[:_])?(?:think(?:ing)?|thoughts?|reason(?:ing|s)?|reflect(?:ion|ing)?|analysis|scratch_?pad|cot|chain_of_thought"
    r"|monologue|deliberation)(?:_\w+)?",
    re.IGNORECASE,
)
_WRAPPERS = frozenset(
    "answer final final_answer output result response json code pre tool_call function_call assistant user s eos bos eot "
    "end start return message text im_end im_start endoftext end_of_turn eot_id p b i em strong br div span html body".split()
)
_MARK = re.compile(
    r"<\|?channel\|?>\s*(?P<channel>[a-z]*)(?:[^<{]{0,40}<\|?message\|?>)?"
    r"|<\|?(?P<shut>/?)\|?(?P<tag>[a-z][\w:.-]*)(?:\s[^<>]{0,80})?\|?>"
    r"|[\[\u25c1](?P<close>/?)(?P<bracket>[a-z_]+)[\]\u25b7]"
    r"|(?P<stripped>\A\s*analysis(?=[A-Z{])|\bassistant(?:final|analysis|commentary))",  # channel marks that a server dropped
    re.IGNORECASE,
)
_CLOSED = re.compile(r"</\|?([a-z][\w:.-]*)", re.IGNORECASE)
_CHANNEL = "channel"


class _Event(NamedTuple):
    """A mark that opens or closes a block, or one that ends all of them."""

    kind: str  # "open", "close", "final"
    name: str
    end: int


def after_reasoning(text: str) -> str:
    """``text`` from behind its last reasoning block; all of it where there is none.

    Raises:
        Malformed: a block is not closed, so that there is no answer.
    """
    opened: list[str] = []
    answer = 0
    for event in _events(text):
        if event.kind == "open":
            if not (event.name == _CHANNEL and _CHANNEL in opened):  # the next channel ends the one before it
                opened.append(event.name)
            continue
        if event.kind == "final":
            opened.clear()
        elif event.name in opened:
            del opened[len(opened) - 1 - opened[::-1].index(event.name) :]
        elif opened:
            opened.pop()
        if not opened:
            answer = event.end
    if opened:
        raise Malformed("open_reasoning", "the reply ends inside its reasoning")
    return text[answer:]


def _events(text: str) -> list[_Event]:
    """The marks of ``text`` in order, but for those inside a readable object."""
    found, at, in_channel = [], 0, False
    closed = {name.lower() for name in _CLOSED.findall(text)}
    while mark := _MARK.search(text, at):
        brace = text.find("{", at, mark.start())
        if brace >= 0:
            at = end_of_object(text, brace) or brace + 1
            continue
        event = _event(mark, closed, in_channel)
        if event is not None:
            in_channel = event.kind == "open" if event.name == _CHANNEL else in_channel
            found.append(event)
        at = mark.end()
    return found


def _event(mark: re.Match[str], closed: set[str], in_channel: bool) -> _Event | None:
    if mark["stripped"]:
        return _Event("final" if mark["stripped"].lower().endswith("final") else "open", _CHANNEL, mark.end())
    if mark["channel"] is not None:
        if mark.group().lower().startswith("<channel|>"):
            return _Event("close", _CHANNEL, mark.start() + len("<channel|>"))
        return _Event("final" if mark["channel"].lower() == "final" else "open", _CHANNEL, mark.end())
    name = (mark["tag"] or mark["bracket"]).lower()
    if in_channel and name == "end":
        return _Event("close", _CHANNEL, mark.end())
    shut, plain = _plain(name, bool(mark["shut"] or mark["close"]))
    if _NAMES.fullmatch(plain):
        return _Event("close" if shut else "open", plain, mark.end())
    if mark["bracket"] or name in _WRAPPERS:
        return None
    if shut or name in closed:
        return _Event("close" if shut else "open", name, mark.end())
    return None


def _plain(name: str, shut: bool) -> tuple[bool, str]:
    """Whether a tag closes, and its name: ``end_of_thought`` closes ``thought``."""
    worded = re.fullmatch(r"(begin|start|end)_?(?:of_)?(\w+)", name)
    return (shut or worded[1] == "end", worded[2]) if worded else (shut, name)
