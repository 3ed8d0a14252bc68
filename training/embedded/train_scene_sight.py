"""Teach the embedded judge to see: ``python -m training.embedded.train_scene_sight --recipe scene_sight``.

The first half of scene-judge-tiny. Of its vision tower only: at every place of a picture, the tower's state must point to the
words for what is shown there, in the space of the word embeddings that the language model will read texts by. So the second
half (train_scene_judge) starts with pictures and words that already fit each other.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import torch
from datasets import Dataset
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from transformers import Trainer, TrainingArguments

from protoscore.modeling.patches import embed_patches_by_product
from protoscore.schema import derive_seed
from training.embedded.judge_model import is_matrix, judge_model, judge_processor
from training.embedded.muon import Muon
from training.embedded.sights import NamedBox, sight
from training.recipes import parse
from training.script import run

RECIPES = Path(__file__).parent / "recipes"
COVERED = 0.3  # of a place, or of the thing, from which on the thing is at that place


@dataclass
class SightArguments:
    """Which pictures are seen."""

    pictures: int = field(default=400_000, metadata={"help": "pictures, each seen once"})
    texts: int = field(default=24_000, metadata={"help": "triplets whose texts the tokenizer learns its words from"})
    rest_learning_rate: float = field(default=2e-3, metadata={"help": "of what AdamW steps; learning_rate is Muon's"})
    scene_seed: int = field(default=11, metadata={"help": "seed of the pictures"})


def sights(args: SightArguments) -> Dataset:
    """Rows of ``image`` (drawn on access) and ``shown``, a list of :class:`~training.embedded.sights.NamedBox`."""

    def draw(batch: dict) -> dict:
        rows = [sight(derive_seed(args.scene_seed, i)) for i in batch["position"]]
        return {"image": [image for image, _ in rows], "shown": [shown for _, shown in rows]}

    return Dataset.from_dict({"position": list(range(args.pictures))}).with_transform(draw)


class SightCollator:
    """Rows to ``pixel_values`` and ``shown``: rows of picture, place and name, for each name at each place of each picture."""

    def __init__(self, processor, names: list[str]):
        self.processor = processor
        self.number = {name: i for i, name in enumerate(names)}

    def __call__(self, rows: list[dict]) -> dict[str, Tensor]:
        batch = dict(self.processor.image_processor([row["image"] for row in rows], return_tensors="pt"))
        side = int(batch["image_grid_thw"][0, 1]) // self.processor.image_processor.merge_size
        found = [
            (i, place, self.number[thing.words])
            for i, row in enumerate(rows) for thing in row["shown"] if thing.words in self.number
            for place in places(thing, side)
        ]  # fmt: skip
        return batch | {"shown": torch.tensor(found)}


def places(thing: NamedBox, side: int) -> list[int]:
    """The places of a grid of ``side`` x ``side`` that a thing covers, row by row."""
    left, top, right, bottom = (min(1.0, max(0.0, edge)) for edge in thing.box)
    enough = COVERED * min(side**-2, (right - left) * (bottom - top))
    overlap = lambda low, high, at: max(0.0, min(high, (at + 1) / side) - max(low, at / side))  # noqa: E731
    return [
        row * side + column
        for row in range(side) for column in range(side)
        if overlap(top, bottom, row) * overlap(left, right, column) > enough
    ]  # fmt: skip


class Sight(nn.Module):
    """The vision tower of a judge, asked which of some names hold at each place.

    A name's direction is the mean embedding of its tokens; how common it is, is a bias of its own.
    """

    def __init__(self, judge, spelling: list[list[int]]):
        super().__init__()
        self.visual = judge.model.visual
        self.words = judge.model.language_model.embed_tokens
        self.bias = nn.Parameter(torch.full((len(spelling),), -4.0))
        means = torch.zeros(len(spelling), self.words.num_embeddings)
        for i, tokens in enumerate(spelling):
            means[i].index_add_(0, torch.tensor(tokens), torch.full((len(tokens),), 1 / len(tokens)))
        self.register_buffer("means", means, persistent=False)

    def forward(self, pixel_values: Tensor, image_grid_thw: Tensor, shown: Tensor | None = None) -> dict[str, Tensor]:
        states = self.visual(pixel_values, grid_thw=image_grid_thw).pooler_output
        states = torch.cat(list(states)) if isinstance(states, (tuple, list)) else states
        logits = (states @ (self.means @ self.words.weight).T + self.bias).view(len(image_grid_thw), -1, len(self.bias))
        if shown is None:
            return {"logits": logits}
        truth = torch.zeros_like(logits)
        truth[shown.unbind(1)] = 1.0
        loss = binary_cross_entropy_with_logits(logits, truth, reduction="none").sum(-1).mean()
        return {"loss": loss, "logits": logits}


def all_names(args: SightArguments) -> list[str]:
    """Every name that the first pictures show; enough of them show all."""
    drawn = (sight(derive_seed(args.scene_seed, i)) for i in range(min(6000, args.pictures)))
    return sorted({thing.words for _, shown in drawn for thing in shown})


def main(arguments: list[str]) -> None:
    args, config = parse((SightArguments, TrainingArguments), arguments, RECIPES)
    config.remove_unused_columns = False
    processor = judge_processor(args.texts)
    judge = judge_model(processor, config.seed)
    embed_patches_by_product(judge)
    names = all_names(args)
    model = Sight(judge, [processor.tokenizer(name, add_special_tokens=False)["input_ids"] for name in names])
    optimizer = Muon(model, config.learning_rate, args.rest_learning_rate, is_matrix, config.weight_decay)
    trainer = Trainer(
        model=model, args=config, train_dataset=sights(args), data_collator=SightCollator(processor, names),
        optimizers=(optimizer, None),
    )  # fmt: skip
    trainer.train(resume_from_checkpoint=config.resume_from_checkpoint)
    # What is seen is said by the same words.
    judge.lm_head.load_state_dict(judge.model.language_model.embed_tokens.state_dict())
    judge.save_pretrained(config.output_dir)
    processor.save_pretrained(config.output_dir)


if __name__ == "__main__":
    run(main)
