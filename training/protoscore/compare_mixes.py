"""The table of ``training/README.md`` that compares mixes of pairs, made from results files; no number in it is typed.

``add`` keeps what a measured run found in ``results/NAME.json``; ``table`` writes the table from those files::

    protoscore score FRESH_TEST -s protoscore:MODEL --out SCORES && protoscore report SCORES
    python -m training.protoscore.compare_mixes add NAME --report SCORES/results.json --model MODEL
    python -m training.protoscore.compare_mixes table

``compare_mixes.sh`` does all of it, training included.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import yaml

from protoscore.errors import ConfigError, UnknownName
from protoscore.folder import write_text
from training.protoscore.pairs import KINDS, PairArguments
from training.protoscore.run_card import RECORD
from training.recipes import recipe_path
from training.script import run

HERE = Path(__file__).parent
RESULTS = HERE / "results"
README = HERE.parent / "README.md"
BEGIN, END = "<!-- mixes: begin -->", "<!-- mixes: end -->"
QUANTITIES = ("incongruent", "congruent", "sensitivity", "preference", "gap")


def add(name: str, report: Path, model: Path | None, recipe: str | None, overrides: list[str], test_set: str) -> Path:
    """Keep one measured run.

    Raises:
        ConfigError: the report holds no ProtoScore, or nothing says how the model was trained.
    """
    found = json.loads(report.read_text(encoding="utf-8"))
    scorers = [scorer for scorer in found["estimates"] if scorer.split(":")[0] == "protoscore"]
    if len(scorers) != 1:
        raise ConfigError(f"{report} holds {len(scorers)} ProtoScore models ({', '.join(scorers)}); score one at a time")
    groups = found["estimates"][scorers[0]]
    details = {key: found["details"][key] for key in ("triplets", "resamples")}
    result = {
        "name": name, "test_set": test_set, **details, "run": found["run"],
        "pairs": _pairs(model, recipe, overrides), "groups": groups,
    }  # fmt: skip
    path = RESULTS / f"{name}.json"
    write_text(path, json.dumps(result, indent=1, sort_keys=True) + "\n")
    return path


def _pairs(model: Path | None, recipe: str | None, overrides: list[str]) -> dict[str, Any]:
    """Which pairs a model was trained on: its own record, or a recipe and what was overridden on the command line."""
    if recipe is None:
        if model is None or not (model / RECORD).is_file():
            raise ConfigError(f"{model} holds no {RECORD}; name the --recipe it was trained with, and what was --set")
        return json.loads((model / RECORD).read_text(encoding="utf-8"))["pairs"]
    path = recipe_path(recipe, HERE / "recipes")
    known = {field.name for field in fields(PairArguments)}
    values = {key: value for key, value in yaml.safe_load(path.read_text(encoding="utf-8")).items() if key in known}
    for override in overrides:
        key, _, value = override.partition("=")
        if key not in known:
            raise UnknownName("setting of the pairs", key, known)
        values[key] = yaml.safe_load(value)
    return asdict(PairArguments(**values))


def table(results: list[dict[str, Any]]) -> str:
    """One line a run, grouped by test set; every figure with its interval, every line with its number of triplets."""
    if not results:
        return "No run is recorded yet.\n"
    lines = []
    for test_set in dict.fromkeys(result["test_set"] for result in results):
        mine = [result for result in results if result["test_set"] == test_set]
        lines += [
            f"{test_set[0].upper()}{test_set[1:]}, 95 % intervals:", "",
            "| run | incongruent / congruent / same subject / foils | pairs | test triplets | " + " | ".join(QUANTITIES) + " |",
            "|---" * (4 + len(QUANTITIES)) + "|",
        ]  # fmt: skip
        for result in sorted(mine, key=lambda r: r["name"]):
            pairs, found = result["pairs"], result["groups"]["all"]
            shares = " / ".join(f"{pairs.get(kind, 0):.2f}" for kind in KINDS)  # older runs knew no foils
            cells = [f"{found[q]['value']:.3f} [{found[q]['low']:.3f}, {found[q]['high']:.3f}]" for q in QUANTITIES]
            lines.append(f"| {result['name']} | {shares} | {pairs['pairs']:,} | {result['triplets']:,} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def write_table(readme: Path = README, results: Path = RESULTS) -> None:
    """Put the table between its marks."""
    text = readme.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ConfigError(f"{readme} needs the lines {BEGIN} and {END} once each; the table goes between them")
    loaded = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(results.glob("*.json"))]
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    write_text(readme, f"{before}{BEGIN}\n\n{table(loaded)}\n{END}{after}")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    adding = commands.add_parser("add", help="keep a measured run")
    adding.add_argument("name", help="what the table calls the run")
    adding.add_argument("--report", type=Path, required=True, help="results.json of 'protoscore report'")
    adding.add_argument("--model", type=Path, help=f"the trained model's folder, with its {RECORD}")
    adding.add_argument("--recipe", help="where there is no such file: the recipe it was trained with")
    adding.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="and what the command line overrode")
    adding.add_argument("--test-set", default="fresh test triplets", help="which triplets were scored")
    commands.add_parser("table", help="write the table of training/README.md")
    options = parser.parse_args(arguments)
    if options.command == "add":
        print(add(options.name, options.report, options.model, options.recipe, options.set, options.test_set))
    else:
        write_table()


if __name__ == "__main__":
    run(main)
