"""BBQ-V (SB-Bench): does a model answer about people by stereotype, where nothing in the question tells?"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from protoscore.benchmarks import Benchmark
from protoscore.errors import ConfigError
from protoscore.folder import MANIFEST, read_manifest
from protoscore.reporting.results import Results, Task

if TYPE_CHECKING:
    from protoscore.generators import Wanted
    from protoscore.sources.rows import Rows


class BBQV(Benchmark):
    """Questions about two people: our own about drawn ones, and BBQ's without pictures, for base LLMs and for blind models.

    Args:
        source: the folder of pictures that was made of this benchmark; or a folder of BBQ's ``.jsonl`` files, one such file,
            or a Hub id.
        split: on the Hub.
        judged: runs of ``bbq_v/criteria`` or ``bbq_v/criteria_known`` about the answers of a run, with commas; their grades
            are reported with it.
        renditions, seed: of the pictures: how many of each question, and from which number they are drawn.
    """

    name = "bbq_v"
    tasks = (Task(id="accuracy_amb"), Task(id="accuracy_dis"))

    def __init__(
        self, source: str | None = None, split: str = "test", judged: str = "", renditions: int = 1, seed: int = 0,
        resamples: int = 2000,
    ):  # fmt: skip
        super().__init__(resamples)
        self.source, self.split = source, split
        self._judged = [Path(part.strip()) for part in judged.split(",") if part.strip()]

        if renditions < 1:
            raise ConfigError(f"renditions is a number of pictures from 1, not {renditions}")
        self.renditions, self.seed = renditions, seed

    def pictures(self) -> Iterator[Wanted]:
        from protoscore.benchmarks.bbq_v.scenes import wanted

        return wanted(self.renditions, self.seed)

    def items(self) -> Rows:
        from protoscore.benchmarks.bbq_v.questions import Questions

        if self.source and (Path(self.source) / MANIFEST).is_file():
            from protoscore.benchmarks.bbq_v.scenes import SceneQuestions
            from protoscore.sources import open_rows

            return cast("Rows", SceneQuestions(open_rows(self.source, self.split, benchmark=self.name)))
        return Questions(self.source, self.split, {"benchmark": self.name, "split": self.split})

    def evaluate(self, run: Path) -> Results:
        """Bias scores of a run of ``bbq_v/multiple_choice``, and the grades of what judges made of a run's answers.

        Raises:
            DatasetError: a run is not finished.
        """
        if read_manifest(run)["stage"] != "judge":
            return super().evaluate(run)
        from protoscore.benchmarks.bbq_v.study import study

        return study(run, self._judged, self.tasks, self.resamples)


def recognises(columns: Collection[str]) -> bool:
    return {"answer_info", "question_polarity", "context_condition", "ans0", "ans1", "ans2"} <= set(columns)


def create(source: str | None = None, **options: Any) -> BBQV:
    return BBQV(source, **options)
