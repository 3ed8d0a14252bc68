"""The example at the top of the README: a text of a finished ``make demo``, its four pictures, and two metrics' order of them.

Usage: python docs/make_front.py DEMO_FOLDER. Writes docs/front/*.png and the part of README.md between its two marks.

The text is the first one, by id, that the shipped evaluator orders rightly and that the one trained on the paper's pairs alone
orders by subject: an example of a difference that the tables below measure, and not a measurement.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from PIL import Image

ROOT = Path(__file__).parent.parent
CELLS = {
    "non_correct": "unusual subject, right", "proto_correct": "typical subject, right",
    "non_violated": "unusual subject, one detail wrong", "proto_violated": "typical subject, one detail wrong",
}  # fmt: skip
PLACES = ["first", "second", "third", "last"]
SIDE = 200  # px


def orders(run: Path) -> dict[str, dict[str, list[str]]]:
    """Triplet -> scorer -> its four cells, best first."""
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for row in pq.read_table(run / "scores.parquet").to_pylist():
        if row["cell"] in CELLS and row["score"] is not None:
            scores.setdefault(row["triplet"], {}).setdefault(row["scorer"], {})[row["cell"]] = row["score"]
    return {
        triplet: {scorer: sorted(cells, key=lambda cell: -cells[cell]) for scorer, cells in found.items() if len(cells) == 4}
        for triplet, found in sorted(scores.items())
    }


def chosen(found: dict[str, dict[str, list[str]]], learned: str) -> str:
    right, unusual = {"non_correct", "proto_correct"}, {"non_correct", "non_violated"}
    for triplet, order in found.items():
        if set(order["protoscore"][:2]) == right and set(order[learned][:2]) == unusual:
            return triplet
    sys.exit("no text of this demo shows the difference")


def table(row: dict[str, Any], order: dict[str, list[str]], learned: str) -> str:
    pictures = " | ".join(f'<img src="docs/front/{cell}.png" width="{SIDE}" alt="{name}">' for cell, name in CELLS.items())
    lines = [f'**"{row["text"]}"**', "", "| | " + " | ".join(CELLS.values()) + " |", "|---|" + "---|" * 4, f"| | {pictures} |"]
    for scorer, name in {"protoscore": "`protoscore-tiny`", learned: "trained on the paper's pairs alone"}.items():
        lines.append(f"| {name} | " + " | ".join(PLACES[order[scorer].index(cell)] for cell in CELLS) + " |")
    return "\n".join(
        [
            *lines,
            "",
            "One text of `make demo`, chosen to show the difference; [how often](#how-well-does-it-read) is measured below.",
        ]
    )


def main(demo: Path) -> None:
    found = orders(demo / "run")
    learned = next(name for name in next(iter(found.values())) if name.startswith("protoscore:"))
    triplet = chosen(found, learned)
    rows = pq.read_table(demo / "dataset" / "controls").to_pylist()
    row = next(row for row in rows if row["triplet"] == triplet)
    (ROOT / "docs" / "front").mkdir(exist_ok=True)
    for cell in CELLS:
        picture = Image.open(io.BytesIO(row[f"{cell}_image"]["bytes"])).convert("RGB")
        picture.resize((2 * SIDE, 2 * SIDE), Image.Resampling.LANCZOS).save(
            ROOT / "docs" / "front" / f"{cell}.png", optimize=True
        )
    readme = ROOT / "README.md"
    marks = re.compile(r"(<!-- front: begin -->\n).*?(<!-- front: end -->)", re.DOTALL)
    text = table(row, found[triplet], learned)
    readme.write_text(marks.sub(lambda m: f"{m[1]}{text}\n{m[2]}", readme.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
