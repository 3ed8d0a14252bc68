"""Teach the embedded size to see: ``python -m training.embedded.train_tiny_base --recipe tiny_base``.

ProtoScore starts from a vision-language model that can already describe pictures. No such model of this size exists, so
this trains one: a Qwen3-VL of 2.7 million weights that writes the description of a scene. It knows scenes and nothing else.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import torch
from datasets import Dataset
from transformers import Qwen3VLForConditionalGeneration, Trainer, TrainingArguments

from protoscore.benchmarks.protobias.schema import Cell
from protoscore.modeling.encode import encode
from protoscore.modeling.tiny import tiny_config, tiny_processor
from protoscore.schema import derive_seed
from training.recipes import parse
from training.scenes import draw_kept, scene_triplets
from training.script import run

RECIPES = Path(__file__).parent / "recipes"


@dataclass
class CaptionArguments:
    """Which pictures are described."""

    pictures: int = field(default=150_000, metadata={"help": "scenes to describe, each seen once"})
    scene_seed: int = field(default=2, metadata={"help": "seed of the scenes"})
    held_out: list[str] = field(default_factory=list, metadata={"help": "subjects that no scene may show"})


class CaptionCollator:
    """Pictures and descriptions to a batch whose labels are the description's tokens."""

    def __init__(self, processor):
        self.processor = processor
        self.end_of_picture = processor.tokenizer.convert_tokens_to_ids("<|vision_end|>")

    def __call__(self, rows: list[dict]) -> dict[str, torch.Tensor]:
        batch = dict(encode(self.processor, [row["image"] for row in rows], [row["text"] for row in rows]).inputs)
        ids, mask = batch["input_ids"], batch["attention_mask"]
        after_picture = (ids == self.end_of_picture).cumsum(1).bool() & (ids != self.end_of_picture)
        return batch | {"labels": ids.masked_fill(~(after_picture & mask.bool()), -100)}


def captions(arguments: CaptionArguments) -> Dataset:
    """Rows of ``image`` (drawn on access) and ``text``, its description; the four cells in equal parts."""
    cells = list(Cell)
    table = []
    for i, triplet in enumerate(scene_triplets(arguments.pictures, arguments.scene_seed, held_out=arguments.held_out)):
        seed = derive_seed("caption", arguments.scene_seed, i)
        cell = cells[seed % len(cells)]
        table.append({"text": triplet.description(cell), "scene": triplet.scene(cell).model_dump_json(), "seed": seed})

    def draw(batch: dict) -> dict:
        return {"text": batch["text"], "image": [draw_kept(*row) for row in zip(batch["scene"], batch["seed"], strict=True)]}

    return Dataset.from_list(table).with_transform(draw)


def main(arguments: list[str]) -> None:
    data, config = parse((CaptionArguments, TrainingArguments), arguments, RECIPES)
    config.remove_unused_columns = False
    sentences = [s for t in scene_triplets(24_000, seed=0) for s in (t.text, *map(t.description, Cell))]
    processor = tiny_processor(sentences)
    torch.manual_seed(config.seed)
    model = Qwen3VLForConditionalGeneration(tiny_config(processor))
    trainer = Trainer(model=model, args=config, train_dataset=captions(data), data_collator=CaptionCollator(processor))
    trainer.train(resume_from_checkpoint=config.resume_from_checkpoint)
    trainer.save_model(config.output_dir)
    processor.save_pretrained(config.output_dir)


if __name__ == "__main__":
    run(main)
