"""FairJudge (arXiv 2510.22827): social attributes, professions and alignment, judged with the right to abstain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from protoscore.benchmarks import Benchmark
from protoscore.errors import ConfigError, UnknownName
from protoscore.folder import read_manifest
from protoscore.reporting.results import Results, Task

if TYPE_CHECKING:
    from rich.console import RenderableType

    from protoscore.benchmarks.fairjudge.study import FairStudy
    from protoscore.sources.rows import Rows

Kind = Literal["", "depicted", "intended"]


class FairJudge(Benchmark):
    """Verdicts of FairJudge's protocols beside what the pictures show.

    Args:
        source: a dataset whose columns say what its pictures show; what is judged.
        split: of the dataset.
        against: what an answer is right by: ``depicted`` (what this picture can show) or ``intended`` (its prompt); by default
            the first that the items have, else the plain column.
        labels: score in this set of labels (``short``, ``appendix``, ``diversify``, ``idenprof``), whatever was asked.
        groups: attributes to group by, with commas; by default all that the items state.
        cluster: column of what was sampled independently; by default the counterfactual set, else each picture.
        min_group: pictures that a group needs to be tested, and to be called the worst.
        human: a table of what people said about the same pictures (columns ``item``, ``annotator``, and the fields).
        beside: further runs over the same pictures, with commas, for the same tables and paired differences.

    Raises:
        UnknownName: ``against`` is neither.
    """

    name = "fairjudge"
    tasks = (Task(id="accuracy"), Task(id="score"))

    def __init__(
        self, source: str | None = None, split: str = "test", against: Kind = "", labels: str = "", groups: str = "",
        cluster: str = "", min_group: int = 10, human: str | None = None, beside: str = "", resamples: int = 2000,
    ):  # fmt: skip
        super().__init__(resamples)
        if against not in get_args(Kind):
            raise UnknownName("reference", against, ("depicted", "intended"))
        if min_group < 1:
            raise ConfigError(f"min_group is a number of pictures from 1, not {min_group}")
        self.source, self.split, self._against, self._labels = source, split, against, labels
        self._groups, self._beside = (
            tuple(part.strip() for part in text.split(",") if part.strip()) for text in (groups, beside)
        )
        self._cluster, self._min_group, self._human = cluster, min_group, Path(human) if human else None
        self._studied: tuple[Path, FairStudy] | None = None

    def items(self) -> Rows:
        from protoscore.sources import open_rows

        if not self.source:
            raise ConfigError("fairjudge needs a dataset: fairjudge:FOLDER, or a Hub id")
        return open_rows(self.source, self.split, benchmark=self.name)

    def evaluate(self, run: Path) -> Results:
        """The tables of a run of questions; without a column that states the truth, the shares of the answers.

        Raises:
            DatasetError: the run is not finished.
        """
        if read_manifest(run)["stage"] != "judge":
            return super().evaluate(run)
        from protoscore.benchmarks.fairjudge.study import study_results

        study = self._study(run)
        if not study.attributes and not study.scales:
            return super().evaluate(run)
        return study_results(study, self.resamples)

    def page(self, results: Results, run: Path) -> str:
        if not results.tasks:
            return super().page(results, run)
        from protoscore.benchmarks.fairjudge.report import page

        return page(self._study(run), run, self.resamples)

    def shown(self, results: Results) -> list[RenderableType]:
        if self._studied is None or not results.tasks:
            return super().shown(results)
        from protoscore.benchmarks.fairjudge.report import shown

        return shown(self._studied[1], self._studied[0])

    def _study(self, run: Path) -> FairStudy:
        """The study of a run, made once: it resamples."""
        from protoscore.benchmarks.fairjudge.study import Choices, make_study

        if self._studied is None or self._studied[0] != run:
            choices = Choices(
                self.truth,
                self._against,
                self._labels,
                self._groups,
                self._cluster,
                self._min_group,
                self._human,
                self.resamples,
            )
            self._studied = run, make_study([run, *map(Path, self._beside)], choices)
        return self._studied[1]


def judges(protocol: str) -> bool:
    """Whether a run of this protocol is evaluated here, whatever its items are."""
    return protocol.startswith("fairjudge/")


def create(source: str | None = None, **options: Any) -> FairJudge:
    return FairJudge(source, **options)
