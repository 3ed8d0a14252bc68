"""TRL's RewardTrainer for pictures: its loss is the paper's (softplus of margin minus score difference), its data is text."""

from __future__ import annotations

from typing import Any

import torch
from datasets import Dataset
from trl import RewardTrainer

from protoscore.modeling.encode import encode


class PairCollator:
    """Rows of :func:`pairs.training_pairs` to one batch laid out as the trainer expects: [chosen; rejected]."""

    def __init__(self, processor: Any):
        self.processor = processor

    def __call__(self, rows: list[dict]) -> dict[str, torch.Tensor]:
        images = [row["chosen"] for row in rows] + [row["rejected"] for row in rows]
        batch = dict(encode(self.processor, images, [row["text"] for row in rows] * 2).inputs)
        return batch | {"margin": torch.tensor([row["margin"] for row in rows])}


class PairTrainer(RewardTrainer):
    """RewardTrainer that leaves rows as they are: our collator encodes them, pictures included."""

    def __init__(self, *args: Any, processor: Any, **kwargs: Any):
        self.processor = processor
        # The trainer itself can hold a tokenizer only; the processor is saved beside every checkpoint below.
        super().__init__(*args, data_collator=PairCollator(processor), processing_class=processor.tokenizer, **kwargs)

    def _prepare_dataset(self, dataset: Dataset, *_: Any) -> Dataset:
        return dataset

    def _set_signature_columns_if_needed(self) -> None:
        self._signature_columns = ["text", "chosen", "rejected", "margin", "seed", "position"]

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        super().save_model(output_dir, _internal_call)
        if self.args.should_save:
            self.processor.save_pretrained(output_dir or self.args.output_dir)

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """TRL's card speaks of a text model; ours is written from result files by ``model_cards/``."""
