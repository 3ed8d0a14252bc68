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

from protoscore.asking.protocol import Protocol, load_protocol
from protoscore.catalog import load
from protoscore.folder import write_text
from protoscore.judging.injection import CONTROL, Injected, injection_rates
from protoscore.judging.stage import judge_items
from protoscore.sources.rows import Row
from training.embedded.tasks import TASKS, example, protocols
from training.embedded.tasks.base import Task

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


def near(field: str) -> Callable[[Answers], bool]:
    return lambda row: row[f"answer_{field}"] is not None and abs(row[f"answer_{field}"] - row[f"true_{field}"]) <= 1


def measures(protocol: Protocol, task: Task, rows: list[Answers]) -> dict[str, dict[str, float | None]]:
    """What is reported about a protocol: of each closed field how often it is right, and what the task adds.

    Args:
        rows: one an item, with its fields too.
    """
    found = {"valid JSON": rate(rows, lambda row: row["state"] in ("ok", "abstained"))}
    for field in protocol.decisions:
        found[f"{field}: right"] = rate(rows, right(field))
        if any(row[f"true_{field}"] in protocol.abstains.get(field, ()) for row in rows):
            withheld = [protocol.withholds(field, row[f"true_{field}"]) for row in rows]
            absent, shown = ([row for row, no in zip(rows, withheld, strict=True) if no == which] for which in (True, False))
            found[f"{field}: right where shown"] = rate(shown, right(field))
            found[f"{field}: abstains where not shown"] = rate(absent, right(field))
        elif protocol.fields[field].kind == "integer":
            found[f"{field}: at most one off"] = rate(rows, near(field))
        for column in task.by:
            for value in sorted({row[column] for row in rows}):
                found[f"{field}: right, {column} {value}"] = rate([row for row in rows if row[column] == value], right(field))
    return found | {name: rate(rows, good) for name, good in task.measures.items()}


def questions(task: str, count: int, seed: int) -> tuple[list[Row], dict[str, Answers]]:
    """Fresh items of the test side, and their right answers by item."""
    items, truth = [], {}
    for number in range(count):
        drawn = example(task, seed * 1_000_003 + number, "test")
        items.append(Row(f"{number:05d}", tuple(map(_png, drawn.images)), drawn.fields))
        truth[f"{number:05d}"] = drawn.fields | {f"true_{name}": value for name, value in drawn.answer.items()}
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
    for task, protocol in protocols().items():
        items, truth = questions(task, count, seed)
        judge_items(protocol, items, judge, out / task.replace("/", "-"))
        decisions = pq.read_table(out / task.replace("/", "-") / "decisions.parquet").to_pylist()
        report[task] = measures(protocol, TASKS[task], [truth[row["item"]] | row for row in decisions])
        for name, found in report[task].items():
            if found["n"]:
                print(f"{task:28} {name:48} {found['value']:.3f} [{found['low']:.3f}, {found['high']:.3f}] n {found['n']}")
    facts = {"questions": count, "seed": seed, "revision": judge.revision, "protocols": report}
    facts |= {"injected": injected(judge, injections, seed, out), "injected_questions": injections}
    write_text(results, json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
