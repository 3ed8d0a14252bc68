"""TRL's RewardTrainer for pictures: its loss is the paper's (softplus of margin minus score difference), its data is text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from huggingface_hub import HfApi
from transformers import EvalPrediction
from transformers.trainer import TRAINING_ARGS_NAME
from trl import RewardConfig, RewardTrainer

from protoscore.benchmarks.protobias.schema import Cell
from protoscore.errors import ConfigError
from protoscore.modeling.encode import encode
from protoscore.modeling.vision import VisionCache, frozen, names_of
from protoscore.publishing.files import PICKLES, TRAINERS_OWN
from protoscore.stats.pairwise import five_quantities

CELLS = [Cell.NON_CORRECT, Cell.PROTO_VIOLATED, Cell.PROTO_CORRECT, Cell.NON_VIOLATED]  # five_quantities' order

NOT_UPLOADED = [*TRAINERS_OWN, ".*", *(f"*{suffix}" for suffix in PICKLES)]


class PairCollator:
    """Rows to one batch: training pairs laid out as the trainer expects, [chosen; rejected]; evaluation rows cell after cell.

    Runs in the data loader's workers, decoding and resizing included.
    """

    def __init__(self, processor: Any, named: bool = False):
        self.processor, self.named = processor, named

    def __call__(self, rows: list[dict]) -> dict[str, torch.Tensor]:
        sides = ["chosen", "rejected"] if "chosen" in rows[0] else [cell.value for cell in CELLS if cell.value in rows[0]]
        images = [row[side] for side in sides for row in rows]
        batch = dict(encode(self.processor, images, [row["text"] for row in rows] * len(sides)).inputs)
        if self.named:
            batch["picture"] = names_of(batch)
        if "margin" in rows[0]:
            return batch | {"margin": torch.tensor([row["margin"] for row in rows])}
        return batch | {"cluster": torch.tensor([row["cluster"] for row in rows])}


class PairTrainer(RewardTrainer):
    """RewardTrainer that leaves rows as they are (our collator encodes them) and evaluates by the five quantities.

    Args:
        cache_gb: memory for what a frozen vision tower makes of pictures, in each process; it pays when pictures come again,
            as in every evaluation and in later epochs.

    Raises:
        ConfigError: there is a cache, but the tower learns, or its weights are spread over processes.
    """

    def __init__(self, *, args: RewardConfig, processor: Any, cache_gb: float = 0.0, **kwargs: Any):
        args.remove_unused_columns = False  # rows are made on access, from columns that no model knows
        self.processor = processor
        self.cache = VisionCache(cache_gb) if cache_gb else None
        # The trainer itself can hold a tokenizer only; the processor is saved beside every checkpoint below.
        super().__init__(
            args=args, data_collator=PairCollator(processor, named=bool(cache_gb)), processing_class=processor.tokenizer,
            compute_metrics=five_metrics, **kwargs,
        )  # fmt: skip
        for parameter in self.model.parameters():
            if parameter.requires_grad:
                # In bfloat16 a step of 1e-5 is below the last digit of most weights and would be lost.
                parameter.data = parameter.data.float()
        if self.cache and (self.is_fsdp_enabled or not frozen(self.model)):
            raise ConfigError("vision_cache_gb needs a vision tower that does not learn, and no FSDP; set it to 0")

    def compute_loss(self, model: Any, inputs: dict, *args: Any, **kwargs: Any) -> Any:
        return super().compute_loss(model, self._seen(model, inputs), *args, **kwargs)

    def _seen(self, model: Any, inputs: dict) -> dict:
        """Inputs with pictures that are known already, where there is a cache."""
        return self.cache.look(model, inputs, inputs.pop("picture").tolist()) if self.cache else inputs

    def prediction_step(self, model: Any, inputs: dict, prediction_loss_only: bool, ignore_keys: Any = None) -> tuple:
        """(None, (rows, cells) scores, (rows,) clusters)."""
        inputs = self._prepare_inputs(inputs)
        cluster = inputs.pop("cluster")
        with torch.no_grad(), self.compute_loss_context_manager():
            logits = model(**self._seen(model, inputs), use_cache=False).logits
        return None, logits.float().view(-1, len(cluster)).T.contiguous(), cluster

    def _prepare_dataset(self, dataset: Dataset, *_: Any) -> Dataset:
        return dataset

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        super().save_model(output_dir, _internal_call=True)  # the public form would upload before the card is there
        if self.args.should_save:
            folder = output_dir or self.args.output_dir
            self.processor.save_pretrained(folder)
            Path(folder, TRAINING_ARGS_NAME).unlink(missing_ok=True)  # a pickle, with this machine's paths and perhaps a token

    def push_to_hub(self, commit_message: str = "Train ProtoScore", **_: Any) -> Any:
        """Upload the final folder as one commit: weights, processor, record and card, and nothing of the trainer's own."""
        if self.is_world_process_zero():
            return HfApi().upload_folder(
                repo_id=self.hub_model_id, folder_path=self.args.output_dir, commit_message=commit_message,
                token=self.args.hub_token, revision=self.args.hub_revision, ignore_patterns=NOT_UPLOADED,
            )  # fmt: skip

    def _push_from_checkpoint(self, checkpoint_folder: str) -> None:
        """Half-trained weights do not go to the Hub; they would need a card too."""

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """TRL's card speaks of a text model; ours is written by ``run_card`` and, from result files, by ``model_cards/``."""


def five_metrics(prediction: EvalPrediction) -> dict[str, float]:
    """The five quantities with 95 % intervals, the comparisons behind them, the ties, and how many triplets.

    Of two pictures per row, those that they can tell: the incongruent accuracy.
    """
    scores = np.full((len(CELLS), len(prediction.predictions)), np.nan)
    scores[: prediction.predictions.shape[1]] = prediction.predictions.T
    five = five_quantities(*scores, clusters=prediction.label_ids, resamples=500)
    metrics: dict[str, float] = {}
    for name, estimate in five._asdict().items():
        if np.isfinite(estimate.value):
            metrics |= {name: estimate.value, f"{name}_n": estimate.n}
            metrics |= {f"{name}_low": estimate.low, f"{name}_high": estimate.high}
    return metrics | {"ties": five.incongruent.ties + five.congruent.ties, "triplets": len(set(prediction.label_ids.tolist()))}


def last_whole_checkpoint(folder: str) -> str:
    """The newest checkpoint in ``folder`` that was written to its end: the trainer's state is what is written last.

    Raises:
        ConfigError: there is none.
    """
    for path in sorted(Path(folder).glob("checkpoint-*"), key=lambda p: int(p.name.split("-")[1]), reverse=True):
        try:
            json.loads((path / "trainer_state.json").read_text(encoding="utf-8"))
            return str(path)
        except (OSError, ValueError):
            continue
    raise ConfigError(f"{folder} holds no checkpoint to go on from; leave --resume_from_checkpoint out to start anew")
