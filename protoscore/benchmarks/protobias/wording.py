"""What the quantities mean, in words. Rules on intervals, so that noise is not put into words."""

from __future__ import annotations

from typing import Literal, NamedTuple

from protoscore.stats.pairwise import ElementSensitivity, FiveQuantities
from protoscore.stats.resampling import Estimate

GOOD, CHANCE, NOTABLE = 0.9, 0.5, 0.1  # an accuracy worth trusting; guessing; a gap worth a name
ELEMENTS = {"extra": "the extra thing", "environment": "the environment", "subject": "the subject"}


class Reading(NamedTuple):
    """A verdict in a word, its tone, and a sentence or two for people."""

    verdict: str
    tone: Literal["good", "bad", "neutral"]
    text: str


def reading(q: FiveQuantities, elements: ElementSensitivity | None = None) -> Reading:
    """Put the quantities of one scorer into words; ``elements`` where foils were scored."""
    if q.incongruent.n == 0:
        return Reading("no scores", "neutral", "No pair has two scores, so nothing can be said.")
    if all(e.ties == e.n for e in (q.incongruent, q.congruent, *(elements or ()))):
        return Reading(
            "constant", "neutral", "It gives every picture the same score. A tie is a failure, so its accuracies are 0."
        )
    if q.congruent.n == 0:
        return _pairs_only(q)
    if min(q.incongruent.low, q.congruent.low, q.sensitivity.low) >= GOOD:
        return _reads_the_detail(q, elements)
    if q.gap.high < -NOTABLE:
        return Reading(
            "anti-prototype shortcut", "bad",
            f"It follows the subject and not the text: whatever the text says, the less typical subject tends to win "
            f"(the typical one wins {q.preference.value:.0%} of the time). So its {q.incongruent.value:.3f} on the "
            f"paper's pairs is not understanding: turned round it gets {q.congruent.value:.3f}, and with one subject in "
            f"both pictures {q.sensitivity.value:.3f}, where guessing gets 0.5.",
        )  # fmt: skip
    if q.gap.low > NOTABLE:
        return Reading(
            "prototypicality bias", "bad",
            f"It prefers what is typical: right {q.congruent.value:.3f} of the time when the typical picture is the right one, "
            f"{q.incongruent.value:.3f} when it is the wrong one.",
        )  # fmt: skip
    if elements and elements.all.low >= GOOD and q.sensitivity.high < GOOD:
        return Reading(
            "reads the nouns, not the detail", "bad",
            f"It sees when the thing, the place or the subject is another one ({elements.all.value:.3f} of the time), but not "
            f"what the text says about them: with every noun right and one detail wrong it is right {q.sensitivity.value:.3f} "
            f"of the time{_tied(q.sensitivity)}, where guessing gets 0.5.",
        )  # fmt: skip
    if q.sensitivity.low <= CHANCE <= q.sensitivity.high:
        return Reading(
            "no better than guessing", "neutral",
            f"With the same subject in both pictures it finds the right one {q.sensitivity.value:.3f} of the time, "
            f"which cannot be told from guessing (0.5).",
        )  # fmt: skip
    if min(e.value for e in (q.incongruent, q.congruent, q.sensitivity, *(elements or ()))) >= GOOD:
        return Reading(
            "seems to read the text", "neutral",
            f"It is right {q.incongruent.value:.3f} of the time on the paper's pairs, {q.congruent.value:.3f} the other way "
            f"round, {q.sensitivity.value:.3f} on one subject, but {q.incongruent.n:,} pairs are too few to promise {GOOD}.",
        )  # fmt: skip
    return Reading(
        "reads in part", "neutral",
        f"It tells right from wrong {q.sensitivity.value:.3f} of the time on one subject, and no clear preference for "
        f"typical or untypical subjects shows (gap {q.gap.value:+.3f}).",
    )  # fmt: skip


def _reads_the_detail(q: FiveQuantities, elements: ElementSensitivity | None) -> Reading:
    """What to say of a scorer that is right on the four cells, which share every noun."""
    right = (
        f"It is right whichever subject is typical: {q.incongruent.value:.3f} on the paper's pairs, "
        f"{q.congruent.value:.3f} the other way round, {q.sensitivity.value:.3f} when both pictures show the same subject."
    )
    if elements is None:
        return Reading("reads the detail", "neutral", f"{right} Whether it reads the nouns too, only foils could tell.")
    found = {words: getattr(elements, name) for name, words in ELEMENTS.items()}
    poor = {words: e for words, e in found.items() if e.low < GOOD}
    told = ", ".join(f"{e.value:.3f} for {words}" for words, e in (poor or found).items())
    if not poor:
        return Reading("reads the text", "good", f"{right} And it sees when a noun is another one: {told}.")
    if min(e.value for e in poor.values()) >= GOOD:
        return Reading(
            "seems to read the text", "neutral", f"{right} With one noun wrong: {told}; too few pairs to promise {GOOD}."
        )  # fmt: skip
    if min(e.low for e in poor.values()) >= (GOOD + CHANCE) / 2:
        return Reading(
            f"reads the text, {' and '.join(poor)} less surely", "neutral",
            f"{right} With one noun wrong it is right {told}, short of the {GOOD} that would be promised.",
        )  # fmt: skip
    missing = "the nouns" if len(poor) == len(found) else " and ".join(poor)
    return Reading(
        f"reads the detail, not {missing}", "bad",
        f"{right} But the four pictures share every noun. Against the same picture with another one it is right {told}, "
        "where guessing gets 0.5.",
    )  # fmt: skip


def _tied(e: Estimate) -> str:
    return f" ({e.ties:,} of {e.n:,} are ties)" if e.ties else ""


def _pairs_only(q: FiveQuantities) -> Reading:
    """What two pictures a text can say: the paper's accuracy, and not why it is what it is."""
    share = f"right on {q.incongruent} of the paper's pairs"
    if q.incongruent.high < CHANCE:
        return Reading(
            "prefers the typical picture", "bad",
            f"It is {share}, less than guessing: it tends to put the typical wrong picture above the unusual right one.",
        )  # fmt: skip
    if q.incongruent.low <= CHANCE:
        return Reading("no better than guessing", "neutral", f"It is {share}, which cannot be told from guessing (0.5).")
    return Reading(
        "right on the paper's pairs", "neutral",
        f"It is {share}. In these pairs the right picture is always the less typical one, so that following the subject "
        "would look the same as reading the text; only the two control pictures could tell.",
    )  # fmt: skip
