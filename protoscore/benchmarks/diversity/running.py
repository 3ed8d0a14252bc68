"""From models to a folder that can be reported: pictures, vectors, judged values, scores; each stage resumes by itself."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from protoscore import catalog
from protoscore.asking.protocol import load_protocol
from protoscore.benchmarks.diversity.models import KnownRows, Model, wanted_of
from protoscore.benchmarks.diversity.pairs import ConceptPair, read_pairs, write_pairs
from protoscore.benchmarks.diversity.set_scores import Drawing
from protoscore.embedding import embed_rows
from protoscore.errors import ConfigError
from protoscore.folder import claimed, read_manifest, write_manifest
from protoscore.images import make_pictures
from protoscore.judging.stage import judge_items
from protoscore.schema import content_id
from protoscore.scoring.stage import load_scorers, score_rows
from protoscore.sources import open_rows

STAGE, PROTOCOL = "diversity", "diversity/attribute_value"


class Measures(NamedTuple):
    """With what the pictures are measured; as typed."""

    embedders: tuple[str, ...] = ("scene",)
    judge: str | None = None
    scorer: str | None = None  # of noise: a picture counts from ``keep_from`` on
    keep_from: float | None = None

    def check(self) -> None:
        """Refuse what measures nothing.

        Raises:
            ConfigError: neither an embedder nor a judge is named, or a scorer without its threshold.
        """
        if not self.embedders and not self.judge:
            raise ConfigError("diversity is measured by vectors or by judged values: name an --embedder or a --judge")
        if (self.scorer is None) != (self.keep_from is None):
            raise ConfigError("a picture counts from a score on: give both --scorer and --keep-from")


class Plan(NamedTuple):
    """What a run would do, before it does anything."""

    pairs: int
    models: int
    pictures: int  # to be drawn
    embedded: int  # vectors
    questions: int
    comparisons: int  # side by side


def plan(models: Sequence[Model], pairs: Sequence[ConceptPair], pictures: int, how: Drawing, measures: Measures) -> Plan:
    """Count the work; pictures of folders are counted as if they had as many for each pair."""
    drawn, all_ = sum(not model.is_folder for model in models), len(models) * len(pairs) * pictures
    couples = len(models) * (len(models) - 1) // 2
    return Plan(
        len(pairs), len(models), drawn * len(pairs) * pictures, all_ * len(measures.embedders),
        all_ if measures.judge else 0, couples * len(pairs) * how.number,
    )  # fmt: skip


def run(
    models: Sequence[Model], pairs_of: str, out: Path, pictures: int, how: Drawing, measures: Measures, seed: int = 0
) -> None:
    """Make and measure everything into ``out``; the same call goes on where it stopped.

    Raises:
        ConfigError: a component or a choice is none.
        DatasetError: a folder has no picture of a known concept, or ``out`` holds other work.
    """
    measures.check()
    pairs = read_pairs(pairs_of)
    parameters = _parameters(models, pairs_of, pairs, pictures, how, measures, seed)
    with claimed(out, STAGE, parameters):
        write_pairs(out / "pairs.csv", pairs)
        rows = {model.name: _rows(model, pairs, out / model.name, pictures, seed) for model in models}
        for spec in measures.embedders:
            embedder = catalog.load("embedders", spec)
            for name, some in rows.items():
                counts = embed_rows(some, embedder, out / name / _folder("embedded", spec))
                if counts.not_ok:
                    print(f"{name}: {counts.not_ok} picture(s) without a vector of {spec} ({counts.reason})", file=sys.stderr)
        if measures.judge:
            judge = catalog.load("vlms", measures.judge)
            for name, some in rows.items():
                judge_items(load_protocol(PROTOCOL), some, judge, out / name / "judged")
        if measures.scorer:
            for name, some in rows.items():
                score_rows(some, list(load_scorers([measures.scorer]).values()), out / name / "scored")
        scenes = {some.scenes for some in rows.values()}
        strangers = {name: some.strangers for name, some in rows.items()}
        write_manifest(out, STAGE, parameters, scenes=scenes.pop() if len(scenes) == 1 else None, strangers=strangers)


def _parameters(
    models: Sequence[Model], pairs_of: str, pairs: Sequence[ConceptPair], pictures: int, how: Drawing, measures: Measures,
    seed: int,
) -> dict[str, Any]:  # fmt: skip
    named = {model.name: Path(model.spec).name if model.is_folder else model.spec for model in models}
    return {
        "benchmark": "diversity", "list": Path(pairs_of).name, "pairs": content_id(*pairs, length=24), "models": named,
        "pictures": pictures, "seed": seed, "sets": how._asdict(),
        "embedders": list(measures.embedders), "judge": measures.judge,
        "scorer": measures.scorer, "keep_from": measures.keep_from,
    }  # fmt: skip


def _rows(model: Model, pairs: Sequence[ConceptPair], folder: Path, pictures: int, seed: int) -> KnownRows:
    if model.is_folder:
        return KnownRows(open_rows(model.spec), pairs)
    place = folder / "pictures"
    wanted = wanted_of(pairs, model.name, pictures, seed)
    chosen = {
        "benchmark": "diversity",
        "pairs": content_id(*pairs, length=24),
        "pictures": pictures,
        "model": model.name,
        "seed": seed,
    }
    make_pictures(wanted, catalog.load("generators", model.spec), place, chosen)
    return KnownRows(open_rows(place), pairs)


def _folder(kind: str, spec: str) -> str:
    """The name of a component's folder."""
    return f"{kind}-{''.join(c if c.isalnum() or c in '._-' else '-' for c in spec)}"


def folders_of(run_: Path) -> tuple[dict[str, dict[str, Path]], dict[str, Path], dict[str, tuple[Path, float]]]:
    """By model: embedder -> folder of its vectors; the judged values; the scores and their threshold."""
    parameters = read_manifest(run_, STAGE)["parameters"]
    models = list(parameters["models"])
    vectors = {name: {spec: run_ / name / _folder("embedded", spec) for spec in parameters["embedders"]} for name in models}
    judged = {name: run_ / name / "judged" for name in models} if parameters["judge"] else {}
    scored = {name: (run_ / name / "scored", parameters["keep_from"]) for name in models} if parameters["scorer"] else {}
    return vectors, judged, scored
