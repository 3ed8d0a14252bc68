"""ProtoBias (arXiv 2601.04946): does a metric prefer a typical-looking wrong picture to a right but unusual one?"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from protoscore.benchmarks import Benchmark
from protoscore.benchmarks.protobias.tasks import TASKS
from protoscore.errors import ConfigError, UnknownName
from protoscore.folder import read_manifest
from protoscore.reporting.results import Results

if TYPE_CHECKING:
    from rich.console import RenderableType

    from protoscore.benchmarks.protobias.study import Study
    from protoscore.generators import Wanted
    from protoscore.sources.rows import Rows

Ties = Literal["left_out", "wrong"]
Normalisation = Literal["none", "minmax", "rank"]


class ProtoBias(Benchmark):
    """Triplets of texts, four pictures each.

    Args:
        source: a dataset of cells or of pairs, as a folder or Hub id, for ``items`` and for the pictures of the page; a
            folder of triplets for ``pictures``.
        split: of the dataset.
        renditions, seed: of the pictures.
        nuisance: whether side, size, colours and people differ among the pictures of a triplet too, not only what is told.
        human: people's choices on the pairs (see ``annotations``), for kappa as in the paper's Table 3; by default the
            dataset's own, where it has some.
        human_ties: whether a majority without a preference is left out of kappa, or counts as wrong.
        normalise: how scores of different scales are brought to one for the picture of their distributions.

    Raises:
        UnknownName: ``human_ties`` or ``normalise`` is none of what is known.
    """

    name = "protobias"
    tasks = TASKS

    def __init__(
        self, source: str | None = None, split: str = "test", renditions: int = 1, seed: int = 0, nuisance: bool = False,
        human: str | None = None, human_ties: Ties = "left_out", normalise: Normalisation = "minmax", resamples: int = 2000,
    ):  # fmt: skip
        super().__init__(resamples)
        for what, value, known in (("human_ties", human_ties, Ties), ("normalise", normalise, Normalisation)):
            if value not in get_args(known):
                raise UnknownName(what, value, get_args(known))
        self.source, self.split, self.renditions, self.seed = source, split, renditions, seed
        self.nuisance = nuisance
        self._human = Path(human) if human else None
        self._ties, self._scale = human_ties, normalise
        self._studied: tuple[Path, Study] | None = None

    def pictures(self) -> Iterator[Wanted]:
        from protoscore.benchmarks.protobias.triplets import read_triplets, wanted_pictures

        triplets = read_triplets(Path(self._needed("a folder of triplets")))
        return wanted_pictures(triplets, self.renditions, self.seed, nuisance=self.nuisance)

    def items(self) -> Rows:
        from protoscore.benchmarks.protobias.cells import CellRows

        return CellRows(self._needed("a dataset"), self.split)

    def evaluate(self, run: Path) -> Results:
        """The five quantities of every scorer; the rest of the study is in the details."""
        if read_manifest(run)["stage"] == "judge":
            return super().evaluate(run)
        from protoscore.benchmarks.protobias.study import study_results

        study = self._study(run)
        return study_results(study)

    def page(self, results: Results, run: Path) -> str:
        if not results.tasks:
            return super().page(results, run)
        from protoscore.benchmarks.protobias.report import page

        return page(self._study(run), run, self.source)

    def shown(self, results: Results) -> list[RenderableType]:
        if self._studied is None:
            return super().shown(results)
        from protoscore.benchmarks.protobias.report import shown

        run, study = self._studied
        return shown(study, run)

    def _study(self, run: Path) -> Study:
        """The study of a run, made once: it resamples."""
        from protoscore.benchmarks.protobias.annotations import annotations_of, read_human
        from protoscore.benchmarks.protobias.study import make_study
        from protoscore.benchmarks.protobias.tables import read_scores
        from protoscore.reporting.leaderboard import read_seconds

        if self._studied is None or self._studied[0] != run:
            tables = read_scores(run)
            annotations = self._human or annotations_of(self.source)
            people = read_human(annotations, tables[0].ids) if annotations else None
            study = make_study(tables, people, self._ties, read_seconds(run), self._scale, self.resamples)
            self._studied = run, study
        return self._studied[1]

    def _needed(self, what: str) -> str:
        if not self.source:
            raise ConfigError(f"protobias needs {what}: give its folder, or a Hub id")
        return self.source


def recognises(columns: Collection[str]) -> bool:
    """Whether a dataset with these columns holds pairs or cells of ProtoBias."""
    return {"text", "domain", "knob"} <= set(columns) and bool({"correct_image", "non_correct_image"} & set(columns))


def create(source: str | None = None, **options: Any) -> ProtoBias:
    return ProtoBias(source, **options)
