"""Write a trained tiny checkpoint as it ships: bfloat16 safetensors, processor, and nothing of the trainer's."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForImageTextToText, AutoProcessor, PreTrainedModel

from protoscore.modeling.protoscore import ProtoScore
from protoscore.vlms.local import TAUGHT


def export(source: Path, target: Path) -> None:
    """Halve the weights' size (float32 to bfloat16) and save model and processor into ``target``."""
    model = _load(source)
    target.mkdir(parents=True, exist_ok=True)
    for old in target.glob("*"):
        old.unlink()
    model.save_pretrained(target)
    AutoProcessor.from_pretrained(source).save_pretrained(target)
    if (source / TAUGHT).is_file():  # of the judge
        shutil.copyfile(source / TAUGHT, target / TAUGHT)
    size = sum(path.stat().st_size for path in target.glob("*"))
    print(f"{target}: {size / 1e6:.1f} MB")


def _load(source: Path) -> PreTrainedModel:
    """The evaluator or the judge, whichever the folder holds."""
    if AutoConfig.from_pretrained(source).architectures[0].endswith("ForConditionalGeneration"):
        return AutoModelForImageTextToText.from_pretrained(source, dtype=torch.bfloat16)
    model = ProtoScore.from_pretrained(source, dtype=torch.bfloat16).model
    type(model).register_for_auto_class("AutoModelForSequenceClassification")
    return model


if __name__ == "__main__":
    export(Path(sys.argv[1]), Path(sys.argv[2]))
