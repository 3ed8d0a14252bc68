"""The scene world's filter: geometry measured while drawing, on the paper's 1-10 scale. Not a model's opinion.

Like the paper's VLM filters it sees one picture and what that picture was to show, never the pair and never the neutral
text (section 4.2). 10: exact. 8-9: all there, slightly covered. 5-7: one attribute unclear. 1-4: the subject is missing.
"""

from __future__ import annotations

from typing import NamedTuple

from protoscore.scenes.draw import Element
from protoscore.scenes.spec import SceneSpec

RULES = "2"  # raise it when the same scene may get another score
CLEAR, MOST, HALF = 0.97, 0.8, 0.5  # shares of an element's ink that can be seen
COVERED = (0.15, 0.4)  # the share of the one behind that the one in front covers
GAP = 0.01  # fraction of the frame by which a side or two extras must be apart
STEP = 0.06  # and by which what is in front must stand lower


class Assessment(NamedTuple):
    """A score from 1 to 10 and why it is no higher."""

    score: int
    reason: str


def assess(spec: SceneSpec, elements: list[Element]) -> Assessment:
    """Score a drawn scene against its spec.

    Args:
        spec: what the picture must show.
        elements: everything that was drawn, with the share of it that can be seen.
    """
    subjects = [e for e in elements if e.role == "subject"]
    extras = [e for e in elements if e.role == "extra"]
    if len(subjects) != 1 or subjects[0].key != spec.subject or subjects[0].visible < HALF:
        return Assessment(3, "the subject is missing or mostly hidden")
    if len(extras) != spec.count or any(e.key != spec.extra for e in extras):
        return Assessment(5, f"{len(extras)} extra elements were drawn, {spec.count} are due")
    unclear = _unclear(spec, subjects[0], extras)
    if unclear:
        return Assessment(6, unclear)
    # What stands behind another thing is covered on purpose; how much of it, the relation says.
    behind = {"in_front": subjects, "behind": extras}.get(spec.layout_relation or "", [])
    worst = min(e.visible for e in (*subjects, *extras) if e not in behind)
    if worst < MOST:
        return Assessment(7, "a required element is covered or cut off")
    return Assessment(10, "") if worst >= CLEAR else Assessment(9 if worst >= 0.9 else 8, "slightly covered")


def _unclear(spec: SceneSpec, subject: Element, extras: list[Element]) -> str:
    """Why the knob's condition cannot be read off the picture; empty when it can."""
    first = extras[0]
    if spec.color_tone and first.color != spec.color_tone:
        return f"the extra element is {first.color}, not {spec.color_tone}"
    if spec.layout_relation and not _relation_holds(spec.layout_relation, subject, first):
        return f"the relation {spec.layout_relation!r} to the subject cannot be read off"
    if spec.spatial:
        # What is near is drawn lower and bigger. Depth must show in both.
        near = first.base - subject.base
        if (near if spec.spatial == "foreground" else -near) < 0.15:
            return f"the extra element is not clearly in the {spec.spatial}"
    if spec.scale_size:
        ratio = (first.width * first.height / (subject.width * subject.height)) ** 0.5
        if (ratio if spec.scale_size == "larger" else 1 / ratio) < 1.5:
            return f"the extra element is not clearly {spec.scale_size} than the subject"
    return _crowded(extras)


def _relation_holds(relation: str, subject: Element, extra: Element) -> bool:
    if relation in ("left", "right"):
        sign = -1 if relation == "left" else 1
        return sign * (extra.x - subject.x) - (extra.width + subject.width) / 2 > -GAP and abs(extra.base - subject.base) < 0.1
    near, far = (extra, subject) if relation == "in_front" else (subject, extra)
    return near.base - far.base > STEP and COVERED[0] <= 1 - far.visible <= COVERED[1]


def _crowded(extras: list[Element]) -> str:
    """Extras whose boxes overlap by more than a tenth may be taken for one, and spoil a count."""
    for i, a in enumerate(extras):
        for b in extras[i + 1 :]:
            wide = min(a.x + a.width / 2, b.x + b.width / 2) - max(a.x - a.width / 2, b.x - b.width / 2)
            high = min(a.base, b.base) - max(a.base - a.height, b.base - b.height)
            if wide > 0 and high > 0 and wide * high > 0.1 * min(a.width * a.height, b.width * b.height):
                return "two extra elements overlap"
    return ""
