"""The page of a comparison, with contact sheets, and what a terminal shows of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.text import Text

import protoscore
from protoscore.benchmarks.diversity.comparison import LEVEL, RATE, ModelComparison
from protoscore.benchmarks.diversity.study import DiversityStudy
from protoscore.errors import ImageError, ProtoscoreError
from protoscore.figures import number, p_value
from protoscore.reporting.pages import environment, thumbnail
from protoscore.reporting.terminal import terminal_table
from protoscore.sources import open_rows

if TYPE_CHECKING:
    from rich.console import RenderableType

SHEETS = 3  # sets shown of the most diverse, and of the least
TITLES = {
    "people": "votes, side by side", "judged_entropy": "judged values: effective number",
    "judged_coverage": "judged values: coverage", "judged_count": "judged values: how many",
}  # fmt: skip


class Sheet(NamedTuple):
    """A set as it looks."""

    model: str
    pair: str
    score: float
    pictures: list[str]  # data URIs


def title(measure: str) -> str:
    """A measure in words."""
    kind, _, embedder = measure.partition("_")
    named = {"vendi": f"Vendi score, {embedder}", "distance": f"mean distance, {embedder}"}
    return TITLES.get(measure, named.get(kind, measure))


def page(study: DiversityStudy, run: Path, sources: Mapping[str, str] | None = None) -> str:
    """A self-contained HTML page.

    Args:
        sources: model -> its folder of pictures, for the contact sheets, where it was not drawn into the run.
    """
    env = environment(Path(__file__).parent)
    env.filters["p"] = p_value
    env.filters["title"] = title
    low, high = sheets(study, run, sources or {})
    return env.get_template("report.html.jinja").render(
        study=study, manifest=study.manifest, version=protoscore.__version__, least=low, most=high, rate=RATE, level=LEVEL,
        tested=lambda one, a, b: _seen_from(one, a, b),
    )  # fmt: skip


class PairResult(NamedTuple):
    """A pair of models, from the first one's side."""

    wins: int
    losses: int
    ties: int
    p: float
    p_holm: float
    rate: float
    low: float
    high: float
    verdict: str


def _seen_from(one: ModelComparison, a: str, b: str) -> PairResult:
    turned = (a, b) not in one.tests
    test = one.tests[(b, a) if turned else (a, b)]
    wins, losses, rate = test.test.wins, test.test.losses, test.test.rate
    value, low, high = (1 - rate.value, 1 - rate.high, 1 - rate.low) if turned else rate[:3]
    verdict = {1: "better", 0: "not told apart", -1: "worse"}[one.direction(a, b)]
    return PairResult(
        losses if turned else wins,
        wins if turned else losses,
        test.test.ties,
        test.test.p,
        test.p_holm,
        value,
        low,
        high,
        verdict,
    )


def sheets(study: DiversityStudy, run: Path, sources: Mapping[str, str]) -> tuple[list[Sheet], list[Sheet]]:
    """The least and the most diverse sets by the main automatic measure."""
    measure = next(iter(study.means))
    scores = study.sets.scores[measure]
    order = np.argsort(np.where(np.isfinite(scores), scores, np.inf), axis=None, kind="stable")
    order = order[: int(np.isfinite(scores).sum())]
    places = [tuple(int(i) for i in np.unravel_index(flat, scores.shape)) for flat in (*order[:SHEETS], *order[::-1][:SHEETS])]
    wanted: dict[str, set[str]] = {}
    for m, p, s in places:
        ids = study.measured[m].ids[study.sets.members[m, p, s]]
        wanted.setdefault(study.sets.models[m], set()).update(ids.tolist())
    shown = {model: _pictures(run, model, ids, sources.get(model)) for model, ids in wanted.items()}
    made = []
    for m, p, s in places:
        model, ids = study.sets.models[m], study.measured[m].ids[study.sets.members[m, p, s]]
        pictures = [shown[model][one] for one in ids.tolist() if one in shown[model]]
        made.append(Sheet(model, study.sets.pairs[p].id, float(scores[m, p, s]), pictures))
    half = len(places) // 2
    return made[:half], made[half:]


def _pictures(run: Path, model: str, ids: set[str], source: str | None) -> dict[str, str]:
    """Thumbnails by id; none where the pictures are not at hand."""
    drawn = run / model / "pictures"
    place = drawn if drawn.is_dir() else source
    found: dict[str, str] = {}
    if place is None:
        return found
    try:
        for row in open_rows(place).rows():
            if row.id in ids and row.images:
                found[row.id] = thumbnail(row.images[0])
    except (ImageError, ProtoscoreError):  # moved or changed since
        pass
    return found


def shown(study: DiversityStudy) -> list[RenderableType]:
    """The ranking by each measure, and every pair by the main one, for a terminal."""
    main = study.comparisons[study.main]
    rows = []
    for measure, found in study.means.items():
        rows.append((title(measure), *(f"{number(found[m].value, digits=2)}" for m in main.models)))
    tests = [
        (a, b, f"{x.wins}-{x.losses}-{x.ties}", _with_interval(x), p_value(x.p), p_value(x.p_holm), x.verdict)
        for i, a in enumerate(main.models)
        for b in main.models[i + 1 :]
        for x in [_seen_from(main, a, b)]
    ]
    kind = "drawn scenes, not photographs" if study.manifest.get("scenes") else "pictures"
    heads = ("", "against", "won-lost-tied", "win rate", "p", "p, Holm", "")
    parts: list[RenderableType] = [
        terminal_table(("mean of sets", *main.models), rows, ("mean of sets",), kind),
        terminal_table(heads, tests, ("", "against"), f"Concepts by {title(study.main)}"),
    ]
    parts += [Text(f"{title(name)}: {' > '.join(one.models)}") for name, one in study.comparisons.items()]
    parts += [
        Text(
            f"Misled: {title(one.measure)} calls {one.preferred} more diverse than {one.over} (p {p_value(one.p)}); by judged "
            f"values it is the reverse (p {p_value(one.p_judged)}). What changes there is not what was asked for.", "yellow",
        )
        for one in study.misled
    ]  # fmt: skip
    return parts


def _with_interval(x: PairResult) -> str:
    return f"{number(x.rate, digits=2)} [{number(x.low, digits=2)}, {number(x.high, digits=2)}]"
