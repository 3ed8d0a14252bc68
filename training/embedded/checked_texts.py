"""Texts about a scene with some of their parts changed, and which words are wrong by that."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import NamedTuple

from protoscore.benchmarks.protobias.schema import NUMBERS, Cell, Triplet
from protoscore.benchmarks.protobias.taxonomy import extra_noun, load_taxonomy, with_article

ARTICLES = ("a", "an")


class Checked(NamedTuple):
    """A text about a picture, and where each wrong word starts and ends, in letters."""

    text: str
    wrong: list[tuple[int, int]]


def checked_texts(triplet: Triplet, cell: Cell, domain: list[Triplet], rng: random.Random) -> tuple[Checked, Checked]:
    """The own text of the picture of ``triplet``'s ``cell``, and one in which about two parts of five are changed, or one part
    (now and then to what it was: then nothing is wrong).

    Three in ten name the kind in place of the subject, as a neutral text does, and leave it as it is.

    Args:
        domain: triplets of the same domain, whose subjects, things and places take the place of this one's.
    """
    neutral = rng.random() < 0.3
    true = _neutral(triplet, triplet.description(cell)) if neutral else triplet.description(cell)
    parts = ["knob", "extra", "environment"] + ["subject"] * (not neutral)
    asked = true
    for part in [part for part in parts if rng.random() < 0.4] or [rng.choice(parts)]:
        asked = _CHANGES[part](asked, triplet, cell, domain, rng)
    return Checked(true, []), Checked(asked, _wrong_words(asked, true))


def words_of(parts: Iterable[str], text: str, triplet: Triplet, cell: Cell, domain: list[Triplet]) -> list[tuple[int, int]]:
    """Places of the words that ``text``, about the picture of ``cell``, has for each part: those that another value changes."""
    places: set[tuple[int, int]] = set()
    for part in parts:
        for attempt in range(4):  # a neighbour may have the same value
            other = _CHANGES[part](text, triplet, cell, domain, random.Random(attempt))
            if other != text:
                places |= set(_wrong_words(text, other))
                break
    return sorted(places)


def _wrong_words(asked: str, true: str) -> list[tuple[int, int]]:
    """Places of the words that ``true`` has not, and of a word that lost its neighbour ("tree" for "tree stump")."""
    words, theirs = list(re.finditer(r"[\w-]+", asked)), re.findall(r"[\w-]+", true)
    mine = [word.group() for word in words]
    wrong: set[int] = set()
    for kind, start, stop, _, _ in SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
        if kind != "equal":
            wrong |= set(range(start, stop)) or {start if mine[start - 1].lower() in ARTICLES else start - 1}
    return [words[i].span() for i in sorted(wrong) if mine[i].lower() not in ARTICLES]


def _knob(text: str, triplet: Triplet, cell: Cell, domain: list[Triplet], rng: random.Random) -> str:
    other = next(c for c in Cell if c.subject == cell.subject and c.is_correct != cell.is_correct)
    texts = triplet.description(cell), triplet.description(other)
    for stated, instead in (texts, [_neutral(triplet, text) for text in texts]):
        if text == stated:
            return instead
    return text  # something else was changed already: that is enough


def _subject(text: str, triplet: Triplet, cell: Cell, domain: list[Triplet], rng: random.Random) -> str:
    mine = {triplet.non_subject, triplet.proto_subject}
    others = [t for t in rng.choices(domain, k=8) if t.non_subject not in mine] or [triplet]
    return _swap(text, subject_phrase(triplet, cell), rng.choice(others).non_phrase)


def _extra(text: str, triplet: Triplet, cell: Cell, domain: list[Triplet], rng: random.Random) -> str:
    other = rng.choice([t.extra for t in rng.choices(domain, k=8) if t.extra != triplet.extra] or [triplet.extra])
    value = triplet.value if cell.is_correct else triplet.violation
    old, new = (extra_noun(e, load_taxonomy().extra(triplet.domain, e), NUMBERS.get(value, 1)) for e in (triplet.extra, other))
    with_its_article = _swap(text, with_article(old), with_article(new))
    return with_its_article if with_its_article != text else _swap(text, old, new)  # not both: "tree" is in "pine tree" too


def _environment(text: str, triplet: Triplet, cell: Cell, domain: list[Triplet], rng: random.Random) -> str:
    other = rng.choice([t.environment for t in rng.choices(domain, k=8)])
    places = load_taxonomy().environments
    return _swap(text, places[triplet.environment], places[other])


_CHANGES = {"knob": _knob, "subject": _subject, "extra": _extra, "environment": _environment}


def _neutral(triplet: Triplet, text: str) -> str:
    """``text`` with the kind in place of the subject."""
    for phrase in (triplet.non_phrase, triplet.proto_phrase):
        text = _swap(text, phrase, triplet.hypernym)
    return text


def subject_phrase(triplet: Triplet, cell: Cell) -> str:
    """The subject of ``cell`` as its description has it, e.g. ``a platypus``."""
    return triplet.non_phrase if cell.subject == "non" else triplet.proto_phrase


def _swap(text: str, old: str, new: str) -> str:
    """``new`` for ``old``, wherever it stands."""
    old_first, new_first = (phrase[0].upper() + phrase[1:] for phrase in (old, new))
    return new_first + text[len(old) :] if text.startswith(old_first) else text.replace(old, new, 1)
