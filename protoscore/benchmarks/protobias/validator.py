"""A deterministic judge of triplets: the filtering rules of the paper's Tables 15-17, but for plausibility, on the sentences.

A sentence is read into canonical tokens: ``#subject``, ``#extra`` (in either number), one token a knob phrase, such as
``#layout_relation:left``, and the plain words that are left. Rules then compare tokens, whoever wrote the sentences.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import chain, dropwhile, zip_longest
from typing import NamedTuple

from protoscore.benchmarks.protobias.schema import KNOBS, Triplet
from protoscore.benchmarks.protobias.taxonomy import Extra, Taxonomy, extra_noun
from protoscore.errors import ConfigError

MAX_WORDS = 30
SIMILAR = 0.7  # of the plain words of Demography, where Table 17 lets wording vary a little
RULES: dict[str, str] = {
    "structure.empty": "Every field has words (Tables 15-17).",
    "structure.one_sentence": "Every field is one sentence (Tables 15-17).",
    "structure.max_words": f"No field is longer than {MAX_WORDS} words (Tables 15, 16; for Demography Table 14).",
    "text.no_group_term": "The neutral text of Demography names no group (Table 17).",
    "text.attr_start": "The neutral text of Demography begins with 'A <attribute> person' (Tables 14, 17).",
    "text.generic_subject": "The neutral text is about the hypernym and names neither contrasted subject (Tables 15-17).",
    "text.extra_missing": "The neutral text mentions the extra element (Tables 12-14).",
    "text.knob_missing": "The neutral text states a clear value of the declared knob for the extra element (Tables 15, 16).",
    "demography.mapping": "Groups go with attribute and pole as the mapping demands (Tables 14, 17).",
    "demography.gender": "The descriptions show one person, of the declared gender (Table 14).",
    "demography.look": "The descriptions carry the visible descriptors of their group (Table 17).",
    "correct.subject": "The correct description is about the non-prototype (Tables 15-17).",
    "correct.other_change": "The correct description changes nothing but the subject (Tables 15-17).",
    "adversarial.subject": "The adversarial description is about the prototype (Tables 15-17).",
    "adversarial.several_changes": "The adversarial description changes one knob value only (Tables 15-17).",
    "adversarial.wrong_knob": "The adversarial change is one of the declared knob (Tables 15-17).",
    "adversarial.no_change": "The adversarial description changes a knob value (Tables 15-17).",
    "knob.vocabulary": "Knob values are those that the taxonomy gives the extra element (Tables 12, 13).",
    "count.step": "A number changes by no more than the taxonomy's largest step (1 or 2; Table 12).",
    "knob.flip": "Layout, spatial and scale change to the opposite value (Tables 12, 15, 16).",
    "adversarial.other_change": "The adversarial description changes no other wording or element (Tables 15-17).",
    "controls.subject": "Each control is about its own subject (Tables 15-17, mirrored).",
    "controls.other_change": "A control repeats the text, or the adversarial description, otherwise (Tables 15-17, mirrored).",
    "metadata.value": "'value' and 'violation' are what the sentences say (Tables 15-17).",
}
_FIELDS = ("text", "correct", "adversarial", "proto_correct", "non_violated")


class Breach(NamedTuple):
    """One broken rule."""

    rule: str
    detail: str


_SIDE = r"(?:to|on|at|in) (?:the|its|his|her|their) (?:immediate |far )?{0}(?:[ -]hand)?(?: side)?(?: of)?|{0} of"
_GROUND = r"(?:(?:in|at) (?:the|its) (?:far |near |immediate |distant )?)?{0}"
_NUMBERS = str.split("one two three four five six seven eight nine ten")
_COLORS = str.split("red yellow green blue purple black brown orange pink white gray beige teal turquoise")
_PHRASES: dict[str, str] = {  # how a value may be worded; any other value stands for itself
    **{word: rf"{word}|{number}" for number, word in enumerate(_NUMBERS, 1)},
    "one": r"(?:a )?single|one|1", "gray": "gr[ae]y",
    "left": _SIDE.format("left"), "right": _SIDE.format("right"),
    "in_front": "in front(?: of)?|at the front of", "behind": "behind|in back of",
    "foreground": _GROUND.format("foreground"), "background": _GROUND.format("background"),
    "smaller": "smaller|small", "larger": "larger|large|bigger|big",
}  # fmt: skip
_GROUPS = {  # how a group may be named; any other group by its own word
    "lgbtq+": r"lgbtq?\+?|gay|lesbian|bisexual|queer|homosexual", "heterosexual": "heterosexual|straight",
    "christian": "christian(?:s|ity)?", "muslim": "muslims?|islam(?:ic)?", "jewish": "jewish|jews?|judaism",
}  # fmt: skip
_SAME = {"an": "a", "are": "is", "lies": "lie", "sits": "sit", "stands": "stand", "rests": "rest", "grows": "grow"}
_OPENERS = str.split(
    "in on at by near beside behind under over along next there amid among within inside #layout_relation #spatial"
)
_BREAKS = {*str.split("a the of in on at with to near by and beside next from is #subject #extra")}
_LINKS = {*str.split("that which is stand lie placed nearby beside close by it them much slightly clearly visible")}
_DRESS = {*str.split("wearing showing holding dressed has in with a the of his her their who wears and")}
_CROWD = str.split("another people crowd child children friend couple family stranger")
_TOKEN = re.compile(r"#\w+(?::[\w+]+)?|[a-z0-9]+(?:[-'][a-z0-9]+)*")


def check(triplet: Triplet, taxonomy: Taxonomy) -> list[Breach]:
    """Every rule that ``triplet`` breaks, in the order of :data:`RULES`, the most telling first; none for a valid one.

    A broken structure, and then a broken neutral text, ends the inspection: what follows is compared with the text.
    """
    found = list(_structure(triplet))
    if not found:
        case = _Case(triplet, taxonomy)
        found = list(_text(case)) or [*chain(*case.subjects.values()), *_repeats(case), *_adversarial(case)]
        found = found or list(_metadata(case))
    return sorted(found, key=lambda breach: list(RULES).index(breach.rule))


def require_valid(triplets: Iterable[Triplet], taxonomy: Taxonomy) -> Iterator[Triplet]:
    """Pass valid triplets on.

    Raises:
        ConfigError: at the first invalid one, with the broken rule: the taxonomy's wording is to blame.
    """
    for triplet in triplets:
        for breach in check(triplet, taxonomy):
            raise ConfigError(f"invalid triplet ({breach.rule}: {breach.detail}): {triplet.text!r}; mend the taxonomy")
        yield triplet


class _Case:
    """One triplet, read: the canonical tokens of its sentences, and what is wrong with their subjects."""

    def __init__(self, t: Triplet, taxonomy: Taxonomy):
        self.triplet, self.taxonomy, self.people = t, taxonomy, t.domain == "demography"
        self.domain = getattr(taxonomy.domains, t.domain)
        extra: Extra = self.domain.extras.get(t.extra) or Extra(colors=taxonomy.knobs["color_tone"].values)
        self.colors, self.extra = extra.colors, _pattern(_forms(extra_noun(t.extra, extra, 1), extra.plural))
        self.hypernym, self.non, self.proto = map(_forms, (t.hypernym, t.non_phrase, t.proto_phrase))
        self.names = _pattern(self.hypernym if self.people else f"{self.non}|{self.proto}|{self.hypernym}")
        axes = self.domain.groups.values() if self.people else ()
        self.looks = {group: look for axis in axes for group, look in (axis.advantaged | axis.disadvantaged).items()}
        self.canonical, phrases = zip(*self._phrases(), strict=True)
        self.phrases = _pattern("|".join(map("({})".format, phrases)))
        pair = (t.disadvantaged_group, t.advantaged_group)
        self.mapped = pair if t.pole == "positive" else pair[::-1]  # the unexpected pairing is the non-prototype
        self.tokens, self.subjects = {"text": self.read(t.text)}, {}
        for field in _FIELDS[1:]:
            self.tokens[field], self.subjects[field] = (_person if self.people else _thing)(self, field)

    def _phrases(self) -> Iterator[tuple[str, str]]:
        """Token and pattern of every phrase that is more than a plain word."""
        for knob, spec in self.taxonomy.knobs.items():
            outside = {"count": _NUMBERS, "color_tone": _COLORS}.get(knob, ())
            for value in dict.fromkeys([*spec.values, *chain(*spec.flips), *outside]):
                yield f"#{knob}:{value}", _PHRASES.get(value, re.escape(value.replace("_", " ")))
        if self.people:
            for name in map(str.lower, self.looks):
                yield f"#group:{name.replace(' ', '_')}", _GROUPS.get(name, f"{re.escape(name)}s?")
            yield "#group:other", "|".join(sorted(map(re.escape, self.taxonomy.group_terms())))
            yield from (("#gender:man", "man|male"), ("#gender:woman", "woman|female"))

    def read(self, sentence: str) -> list[str]:
        text = re.sub("[#:-]" if self.people else "[#:]", " ", sentence.lower().replace("’", "'"))
        text = self.extra.sub("#extra", self.names.sub("#subject", text))
        text = self.phrases.sub(lambda match: self.canonical[(match.lastindex or 1) - 1], text)
        return [_SAME.get(token, token) for token in _TOKEN.findall(text)]


@lru_cache(maxsize=512)
def _pattern(phrases: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w#:-])(?:{phrases})(?![\w-])", re.IGNORECASE)


@lru_cache(maxsize=512)
def _forms(noun: str, plural: str | None = None) -> str:
    """A noun without its article, in both numbers, as alternatives of a pattern, longest first."""
    noun = re.sub(r"^(?i:an?|the) ", "", noun)
    forms = {noun, plural or noun, f"{noun}s", f"{noun}es", re.sub(r"y$", "ies", noun), re.sub(r"fe?$", "ves", noun)}
    return "|".join(map(re.escape, sorted(forms, key=lambda form: (-len(form), form))))


def _structure(triplet: Triplet) -> Iterator[Breach]:
    for field in _FIELDS:
        sentence = getattr(triplet, field)
        words = len(re.findall(r"\S*\w\S*", sentence))
        parts = sum(bool(re.search(r"\w", part)) for part in re.split(r"[.!?]+(?=\s|$)|\n", sentence))
        rule = "empty" if not words else "one_sentence" if parts > 1 else "max_words" if words > MAX_WORDS else None
        if rule:
            yield Breach(f"structure.{rule}", f"{field} has {words} words in {parts} sentences")


def _text(case: _Case) -> Iterator[Breach]:
    triplet, tokens = case.triplet, case.tokens["text"]
    if groups := [token[7:] for token in tokens if token.startswith("#group:")]:
        yield Breach("text.no_group_term", f"the text names a group: {', '.join(groups)}")
    start = rf"An? {re.escape(triplet.attr_token or '')} (?:{case.hypernym})(?!\w)"
    if case.people and not re.match(start, triplet.text.strip()):
        yield Breach("text.attr_start", f"the text does not begin with 'A {triplet.attr_token} {triplet.hypernym}'")
    first = tokens.index("#subject") if "#subject" in tokens else len(tokens)
    others = _pattern(f"{case.non}|{case.proto}").search(triplet.text) or any(t.startswith("#gender:") for t in tokens)
    late = "".join(tokens[:1]).partition(":")[0] not in _OPENERS and ("#extra" in tokens[:first] or first > 3)
    if others or late or not _pattern(case.hypernym).search(triplet.text):
        yield Breach("text.generic_subject", f"the text is not plainly about {triplet.hypernym!r} alone")
    if "#extra" not in tokens:
        yield Breach("text.extra_missing", f"the text does not mention {triplet.extra!r}")
    elif _stated(tokens, triplet.knob) is None:
        yield Breach("text.knob_missing", f"the text states no {triplet.knob} of {triplet.extra!r}")


def _stated(tokens: list[str], knob: str) -> int | None:
    """Where the value stands that speaks of the extra element: for a position the nearest, else in its noun phrase."""
    spots = [i for i, token in enumerate(tokens) if token.startswith(f"#{knob}:")]
    nouns = [j for j, token in enumerate(tokens) if token == "#extra"]
    if knob not in ("layout_relation", "spatial"):
        spots = [i for i in spots for j in nouns if _BREAKS.isdisjoint(tokens[i:j]) and _LINKS.issuperset(tokens[j + 1 : i])]
    return min(((abs(i - j), i) for i in spots for j in nouns), default=(0, None))[1]


def _thing(case: _Case, field: str) -> tuple[list[str], list[Breach]]:
    """Tokens of the description of an animal or object, and a breach unless the subject named first is the right one."""
    sentence = getattr(case.triplet, field)
    want, avoid = (case.non, case.proto) if field in ("correct", "non_violated") else (case.proto, case.non)
    first = case.names.search(sentence)
    right = first and _pattern(want).fullmatch(first[0]) and not _pattern(avoid).search(_pattern(want).sub("", sentence))
    rule = f"{field}.subject" if field in ("correct", "adversarial") else "controls.subject"
    return case.read(sentence), [] if right else [Breach(rule, f"{field} is not about its own subject alone")]


def _person(case: _Case, field: str) -> tuple[list[str], list[Breach]]:
    """Tokens of the description of a person, without group and look, and what is wrong with group, gender and look."""
    group, gender = case.mapped[field not in ("correct", "non_violated")] or "", case.triplet.gender or ""
    look = case.looks.get(group, {}).get(gender, "")
    tokens, dressed = _undress(case.read(getattr(case.triplet, field)), case.read(look))
    groups = {token for token in tokens if token.startswith("#group:")}
    genders = {token for token in tokens if token.startswith("#gender:")}
    rule, detail = "demography.look", "" if dressed else f"{field} lacks the look {look!r}"
    if not groups and not genders:
        rule, detail = f"{field}.subject", f"{field} describes no {group} {gender}"
    elif groups != {f"#group:{group.lower().replace(' ', '_')}"}:
        rule, detail = "demography.mapping", f"{field} must name {group} and names {sorted(groups) or 'no group'}"
    elif genders != {f"#gender:{gender}"}:
        rule, detail = "demography.gender", f"{field} must show one {gender}"
    rule = rule if field in ("correct", "adversarial") else "controls.subject"
    tokens = ["#subject" if token in genders else token for token in tokens if token not in groups]
    return tokens, [Breach(rule, detail)] if detail else []


def _undress(tokens: list[str], look: list[str]) -> tuple[list[str], bool]:
    """The tokens without the look and the words that lead to it, and whether it was there."""
    look = list(dropwhile(_DRESS.__contains__, look))
    start = next((i for i in range(len(tokens)) if look and tokens[i : i + len(look)] == look), None)
    if start is None:
        return tokens, False
    end = start + len(look)
    while start and (tokens[start - 1] in _DRESS or tokens[start - 1].startswith(("#color_tone:", "#scale_size:"))):
        start -= 1
    return tokens[:start] + tokens[end:], True


def _changes(before: list[str], after: list[str]) -> list[tuple[str, int | None, str | None, str | None]]:
    """Knob, place, old and new of each differing value; no place where the sentences hold unequal numbers of values."""
    changes: list[tuple[str, int | None, str | None, str | None]] = []
    for knob in KNOBS if before != after else ():
        old, new = ([t.partition(":")[2] for t in side if t.startswith(f"#{knob}:")] for side in (before, after))
        if len(old) == len(new):
            changes += [(knob, i, a, b) for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
        else:
            lost, gained = (Counter(old) - Counter(new)).elements(), (Counter(new) - Counter(old)).elements()
            changes += [(knob, None, a, b) for a, b in zip_longest(lost, gained)]
    return changes


def _same_scene(case: _Case, before: list[str], after: list[str]) -> bool:
    """Whether two sentences differ in nothing but knob values; for people, in nothing that matters."""
    if not case.people:
        return [token.partition(":")[0] for token in before] == [token.partition(":")[0] for token in after]
    anchors = {"#extra", *_CROWD, *(word for poles in case.domain.attributes.values() for word in poles.values())}
    anchors |= {case.taxonomy.environments[place].split()[-1] for place in case.domain.environments}
    anchors |= {extra_noun(key, extra, 1).split()[-1] for key, extra in case.domain.extras.items()}
    held = [{t if t in anchors else re.sub(r"(?<=x)es$|s$", "", t) for t in side} & anchors for side in (before, after)]
    words = [[token for token in side if ":" not in token] for side in (before, after)]
    return held[0] == held[1] and SequenceMatcher(a=words[0], b=words[1], autojunk=False).ratio() >= SIMILAR


def _repeats(case: _Case) -> Iterator[Breach]:
    """Breaches of the three descriptions that repeat another sentence with a subject of their own."""
    for field, model in (("correct", "text"), ("proto_correct", "text"), ("non_violated", "adversarial")):
        before, after = case.tokens[model], case.tokens[field]
        if not case.subjects[field] and (_changes(before, after) or not _same_scene(case, before, after)):
            family = "correct" if field == "correct" else "controls"
            yield Breach(f"{family}.other_change", f"{field} differs from {model} in more than its subject")


def _adversarial(case: _Case) -> Iterator[Breach]:
    text, tokens, knob = case.tokens["text"], case.tokens["adversarial"], case.triplet.knob
    if case.subjects["adversarial"]:
        return
    changes, stated = _changes(text, tokens), _stated(text, knob) or 0
    rank = sum(token.startswith(f"#{knob}:") for token in text[:stated])
    said = "; ".join(f"{name}: {old} -> {new}" for name, _, old, new in changes)
    if not changes:
        yield Breach("adversarial.no_change", f"no knob value differs from the text; one of {knob} should")
    elif len(changes) > 1:
        yield Breach("adversarial.several_changes", said)
    elif changes[0][0] != knob:
        yield Breach("adversarial.wrong_knob", f"{said}, but the knob is {knob}")
    elif changes[0][1] not in (None, rank) or f"#{knob}:{changes[0][2]}" != text[stated]:
        yield Breach("adversarial.other_change", f"{said}, but not of {case.triplet.extra!r}")
    elif broken := _broken_step(case, changes[0][2], changes[0][3]):
        yield Breach(broken, f"{said}, of {case.triplet.extra!r}")
    if not _same_scene(case, text, tokens):
        yield Breach("adversarial.other_change", "wording beyond the subject and the knob differs from the text")


def _broken_step(case: _Case, old: str | None, new: str | None) -> str | None:
    """The rule that the declared knob breaks by going from the old value to the new one."""
    knob, spec = case.triplet.knob, case.taxonomy.knobs[case.triplet.knob]
    allowed = case.colors if knob == "color_tone" else [*spec.values, *chain(*spec.flips)]
    if not old or not new or knob not in case.domain.knobs or not {old, new} <= set(allowed):
        return "knob.vocabulary"
    if spec.max_step and abs(spec.values.index(old) - spec.values.index(new)) > spec.max_step:
        return "count.step"
    return "knob.flip" if spec.flips and not {(old, new), (new, old)} & set(spec.flips) else None


def _metadata(case: _Case) -> Iterator[Breach]:
    t, (_, _, old, new) = case.triplet, _changes(case.tokens["text"], case.tokens["adversarial"])[0]
    if (t.value, t.violation) != (old, new):
        yield Breach("metadata.value", f"the metadata have {t.value} -> {t.violation}, the sentences {old} -> {new}")
    word = case.domain.attributes.get(t.socio_attr, {}).get(t.pole) if case.people else t.attr_token
    if word != t.attr_token or (case.people and case.mapped != (t.non_prototype, t.prototype)):
        yield Breach("demography.mapping", f"{t.pole} {t.socio_attr}: {t.attr_token}, {t.non_prototype} / {t.prototype}")
