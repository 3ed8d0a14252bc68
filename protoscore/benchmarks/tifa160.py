"""TIFA160 (arXiv 2303.11897) with the ratings of DSG (arXiv 2310.18235): 160 prompts, five models, 1-5 by several people.

The files are those that VQAScore's repository keeps: ``tifa160.json`` (key to prompt id, text and file name),
``dsg_tifa160_anns.csv`` (one rating a line) and a folder ``tifa160`` of JPEG files.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from protoscore.benchmarks._others import OthersBenchmark
from protoscore.benchmarks._rated import agreement
from protoscore.errors import DatasetError
from protoscore.reporting.results import ALL, Task
from protoscore.sources.records import ListedRecords, Origin, Records, picture_bytes
from protoscore.sources.rows import Row
from protoscore.sources.tables import read_table
from protoscore.stats.resampling import Estimate

HELP = (
    "Put tifa160.json and dsg_tifa160_anns.csv (folder datasets of the repository linzhiqiu/t2v_metrics) and the pictures "
    "(its tifa160.zip, unpacked as folder tifa160) into one folder and name it: tifa160:FOLDER"
)
MODELS = {  # as the ratings name them -> as the pictures do
    "mini-dalle": "mini_dalle",
    "vq-diffusion": "vq_diffusion",
    "sd1dot1": "stable_diffusion_v1_1",
    "sd1dot5": "stable_diffusion_v1_5",
    "sd2dot1": "stable_diffusion_v2_1",
}


class Tifa160(OthersBenchmark):
    name = "tifa160"
    tasks = (Task(id="pairwise_accuracy"), Task(id="pairwise_accuracy_by_prompt"))
    columns = ("prompt", "model")
    origin = Origin(None, "not stated with the ratings", HELP)

    @cached_property
    def _folder(self) -> Path:
        return _folder(self.given)

    @cached_property
    def _records(self) -> Records:
        listing = _file(self._folder, "tifa160.json")
        records = _listing(listing)
        places = (self._folder / "tifa160", self._folder)
        images = next((place for place in places if (place / records[0]["file"]).is_file()), places[0])
        files = [listing, _file(self._folder, "dsg_tifa160_anns.csv")]
        return ListedRecords(records, lambda record: {"image": images / record["file"]}, files)

    def __len__(self) -> int:
        return len(self._records)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        for record in self._records.read(start, len(self) if stop is None else stop):
            fields = {name: record[name] for name in ("prompt", "model", "text")}
            yield Row(f"{record['prompt']}-{record['model']}", (picture_bytes(record["image"]),), fields)

    def fingerprint(self) -> str | None:
        return self._records.fingerprint()

    def groups(self, scores: list[dict[str, Any]]) -> dict[str, dict[str, Estimate]]:
        human = _ratings(_file(self._folder, "dsg_tifa160_anns.csv"))
        return {ALL: agreement(scores, human, self.resamples)}


def _folder(source: str | None) -> Path:
    if source is None:
        raise DatasetError(f"this benchmark is not on the Hub. {HELP}")
    if Path(source).is_dir():
        return Path(source)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:  # somebody's copy in the same layout
        return Path(snapshot_download(source, repo_type="dataset"))
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        raise DatasetError(f"{source} is neither a folder here nor a dataset of the Hub. {HELP}") from error


def _file(folder: Path, name: str) -> Path:
    for place in (folder, folder / "datasets"):
        if (place / name).is_file():
            return place / name
    raise DatasetError(f"{folder} has no {name}. {HELP}")


def _listing(path: Path) -> list[dict[str, Any]]:
    """Prompt, model, text and file of each picture, in the order of the file."""
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
        return [
            {
                "prompt": entry["text_id"],
                "model": key.removeprefix(entry["text_id"] + "_"),
                "text": str(entry["text"]),
                "file": Path(entry["image_path"]).name,
            }
            for key, entry in listed.items()
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DatasetError(f"{path} is not TIFA160's listing ({type(error).__name__}: {error}). {HELP}") from error


def _ratings(path: Path) -> dict[tuple[str, str], float]:
    """(prompt, model) to the mean of its 1-5 ratings."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    try:
        for line in read_table(path):
            row = line.values
            found[row["source_id"], MODELS[row["model_type"]]].append(float(row["answer"]))
    except (ValueError, KeyError) as error:
        raise DatasetError(f"{path} is not the file of ratings ({type(error).__name__}: {error}). {HELP}") from error
    return {key: sum(values) / len(values) for key, values in found.items()}


def create(source: str | None = None, resamples: int = 2000) -> Tifa160:
    return Tifa160(source, resamples)
