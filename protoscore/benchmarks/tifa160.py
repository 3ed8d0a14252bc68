"""TIFA160 (arXiv 2303.11897) with the ratings of DSG (arXiv 2310.18235): 160 prompts, five models, 1-5 by several people.

The files are those that VQAScore's repository keeps: ``tifa160.json`` (key to prompt id, text and file name),
``dsg_tifa160_anns.csv`` (one rating a line) and a folder ``tifa160`` of JPEG files.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from protoscore.benchmarks._rated import agreement
from protoscore.benchmarks._transfer import Source
from protoscore.errors import DatasetError
from protoscore.sources.records import ListedRecords, picture_bytes
from protoscore.sources.rows import Row
from protoscore.stats.resampling import Estimate

SOURCE = Source(
    None,
    "not stated with the ratings",
    "Put tifa160.json and dsg_tifa160_anns.csv (folder datasets of the repository linzhiqiu/t2v_metrics) and the pictures "
    "(its tifa160.zip, unpacked as folder tifa160) into one folder and name it: --source FOLDER",
)
MODELS = {  # as the ratings name them -> as the pictures do
    "mini-dalle": "mini_dalle",
    "vq-diffusion": "vq_diffusion",
    "sd1dot1": "stable_diffusion_v1_1",
    "sd1dot5": "stable_diffusion_v1_5",
    "sd2dot1": "stable_diffusion_v2_1",
}


class Tifa160:
    columns: Sequence[str] = ("prompt", "model")
    scenes: bool | None = False
    parent: Path | None = None

    def __init__(self, source: str | None = None):
        folder = _folder(source)
        self.source = str(source)
        self.parameters: dict[str, Any] = {"benchmark": "tifa160"}
        listing, ratings = _file(folder, "tifa160.json"), _file(folder, "dsg_tifa160_anns.csv")
        self.human = _ratings(ratings)
        records = _listing(listing)
        images = next(
            (place for place in (folder / "tifa160", folder) if (place / records[0]["file"]).is_file()), folder / "tifa160"
        )
        self._records = ListedRecords(records, lambda record: {"image": images / record["file"]}, [listing, ratings])

    def __len__(self) -> int:
        return len(self._records)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        for record in self._records.read(start, len(self) if stop is None else stop):
            fields = {name: record[name] for name in ("prompt", "model", "text")}
            yield Row(f"{record['prompt']}-{record['model']}", (picture_bytes(record["image"]),), fields)

    def fingerprint(self) -> str | None:
        return self._records.fingerprint()

    def evaluate(self, scores: list[dict[str, Any]], resamples: int) -> dict[str, dict[str, Estimate]]:
        return {"all": agreement(scores, self.human, resamples)}


def _folder(source: str | None) -> Path:
    if source is None:
        raise DatasetError(f"this benchmark is not on the Hub. {SOURCE.help}")
    if Path(source).is_dir():
        return Path(source)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:  # somebody's copy in the same layout
        return Path(snapshot_download(source, repo_type="dataset"))
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        raise DatasetError(f"{source} is neither a folder here nor a dataset of the Hub. {SOURCE.help}") from error


def _file(folder: Path, name: str) -> Path:
    for place in (folder, folder / "datasets"):
        if (place / name).is_file():
            return place / name
    raise DatasetError(f"{folder} has no {name}. {SOURCE.help}")


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
        raise DatasetError(f"{path} is not TIFA160's listing ({type(error).__name__}: {error}). {SOURCE.help}") from error


def _ratings(path: Path) -> dict[tuple[str, str], float]:
    """(prompt, model) to the mean of its 1-5 ratings."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                found[line["source_id"], MODELS[line["model_type"]]].append(float(line["answer"]))
    except (ValueError, KeyError, TypeError) as error:
        raise DatasetError(f"{path} is not the file of ratings ({type(error).__name__}: {error}). {SOURCE.help}") from error
    return {key: sum(values) / len(values) for key, values in found.items()}


def create(source: str | None = None) -> Tifa160:
    return Tifa160(source)
