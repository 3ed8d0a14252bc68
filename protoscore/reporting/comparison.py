"""Two runs over the same prompts (two checkpoints, two LoRAs): what changed for each metric, and could it be chance?

The unit is the prompt: pictures of one prompt are averaged first, and only prompts with a score in both runs count. The p-value
comes from flipping signs of per-prompt differences, the interval from a bootstrap over prompts widened for few of them; Holm's
correction goes over the metrics. A verdict other than "no detectable difference" needs an adjusted p below 0.05.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from scipy.stats import norm

import protoscore
from protoscore.errors import DatasetError
from protoscore.figures import p_value
from protoscore.folder import manifest_hash, read_manifest, write_text
from protoscore.reporting.results import plain
from protoscore.reporting.tables import PromptTable, read_prompts
from protoscore.schema import Status
from protoscore.stats.paired import UnitsNeeded, holm, units_needed
from protoscore.stats.resampling import Estimate
from protoscore.stats.small_samples import mean_of_units, sign_flip

LEVEL = 0.05
POWER = 0.8
FEW = 6  # with five prompts the smallest p of a sign-flip test is 2 / 2^5, above 0.05
SHOWN = 5  # prompts that changed most, each way

Direction = Literal["better", "worse", "no detectable difference", "nothing to compare"]
VERDICTS = {  # in the order of telling
    "worse": "B is worse on",
    "better": "B is better on",
    "no detectable difference": "no detectable difference on",
    "nothing to compare": "nothing to compare on",
}


class PromptChange(NamedTuple):
    """A prompt with its mean score in both runs, and the name of its first picture in each."""

    prompt: str
    a: float
    b: float
    images: tuple[str, str]


class MetricChange(NamedTuple):
    """One metric: how B differs from A over the prompts that both runs scored."""

    scorer: str
    a: float  # mean over common prompts
    b: float
    estimate: Estimate  # of B minus A; n: prompts
    spread: float  # standard deviation of A's prompts: the yardstick that metrics of different scales share
    p: float
    p_holm: float
    wins: int  # prompts where B is higher
    losses: int
    units: UnitsNeeded  # prompts that would detect a difference as large as the one seen: 80 % power, level split over metrics
    detectable: float  # the smallest true difference that these prompts find, likewise
    unscored: list[str]  # common prompts without a score in one run or both
    states: dict[str, dict[str, int]]  # how each run's rows ended
    most: list[PromptChange]  # prompts that changed most, downwards first

    @property
    def verdict(self) -> Direction:
        if not self.estimate.n:
            return "nothing to compare"
        if not self.p_holm < LEVEL:
            return "no detectable difference"
        return "better" if self.estimate.value > 0 else "worse"

    @property
    def share(self) -> str:
        """On how many prompts B is higher, of those that differ."""
        return f"{self.wins:,} of {self.wins + self.losses:,}"

    @property
    def sentence(self) -> str:
        """The result for people."""
        e, name = self.estimate, self.scorer
        if not e.n:
            return f"{name}: no prompt has a score in both runs."
        size = f"{e.value:+.4g} [{e.low:+.4g}, {e.high:+.4g}] over {e.n:,} prompts"
        if self.verdict != "no detectable difference":
            return f"B is {self.verdict} on {name}: {size}."
        if not self.wins and not self.losses:
            return f"No detectable difference on {name}: every one of {e.n:,} prompts has the same score in both runs."
        more = self.units.more
        if e.n < FEW:
            need = f"Fewer than {FEW} prompts can show nothing, however large the difference; give more."
        elif more == 0:
            need = "A few more prompts could show it."
        elif more > 1e6:
            need = "More than a million prompts would be needed to detect a difference as small as this one."
        else:
            need = f"If the true difference is this large, about {more:,.0f} more prompts would show it (80 % power)."
        return f"No detectable difference on {name}: {size}. {need}"


class Comparison(NamedTuple):
    """Every metric that both runs have, and what could not be compared."""

    differences: list[MetricChange]  # worse ones first
    prompts: int  # in both runs
    only_a: list[str]  # prompts
    only_b: list[str]
    left_out: list[str]  # metrics that are not in both runs, or not in the same form, with the reason
    runs: tuple[str, str]  # hashes of the manifests

    @property
    def headline(self) -> str:
        parts = []
        for verdict, words in VERDICTS.items():
            if some := [d.scorer for d in self.differences if d.verdict == verdict]:
                parts.append(f"{words} {' and '.join(some) if len(some) < 3 else f'{len(some)} metrics'}")
        return f"{parts[0][0].upper()}{', '.join(parts)[1:]}."

    def notes(self) -> list[str]:
        """What is not in the comparison, and why."""
        notes = [f"Not compared: {reason}." for reason in self.left_out]
        for side, prompts in (("A", self.only_a), ("B", self.only_b)):
            if prompts:
                notes.append(f"{len(prompts):,} prompt(s) are in {side} only and left out: {_some(prompts)}.")
        for d in self.differences:
            if d.unscored:
                notes.append(
                    f"{d.scorer}: {len(d.unscored):,} prompt(s) without a score in one run left out: {_some(d.unscored)}."
                )
            for side, states in d.states.items():
                failed = ", ".join(f"{n:,} {state}" for state, n in states.items() if state != Status.OK)
                if failed:
                    notes.append(f"{d.scorer}: {side} has pictures without a score: {failed}.")
        return notes

    def worse(self) -> list[str]:
        """Metrics on which B is worse."""
        return [d.scorer for d in self.differences if d.verdict == "worse"]

    def below(self, delta: float) -> list[str]:
        """Metrics whose whole interval of B minus A lies below ``delta``."""
        return [d.scorer for d in self.differences if d.estimate.n and d.estimate.high < delta]


def compare(run_a: Path, run_b: Path, resamples: int = 10_000, seed: int = 0) -> Comparison:
    """Compare run B with run A, prompt by prompt.

    Raises:
        DatasetError: a folder is not a run over own pictures, or the two have no prompt or no metric in common.
    """
    a, b = ({table.scorer: table for table in read_prompts(run)} for run in (run_a, run_b))
    left_out = _incomparable(run_a, run_b)
    common = [name for name in a if name in b and not any(reason.startswith(f"{name}: ") for reason in left_out)]
    if not common:
        raise DatasetError(f"the runs have no metric in common: {'; '.join(left_out)}")
    prompts_a, prompts_b = ({p for t in tables.values() for p in t.prompts.tolist()} for tables in (a, b))
    if not prompts_a & prompts_b:
        raise DatasetError(f"{run_a} and {run_b} have no prompt in common; prompts are matched by their text")
    differences = [_difference(a[name], b[name], resamples, seed, LEVEL / len(common)) for name in common]
    adjusted = holm([d.p for d in differences])
    differences = [d._replace(p_holm=float(p)) for d, p in zip(differences, adjusted, strict=True)]
    return Comparison(
        sorted(differences, key=lambda d: list(VERDICTS).index(d.verdict)),
        len(prompts_a & prompts_b), sorted(prompts_a - prompts_b), sorted(prompts_b - prompts_a), left_out,
        (manifest_hash(run_a), manifest_hash(run_b)),
    )  # fmt: skip


def _incomparable(run_a: Path, run_b: Path) -> list[str]:
    """Metrics that only one run has, or that are not the same in both."""
    a, b = ({s["name"]: s for s in read_manifest(run, "score")["parameters"]["scorers"]} for run in (run_a, run_b))
    reasons = [f"{name}: only in {'A' if name in a else 'B'}" for name in [*a, *b] if (name in a) != (name in b)]
    for name in a.keys() & b.keys():
        for key in ("revision", "parameters"):
            if a[name][key] != b[name][key]:
                reasons.append(f"{name}: its {key} in A is {a[name][key]} and in B {b[name][key]}")
                break
    return sorted(reasons)


def _difference(a: PromptTable, b: PromptTable, resamples: int, seed: int, level: float) -> MetricChange:
    means_a, means_b = (dict(zip(*(part.tolist() for part in table.by_prompt()), strict=True)) for table in (a, b))
    common = sorted(means_a.keys() & means_b.keys())
    both = np.array([[means_a[p], means_b[p]] for p in common], float).reshape(-1, 2)
    scored = np.isfinite(both).all(1)
    x, y = both[scored].T
    gaps = y - x
    spread = float(x.std(ddof=1)) if len(x) > 1 else float("nan")
    names = np.array(common, dtype=object)
    order = np.argsort(gaps, kind="stable")
    shown = [i for i in [*order[:SHOWN], *order[-SHOWN:][::-1]] if gaps[i] != 0]
    first = [dict(zip(table.prompts[::-1].tolist(), table.images[::-1].tolist(), strict=True)) for table in (a, b)]
    changed = [(names[scored][i], float(x[i]), float(y[i])) for i in dict.fromkeys(shown)]
    most = [PromptChange(*change, (first[0][change[0]], first[1][change[0]])) for change in changed]
    error = gaps.std(ddof=1) / math.sqrt(len(gaps)) if len(gaps) > 1 else float("nan")
    wins, losses = int((gaps > 0).sum()), int((gaps < 0).sum())
    detectable = float((norm.ppf(1 - level / 2) + norm.ppf(POWER)) * error)
    return MetricChange(
        a.scorer, _mean(x), _mean(y), mean_of_units(both[:, 1] - both[:, 0], resamples, seed),
        spread, sign_flip(gaps, resamples, seed),
        float("nan"), wins, losses, units_needed(y, x, level=level, power=POWER), detectable, names[~scored].tolist(),
        {"A": a.states, "B": b.states}, most,
    )  # fmt: skip


def _mean(values: NDArray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _some(prompts: list[str]) -> str:
    """The first three, cut to a length that fits a line."""
    short = [repr(p if len(p) <= 40 else f"{p[:39]}…") for p in prompts[:3]]
    return ", ".join(short) + (" ..." if len(prompts) > 3 else "")


def as_json(found: Comparison) -> dict[str, Any]:
    """Everything that was found, for machines; infinite and undefined numbers are null."""
    rows = [d._asdict() | {"verdict": d.verdict, "sentence": d.sentence} for d in found.differences]
    return plain({"headline": found.headline} | found._asdict() | {"differences": rows})


def print_comparison(found: Comparison) -> None:
    """The answer first, then a table, then what was left out."""
    console = Console()
    console.print(Text(found.headline, style="bold"))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading in ("metric", "A", "B", "B - A", "95 % interval", "p (Holm)", "B wins"):
        table.add_column(heading, justify="left" if heading == "metric" else "right")
    tones = {"better": "green", "worse": "red"}
    for d in found.differences:
        e = d.estimate
        numbers = (f"{d.a:.4g}", f"{d.b:.4g}", f"{e.value:+.4g}", f"{e.low:+.3g} {e.high:+.3g}", p_value(d.p_holm), d.share)
        table.add_row(Text(d.scorer), *numbers, style=tones.get(d.verdict, ""))
    console.print(table)
    for line in [*(d.sentence for d in found.differences), *found.notes()]:
        console.print(Text(f"- {line}"))


def write_comparison(found: Comparison, run_a: Path, run_b: Path, page: Path) -> None:
    """Write the HTML page, and the numbers as JSON beside it."""
    from protoscore.reporting.pages import environment, pictures_of

    changes = [change for d in found.differences for change in d.most]
    pictures = [pictures_of(run, (change.images[side] for change in changes)) for side, run in enumerate((run_a, run_b))]
    manifests = [read_manifest(run) for run in (run_a, run_b)]
    names = {"A": run_a.name or str(run_a), "B": run_b.name or str(run_b)}
    html = (
        environment()
        .get_template("comparison.html.jinja")
        .render(
            found=found, names=names, pictures=pictures, manifests=manifests, p_value=p_value, version=protoscore.__version__
        )
    )
    write_text(page, html)
    write_text(page.with_suffix(".json"), json.dumps(as_json(found), indent=1, ensure_ascii=False) + "\n")
