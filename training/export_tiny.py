"""Write a trained tiny checkpoint as it ships: bfloat16 safetensors, processor, and nothing of the trainer's."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from transformers import AutoProcessor

from protoscore.modeling.protoscore import ProtoScore


def export(source: Path, target: Path) -> None:
    """Halve the weights' size (float32 to bfloat16) and save model and processor into ``target``."""
    model = ProtoScore.from_pretrained(source, dtype=torch.bfloat16)
    for old in target.glob("*"):
        old.unlink()
    type(model.model).register_for_auto_class("AutoModelForSequenceClassification")
    model.model.save_pretrained(target)
    AutoProcessor.from_pretrained(source).save_pretrained(target)
    size = sum(path.stat().st_size for path in target.glob("*"))
    print(f"{target}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    export(Path(sys.argv[1]), Path(sys.argv[2]))
