"""Attribute-conditional diversity (arXiv 2511.10547): which of several models varies a concept's attribute more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protoscore.benchmarks import Benchmark
from protoscore.folder import read_manifest
from protoscore.reporting.results import Results, Task

if TYPE_CHECKING:
    from rich.console import RenderableType

    from protoscore.benchmarks.diversity.study import DiversityStudy
    from protoscore.benchmarks.diversity.template import Template
    from protoscore.generators import Wanted
    from protoscore.sources.rows import Rows
    from protoscore.vlms import VLM


class Diversity(Benchmark):
    """Sets of pictures of one concept, beside those of other models.

    Args:
        source: what is drawn: ``photos`` (86 pairs of a concept and an attribute), ``scenes`` (40), a table of pairs, the
            sets of known diversity ``golden`` and ``golden-scenes``; or a folder of pictures, to be judged.
        pairs: of a folder's pictures.
        renditions: pictures of each pair, to be drawn.
        seed: of the pictures.
        votes: what people said: the tables that annotators sent back, with commas; or a run of ``diversity/side_by_side``.
        tasks: the table that says what they were asked about.
    """

    name = "diversity"
    tasks = (Task(id="judged_entropy"),)

    def __init__(
        self, source: str | None = None, pairs: str = "photos", renditions: int = 20, seed: int = 0, votes: str = "",
        tasks: str = "", resamples: int = 2000,
    ):  # fmt: skip
        super().__init__(resamples)
        self.source, self._pairs, self._renditions, self._seed = source or "photos", pairs, renditions, seed
        self._votes, self._asked = tuple(part.strip() for part in votes.split(",") if part.strip()), tasks
        self.folders: dict[str, str] = {}  # model -> its own pictures, for the page
        self._studied: tuple[Path, DiversityStudy] | None = None

    def pictures(self) -> Iterator[Wanted]:
        from protoscore.benchmarks.diversity.golden import LISTS, golden_pictures
        from protoscore.benchmarks.diversity.models import wanted_of
        from protoscore.benchmarks.diversity.pairs import read_pairs

        if self.source in LISTS:
            return golden_pictures(self.source, self._seed)
        return iter(wanted_of(read_pairs(self.source), "", self._renditions, self._seed))

    def items(self) -> Rows:
        """Pictures with their pair's concept, attribute and values, as ``diversity/attribute_value`` asks about them."""
        from protoscore.benchmarks.diversity.models import KnownRows
        from protoscore.benchmarks.diversity.pairs import read_pairs
        from protoscore.sources import columns_of, open_rows

        rows = open_rows(self.source, benchmark=self.name)
        if {"pair", "concept", "attribute", "values"} <= columns_of(self.source):  # drawn by us
            return rows
        return KnownRows(rows, read_pairs(self._pairs))

    def evaluate(self, run: Path) -> Results:
        """The comparison of models of ``protoscore diversity``; of any other run, what it answers.

        Raises:
            DatasetError: the run is not finished, or its votes are not about it.
        """
        if read_manifest(run)["stage"] != "diversity":
            from protoscore.benchmarks.diversity.golden import golden_results, is_golden

            return golden_results(run) if is_golden(run) else super().evaluate(run)
        from protoscore.benchmarks.diversity.study import study_results

        return study_results(self._study(run))

    def page(self, results: Results, run: Path) -> str:
        if read_manifest(run)["stage"] != "diversity":
            return super().page(results, run)
        from protoscore.benchmarks.diversity.report import page

        return page(self._study(run), run, self.folders)

    def shown(self, results: Results) -> list[RenderableType]:
        if self._studied is None:
            return super().shown(results)
        from protoscore.benchmarks.diversity.report import shown

        return shown(self._studied[1])

    def write_tasks(self, run: Path, out: Path, how: Template) -> int:
        """Write the comparisons of a run as tasks for people, and how many they are.

        Raises:
            ConfigError: ``out`` holds tasks already.
        """
        from protoscore.benchmarks.diversity.template import write_tasks

        study = self._study(run)
        return write_tasks(study.sets, study.measured, self._sources(run, study), out, how)

    def ask_side_by_side(self, run: Path, judge: VLM) -> Path:
        """Put every comparison of a run to a judge, in both orders, and count its answers as votes.

        Returns:
            The folder of the answers.
        """
        from protoscore.asking.protocol import load_protocol
        from protoscore.benchmarks.diversity.beside import SideBySide, comparisons
        from protoscore.judging.stage import judge_items

        study = self._study(run)
        shown = list(comparisons(study.sets, study.measured, self._sources(run, study)))
        folder = run / "side_by_side"
        judge_items(load_protocol("diversity/side_by_side"), SideBySide(shown, study.manifest["scenes"]), judge, folder)
        self._votes, self._studied = (*self._votes, str(folder)), None
        return folder

    def _sources(self, run: Path, study: DiversityStudy) -> dict[str, str]:
        return {one.name: self.folders.get(one.name, str(run / one.name / "pictures")) for one in study.measured}

    def _study(self, run: Path) -> DiversityStudy:
        from protoscore.benchmarks.diversity.study import make_study

        if self._studied is None or self._studied[0] != run:
            asked = Path(self._asked) if self._asked else None
            self._studied = run, make_study(run, [Path(votes) for votes in self._votes], asked)
        return self._studied[1]


def create(source: str | None = None, **options: Any) -> Diversity:
    return Diversity(source, **options)
