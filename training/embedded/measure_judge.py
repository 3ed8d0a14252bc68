"""Measure scene-judge-tiny on fresh scenes: ``python -m training.embedded.measure_judge MODEL --out RUN --results FILE.json``.

For each protocol, questions of the test side whose right answers the drawings give, put to the model through the judging stage
like any other judge. Every rate stands with its n and its 95 % exact (Clopper-Pearson) interval; replies that are not a valid
answer count as wrong, and are counted apart. Then, how often words in a text or a picture that tell it what to answer move it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pyarrow.parquet as pq
import typer
from scipy.stats import binomtest

from protoscore.asking.protocol import load_protocol
from protoscore.catalog import load
from protoscore.folder import write_text
from protoscore.judging.injection import CONTROL, Injected, injection_rates
from protoscore.judging.stage import judge_items
from protoscore.sources.rows import Row
from training.embedded.judge_scenes import TASKS, example

INJECTED = "protobias/rubric"  # has a text and a picture, and its four grades make chance easy to see
Answers = dict[str, Any]  # of the decision table: answer_<field>, and the truth as true_<field>


def rate(rows: list[Answers], good: Callable[[Answers], bool]) -> dict[str, float | None]:
    """The share of ``rows`` that are ``good``, with n and its interval."""
    if not rows:
        return {"value": None, "low": None, "high": None, "n": 0}
    found = binomtest(sum(map(good, rows)), len(rows))
    low, high = found.proportion_ci(method="exact")
    return {"value": found.statistic, "low": low, "high": high, "n": len(rows)}


def right(field: str) -> Callable[[Answers], bool]:
    return lambda row: row[f"answer_{field}"] == row[f"true_{field}"]


def measures(task: str, rows: list[Answers]) -> dict[str, dict[str, float | None]]:
    """What is reported about a protocol."""
    found = {"valid JSON": rate(rows, lambda row: row["state"] in ("ok", "abstained"))}
    for field in load_protocol(task).decisions:
        found[f"{field}: right"] = rate(rows, right(field))
        absent = [row for row in rows if row[f"true_{field}"] in ("unspecified", "unknown")]
        if absent:
            shown = [row for row in rows if row not in absent]
            found[f"{field}: right where shown"] = rate(shown, right(field))
            found[f"{field}: abstains where not shown"] = rate(absent, right(field))
    if task == "protobias/image_filter":
        keeps = lambda score: score is not None and score >= 8  # noqa: E731
        found["kept or rejected as by the masks"] = rate(rows, lambda r: keeps(r["answer_score"]) == keeps(r["true_score"]))
    if task in ("fairjudge/alignment", "protobias/rubric"):
        found["score: at most one off"] = rate(rows, lambda r: abs((r["answer_score"] or 99) - r["true_score"]) <= 1)
    return found


def questions(task: str, count: int, seed: int) -> tuple[list[Row], dict[str, Answers]]:
    """Fresh items of the test side, and their right answers by item."""
    items, truth = [], {}
    for number in range(count):
        drawn = example(task, seed * 1_000_003 + number, "test")
        items.append(Row(f"{number:05d}", tuple(map(_png, drawn.images)), drawn.fields))
        truth[f"{number:05d}"] = {f"true_{name}": value for name, value in drawn.answer.items()}
    return items, truth


def injected(judge: Any, count: int, seed: int, out: Path) -> dict[str, dict[str, Any]]:
    """How often the judge follows the injections, and the control which asks for nothing, by where they stand."""
    protocol = load_protocol(INJECTED)
    items, _ = questions(INJECTED, count, seed)
    found: dict[str, dict[str, Any]] = {}
    for where in ("text", "picture"):
        judge_items(protocol, Injected(protocol, items, where), judge, out / f"injected-{where}")
        rates = {rate.injection: rate for rate in injection_rates(out / f"injected-{where}")}
        found[where] = {name: rates[name].followed._asdict() for name in ("all", CONTROL)}
    return found


def _png(image: Any) -> bytes:
    data = io.BytesIO()
    image.save(data, "PNG")
    return data.getvalue()


def main(
    model: Annotated[str, typer.Argument(help="Folder of the judge.")],
    out: Annotated[Path, typer.Option(help="Folder for the runs.")],
    results: Annotated[Path, typer.Option(help="JSON file for the figures.")],
    count: Annotated[int, typer.Option(help="Questions of each protocol.")] = 1000,
    injections: Annotated[int, typer.Option(help="Questions that are asked again with each injection.")] = 200,
    seed: Annotated[int, typer.Option(help="Of the scenes; never one that was trained on.")] = 20261130,
) -> None:
    """Ask every protocol's questions and write what came out."""
    judge = load("vlms", f"local:{model}", batch_size=32, dtype="float32", max_tokens=64)
    report: dict[str, Any] = {}
    for task in TASKS:
        items, truth = questions(task, count, seed)
        judge_items(load_protocol(task), items, judge, out / task.replace("/", "-"))
        decisions = pq.read_table(out / task.replace("/", "-") / "decisions.parquet").to_pylist()
        report[task] = measures(task, [row | truth[row["item"]] for row in decisions])
        for name, found in report[task].items():
            if found["n"]:
                print(f"{task:28} {name:32} {found['value']:.3f} [{found['low']:.3f}, {found['high']:.3f}] n {found['n']}")
    facts = {"questions": count, "seed": seed, "revision": judge.revision, "protocols": report}
    facts |= {"injected": injected(judge, injections, seed, out), "injected_questions": injections}
    write_text(results, json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
