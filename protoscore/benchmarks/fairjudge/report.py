"""The page of FairJudge's tables, and what a terminal shows of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

import protoscore
from protoscore.benchmarks.fairjudge.study import AttributeStudy, FairStudy
from protoscore.figures import number, p_value
from protoscore.folder import read_manifest
from protoscore.reporting.pages import environment
from protoscore.reporting.terminal import TerminalTable, terminal_table

if TYPE_CHECKING:
    from rich.console import RenderableType

MAIN = {
    "accuracy": "accuracy",
    "claim_precision": "right of claims",
    "claim_coverage": "claims",
    "macro_f1_seen": "macro-F1, classes seen",
    "macro_f1_reference": "of the references",
    "macro_f1_all": "of the whole set",
    "accuracy_worst_case": "accuracy at worst",
}
WITHHELD = {
    "unsupported_claims": "claims where nothing can be told",
    "over_abstention": "withheld where it can be told",
    "abstention_precision": "abstention: precision",
    "abstention_recall": "abstention: recall",
}
TRUST = {
    "aurc": "area under risk-coverage",
    "calibration_error": "calibration error",
    "overconfidence": "confidence minus accuracy",
    "brier": "Brier score",
}
SCENES = "drawn scenes, not photographs"


def page(study: FairStudy, run: Path, resamples: int) -> str:
    """A self-contained HTML page."""
    env = environment(Path(__file__).parent)
    env.filters["p"] = p_value
    return env.get_template("report.html.jinja").render(
        study=study, manifest=read_manifest(run), version=protoscore.__version__, resamples=resamples,
        main=MAIN, withheld=WITHHELD, trust=TRUST,
    )  # fmt: skip


def shown(study: FairStudy, run: Path) -> list[RenderableType]:
    """Each attribute with its floors, for a terminal."""
    kind = SCENES if read_manifest(run).get("scenes") else "pictures"
    parts: list[RenderableType] = [_attribute(name, one, kind) for name, one in study.attributes.items()]
    if study.scales:
        rows = [
            (f"{judge}: {name}", f"{e:+}", f"{e.n:,}", f"{e.left_out:,}")
            for name, one in study.scales.items() for judge, e in one.judges.items()
        ]  # fmt: skip
        parts.append(terminal_table(("", "mean, -1 to 1", "n", "left out"), rows, ("",), f"Grades on {kind}, 95 % intervals"))
    if study.untold:
        names = ", ".join(study.untold)
        parts.append(Text(f"No column says what is true of {names}; name it with --truth FIELD=COLUMN."))
    return parts


def _attribute(name: str, one: AttributeStudy, kind: str) -> TerminalTable:
    rows: list[list[Text]] = []
    for floor, some in ((False, one.judges), (True, one.floors)):
        for who, scores in some.items():
            q = scores.quantities
            cells = [who if len(who) < 28 else f"{who[:26]}…", f"{q['accuracy']:.2}"]
            cells += [number(q[key].value, digits=2) for key in ("claim_coverage", "claim_precision", "macro_f1_reference")]
            cells += [f"{q['accuracy'].n:,}", f"{q['accuracy'].left_out:,}"]
            rows.append([Text(cell, style="dim" if floor else "") for cell in cells])
    headings = ("", "accuracy", "claimed", "right", "F1", "n", "out")
    title = f"{name} on {kind}: accuracy, share claimed, right of claims, macro-F1, left out; then what needs no look"
    return terminal_table(headings, rows, ("",), title)
