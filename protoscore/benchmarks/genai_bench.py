"""GenAI-Bench (arXiv 2406.13743): 1,600 prompts, six models, each picture rated 1-5 by three people."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Any

from protoscore.benchmarks._others import OthersBenchmark
from protoscore.benchmarks._rated import agreement
from protoscore.reporting.results import ALL, Task
from protoscore.sources.records import Origin, Records, find, picture_bytes
from protoscore.sources.rows import Row
from protoscore.stats.resampling import Estimate

MODELS = ("DALLE_3", "DeepFloyd_I_XL_v1", "Midjourney_6", "SDXL_2_1", "SDXL_Base", "SDXL_Turbo")
COLUMNS = ("Index", "Prompt", "HumanRatings", *MODELS)


class GenAIBench(OthersBenchmark):
    name = "genai_bench"
    tasks = (Task(id="pairwise_accuracy", split="train"), Task(id="pairwise_accuracy_by_prompt", split="train"))
    columns = ("prompt", "model")
    origin = Origin(
        "BaiqiL/GenAI-Bench",
        "Apache-2.0",
        "It is open; where the Hub can be reached type: hf download --repo-type dataset BaiqiL/GenAI-Bench",
    )

    @cached_property
    def _records(self) -> Records:
        return find(self.given, "train", COLUMNS, self.origin)

    def __len__(self) -> int:
        return len(MODELS) * len(self._records)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        stop = len(self) if stop is None else min(stop, len(self))
        number = start - start % len(MODELS)
        for record in self._records.read(number // len(MODELS), -(-stop // len(MODELS))):
            for model in MODELS:
                if start <= number < stop:
                    fields = {"prompt": str(record["Index"]), "model": model, "text": record["Prompt"]}
                    yield Row(f"{record['Index']}-{model}", (picture_bytes(record[model]),), fields)
                number += 1

    def fingerprint(self) -> str | None:
        return self._records.fingerprint()

    def groups(self, scores: list[dict[str, Any]]) -> dict[str, dict[str, Estimate]]:
        human: dict[tuple[str, str], float] = {}
        for record in self._records.read(0, len(self._records)):
            for model, ratings in record["HumanRatings"].items():
                if ratings:
                    human[str(record["Index"]), model] = sum(ratings) / len(ratings)
        return {ALL: agreement(scores, human, self.resamples)}


def recognises(columns: Collection[str]) -> bool:
    return set(COLUMNS) <= set(columns)


def create(source: str | None = None, resamples: int = 2000) -> GenAIBench:
    return GenAIBench(source, resamples)
