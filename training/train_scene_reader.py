"""Teach the embedded size to check descriptions: ``python training/train_scene_reader.py --recipe scene_reader``.

Between the base, which describes scenes, and scene-judge-tiny, which grades texts about them. Every picture comes with a text
that fits and one in which parts are changed. The model says at every word whether the picture disagrees, and at the end whether
anything did. Given the verdict at the end alone, body and head settle on saying nothing; words tell them where to look.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import torch
from checked_texts import checked_texts
from datasets import Dataset
from recipes import recipe_to_config
from scenes import draw_kept, scene_triplets
from script import run
from torch.nn.functional import binary_cross_entropy_with_logits
from transformers import AutoModelForSequenceClassification, AutoProcessor, Trainer, TrainingArguments
from trl import TrlParser

from protoscore.modeling.classifier import register
from protoscore.modeling.encode import encode, set_image_size
from protoscore.schema import Cell, derive_seed


@dataclass
class ReaderArguments:
    """Which texts are checked."""

    start: str = field(default="runs/tiny_base", metadata={"help": "the model to start from; train_tiny_base.py makes it"})
    pictures: int = field(default=64_000, metadata={"help": "scenes, each seen once, with two texts"})
    image_size: int = field(default=96, metadata={"help": "pixels a side that pictures are scaled to"})
    scene_seed: int = field(default=7, metadata={"help": "seed of the texts and scenes"})


def checked_pictures(args: ReaderArguments) -> Dataset:
    """Rows of ``image`` (drawn on access) and ``texts``, two :class:`~checked_texts.Checked`."""
    triplets = scene_triplets(args.pictures, args.scene_seed)
    domains = {d: [t for t in triplets[:6000] if t.domain == d] for d in {t.domain for t in triplets}}

    def read(batch: dict) -> dict:
        rows = []
        for i in batch["position"]:
            rng = random.Random(derive_seed("checked", args.scene_seed, i))
            triplet, cell = triplets[i], rng.choice(list(Cell))
            texts = checked_texts(triplet, cell, domains[triplet.domain], rng)
            rows.append({"image": draw_kept(triplet.scene(cell).model_dump_json(), rng.getrandbits(60)), "texts": texts})
        return {"image": [row["image"] for row in rows], "texts": [row["texts"] for row in rows]}

    return Dataset.from_dict({"position": list(range(args.pictures))}).with_transform(read)


class CheckedCollator:
    """Rows to a batch with ``wrong``: 1 at tokens of wrong words and at the end of a text that has any, 0 at its other tokens,
    -1 elsewhere."""

    def __init__(self, processor):
        self.processor = processor
        self.start = processor.tokenizer.convert_tokens_to_ids("<|vision_end|>")

    def __call__(self, rows: list[dict]) -> dict[str, torch.Tensor]:
        texts = [text for row in rows for text in row["texts"]]
        images = [row["image"] for row in rows for _ in row["texts"]]
        batch = dict(encode(self.processor, images, [checked.text for checked in texts]).inputs)
        ids = batch["input_ids"]
        wrong = torch.full(ids.shape, -1.0)
        for i, checked in enumerate(texts):
            places = self.processor.tokenizer(checked.text, return_offsets_mapping=True)["offset_mapping"]
            flags = [any(a < end and start < b for start, end in checked.wrong) for a, b in places]
            first = int((ids[i] == self.start).nonzero()) + 1
            wrong[i, first : first + len(flags) + 1] = torch.tensor([*flags, bool(checked.wrong)], dtype=torch.float)
        return batch | {"wrong": wrong}


class ReaderTrainer(Trainer):
    """Binary cross-entropy at every token of the text, and as much again for the verdict at its end."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._right: list[float] = []  # of the verdicts since the last line of the log

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        wrong = inputs.pop("wrong")
        logits = model.score(model.model(**inputs, use_cache=False).last_hidden_state)[..., 0]
        losses = binary_cross_entropy_with_logits(-logits, wrong.clamp(min=0), reduction="none")  # a high score: it fits
        asked = wrong >= 0
        ends = asked & ~torch.cat([asked[:, 1:], asked.new_zeros(len(asked), 1)], dim=1)
        weights = torch.where(wrong == 1, 2.0, 1.0)  # fewer words are wrong than right
        loss = (losses * weights)[asked & ~ends].mean() + losses[ends].mean()
        self._right.append(((logits < 0) == (wrong == 1))[ends].float().mean().item())
        return (loss, {"logits": logits}) if return_outputs else loss

    def log(self, logs, *args, **kwargs):
        if self._right:
            logs["verdicts_right"] = sum(self._right) / len(self._right)
            self._right.clear()
        super().log(logs, *args, **kwargs)


def main(arguments: list[str]) -> None:
    args, config = TrlParser((ReaderArguments, TrainingArguments)).parse_args_and_config(args=recipe_to_config(arguments))
    config.remove_unused_columns = False
    register()
    processor = AutoProcessor.from_pretrained(args.start)
    set_image_size(processor, args.image_size)
    model = AutoModelForSequenceClassification.from_pretrained(args.start, num_labels=1, use_safetensors=True)
    trainer = ReaderTrainer(
        model=model, args=config, train_dataset=checked_pictures(args), data_collator=CheckedCollator(processor)
    )
    trainer.train(resume_from_checkpoint=config.resume_from_checkpoint)
    trainer.save_model(config.output_dir)
    processor.save_pretrained(config.output_dir)


if __name__ == "__main__":
    run(main)
