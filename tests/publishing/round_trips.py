"""Publish everything that exists and load it by its id, with the libraries that users have. Run by ``test_publish``.

``python -m tests.publishing.round_trips DATASET SCRATCH`` with the contract server as ``HF_ENDPOINT``; prints what held.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import evaluate
import pyarrow.parquet as pq
from datasets import Image, get_dataset_config_names, load_dataset
from huggingface_hub import hf_hub_download
from PIL import Image as Pictures

from protoscore.cli import main
from tests.conftest import ROOT

TINY = ROOT / "protoscore" / "assets" / "protoscore-tiny"
MODULE_CARD = """---
title: Share Above
license: apache-2.0
tags: [evaluate, metric]
sdk: gradio
sdk_version: 6.31.0
app_file: app.py
---

# Share above

The share of predictions above their references.
"""
MODULE = '''"""The share of predictions above their references."""

import datasets
import evaluate


class ShareAbove(evaluate.Metric):
    def _info(self):
        columns = {"predictions": datasets.Value("float32"), "references": datasets.Value("float32")}
        return evaluate.MetricInfo(description=__doc__, citation="", features=datasets.Features(columns))

    def _compute(self, predictions, references):
        return {"share_above": sum(p > r for p, r in zip(predictions, references)) / len(predictions)}
'''


def publish(*arguments: object) -> None:
    sys.argv = ["protoscore", "publish", *map(str, arguments)]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"publish {arguments} ended with {end.code}") from end


def dataset_trip(folder: Path) -> dict[str, bool]:
    publish("dataset", folder, "--repo-id", "org/protobias-scenes", "--tag", "v1")
    there = pq.read_table(folder / "pairs" / "test-00000.parquet").to_pylist()
    pairs = load_dataset("org/protobias-scenes", "pairs", split="test", revision="v1")
    raw = pairs.cast_column("correct_image", Image(decode=False))
    streamed = load_dataset("org/protobias-scenes", "controls", split="test", streaming=True)
    here = pq.read_table(folder / "controls" / "test-00000.parquet").to_pylist()
    return {
        "configs": set(get_dataset_config_names("org/protobias-scenes")) >= {"pairs", "controls", "triplets", "human"},
        "rows": [r["text"] for r in there] == pairs["text"][:],
        "pictures": [r["correct_image"]["bytes"] for r in there] == [r["bytes"] for r in raw["correct_image"]],
        "decoded": pairs[0]["adversarial_image"].mode == "RGB",
        "streaming": [r["text"] for r in streamed] == [r["text"] for r in here],
    }


def score_trip(scratch: Path) -> dict[str, bool]:
    """``protoscore score`` reads the published dataset by its id."""
    sys.argv = ["protoscore", "score", "org/protobias-scenes", "-s", "constant", "--limit", "12", "--out", str(scratch / "run")]
    try:
        main()
    except SystemExit as end:
        return {"scored by id": not end.code and pq.read_table(scratch / "run" / "scores.parquet").num_rows == 12}
    return {"scored by id": False}


def model_trips(scratch: Path) -> dict[str, bool]:
    """A checkpoint, and an adapter on top of it, give the same scores from the Hub as from memory."""
    from peft import LoraConfig, PeftModel, get_peft_model

    from protoscore.modeling.protoscore import ProtoScore

    shutil.copytree(TINY, scratch / "tiny")
    publish("model", scratch / "tiny", "--repo-id", "org/protoscore-tiny")
    pictures = [Pictures.new("RGB", (96, 96), colour) for colour in ("red", "white", "navy")]
    texts = ["A red wall.", "A bird.", "Two stones."]
    base = ProtoScore.from_pretrained("org/protoscore-tiny")
    same = base.score(pictures, texts) == ProtoScore.from_pretrained().score(pictures, texts)

    adapted = get_peft_model(
        base.model, LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False, task_type="SEQ_CLS")
    )
    wanted = ProtoScore(adapted, base.processor).score(pictures, texts)
    adapted.save_pretrained(scratch / "adapter")
    head = (
        (TINY / "README.md")
        .read_text()
        .replace("library_name: transformers", "library_name: peft\nbase_model: org/protoscore-tiny")
    )
    (scratch / "adapter" / "README.md").write_text(head)
    publish("model", scratch / "adapter", "--repo-id", "org/adapter")
    again = PeftModel.from_pretrained(ProtoScore.from_pretrained("org/protoscore-tiny").model, "org/adapter")
    got = ProtoScore(again, base.processor).score(pictures, texts)
    close = max(abs(a - b) for a, b in zip(wanted, got)) < 1e-5 and wanted != ProtoScore.from_pretrained().score(
        pictures, texts
    )
    return {"model": same, "adapter": close}


def write_module(folder: Path) -> Path:
    """A small module of the tests' own."""
    folder.mkdir(parents=True)
    files = {"README.md": MODULE_CARD, "share_above.py": MODULE, "app.py": "print()\n", "requirements.txt": "evaluate\n"}
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def module_trips(scratch: Path) -> dict[str, bool]:
    """Every module of the repository, and one of this test's own, loads by its id."""
    own = write_module(scratch / "share_above")
    found = sorted(path.parent for path in (ROOT / "evaluate_modules").glob("*/README.md"))
    held = {}
    for folder in [own, *found]:
        publish("module", folder if folder == own else shutil.copytree(folder, scratch / folder.name),
                "--repo-id", f"org/{folder.name}", "--public")  # fmt: skip
        held[f"module {folder.name}"] = bool(evaluate.load(f"org/{folder.name}").description)
    share = evaluate.load("org/share_above")
    share.add_batch(predictions=[1, 2, 3], references=[0, 5, 0])
    held["computed"] = share.compute() == {"share_above": 2 / 3}
    app = hf_hub_download("org/share_above", "app.py", repo_type="space")
    held["space"] = Path(app).read_text() == "print()\n"
    return held


if __name__ == "__main__":
    dataset, scratch = Path(sys.argv[1]), Path(sys.argv[2])
    copy = shutil.copytree(dataset, scratch / "dataset")
    held = dataset_trip(copy) | score_trip(scratch) | model_trips(scratch) | module_trips(scratch)
    publish("space", scratch / "share_above", "--repo-id", "org/demo-space")
    held["private space"] = Path(hf_hub_download("org/demo-space", "README.md", repo_type="space")).read_text() == MODULE_CARD
    print(json.dumps(held))
