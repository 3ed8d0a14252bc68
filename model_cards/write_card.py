"""Fill a model card from a results file: ``python -m model_cards.write_card TEMPLATE RESULTS MODEL_FOLDER``.

Every number of a card comes from the results file that is named in it, or from a recipe of ``training/``; a field without a
value is an error.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

import protoscore
from protoscore.benchmarks.protobias.schema import DOMAINS, KNOBS
from protoscore.errors import ConfigError
from protoscore.folder import write_text
from protoscore.vlms.local import read_taught

RECIPES = Path(__file__).resolve().parent.parent / "training"


def estimate(values: dict) -> str:
    """``0.985 [0.978, 0.991]``."""
    return f"{values['value']:.3f} [{values['low']:.3f}, {values['high']:.3f}]"


def write_card(template: Path, results: Path, folder: Path) -> None:
    """Write ``folder/README.md``.

    Raises:
        ConfigError: the results are neither a report with the scorer ``protoscore`` nor a judge's measures.
    """
    facts = _facts(json.loads(results.read_text(encoding="utf-8")), results)
    environment = Environment(
        loader=FileSystemLoader(template.parent), undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True
    )
    environment.filters["estimate"] = estimate
    weights = sum(path.stat().st_size for path in folder.iterdir() if path.name != "README.md")
    recipes = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in RECIPES.glob("*/recipes/*.yaml")}
    card = environment.get_template(template.name).render(
        **facts, recipes=recipes, taught=read_taught(folder), megabytes=f"{weights / 1e6:.1f}", results=results.name,
        version=protoscore.__version__,
    )  # fmt: skip
    write_text(folder / "README.md", card)


def _facts(report: dict, results: Path) -> dict:
    """What a template may use, by the kind of results."""
    if "protocols" in report:
        return report
    if "protoscore" not in report.get("estimates", {}):
        raise ConfigError(f"{results} has no results of 'protoscore' and none of a judge; write them as the Makefile does")
    groups, details = report["estimates"]["protoscore"], report["details"]
    free = results.with_name(results.name.replace(".results.json", ".nuisance.results.json"))
    named = {"free": json.loads(free.read_text(encoding="utf-8"))} if free.is_file() else {}
    named |= {"domains": [d for d in DOMAINS if d in groups], "knobs": [k for k in KNOBS if k in groups]}
    return {"groups": groups, "triplets": details["triplets"], "resamples": details["resamples"], **named}


if __name__ == "__main__":
    write_card(*map(Path, sys.argv[1:4]))
