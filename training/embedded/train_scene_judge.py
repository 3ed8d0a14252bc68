"""Train the embedded judge: ``python -m training.embedded.train_scene_judge --recipe scene_judge``.

A generative Qwen3-VL of the embedded size, which answers the prompts of the judging protocols in strict JSON about scenes. Its
vision tower and word embeddings come from train_scene_sight, and its language model learns here, from nothing. Beside the
protocols' questions it checks texts word by word: given only one verdict on a text, it would settle on saying nothing.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import torch
from datasets import Dataset
from torch.nn.functional import cross_entropy
from transformers import AutoProcessor, AutoTokenizer, Qwen3VLForConditionalGeneration, Trainer, TrainingArguments

from protoscore.asking.protocol import Protocol
from protoscore.folder import write_text
from protoscore.modeling.patches import embed_patches_by_product
from protoscore.schema import derive_seed
from protoscore.vlms.local import TAUGHT, read_taught
from training.embedded.judge_model import CHECK_PROMPT, RIGHT, WRONG, is_key, is_matrix, teach_words, widen
from training.embedded.muon import Muon
from training.embedded.tasks import CHECK, DESCRIPTION, TASKS, TRAINING_ONLY, example, protocols
from training.embedded.tasks.base import Task
from training.recipes import parse
from training.script import run

RECIPES = Path(__file__).parent / "recipes"
READING = [TRAINING_ONLY[CHECK], TRAINING_ONLY[DESCRIPTION]._replace(share=TRAINING_ONLY[CHECK].share)]
SHUFFLED_EVERY = 40  # one batch in so many has the labels in another order, word by word


@dataclass
class JudgeArguments:
    """What the judge learns from."""

    start: str = field(default="runs/scene_sight", metadata={"help": "what train_scene_sight made, or a judge to teach more"})
    questions: int = field(default=240_000, metadata={"help": "questions, each asked once"})
    rest_learning_rate: float = field(default=2e-3, metadata={"help": "of what AdamW steps; learning_rate is Muon's"})
    vision_pace: float = field(default=0.2, metadata={"help": "by which the rates are multiplied for the vision tower"})
    reading_steps: int = field(
        default=500,
        metadata={"help": "steps, before those of the questions, in which the vision tower is left as it came"},
    )
    question_seed: int = field(default=5, metadata={"help": "seed of the questions and scenes"})


def questions(args: JudgeArguments, batch: int, tasks: Sequence[Task]) -> Dataset:
    """Rows of ``images``, ``prompt``, ``answer``, and of a text in the prompt its ``place`` and ``wrong`` words (else None)."""
    asked = protocols()
    rows = [{"task": _task(args, i, batch, tasks), "position": i} for i in range(args.questions)]

    def draw(columns: dict) -> dict:
        drawn = [
            _question(args, asked.get(task), task, i, shuffled=(i // batch) % SHUFFLED_EVERY == 1)
            for task, i in zip(columns["task"], columns["position"], strict=True)
        ]
        return {key: [row[key] for row in drawn] for key in ("images", "prompt", "answer", "place", "wrong")}

    return Dataset.from_list(rows).with_transform(draw)


def _task(args: JudgeArguments, position: int, batch: int, tasks: Sequence[Task]) -> str:
    """Long questions come in batches of their own; else neighbours are of one task, for they may share their text."""
    pick = lambda some, *seed: random.Random(derive_seed("task", args.question_seed, *seed)).choices(  # noqa: E731
        some, [task.share for task in some]
    )[0]
    chosen = pick(tasks, "batch", position // batch)
    short = [task for task in tasks if task.pictures == 1]
    return (pick(short, position // 2) if chosen.pictures == 1 else chosen).name


def _question(args: JudgeArguments, protocol: Protocol | None, task: str, position: int, shuffled: bool) -> dict:
    seed = 2 * derive_seed(args.question_seed, position // 2) + position % 2
    drawn = example(task, seed, "train")
    if protocol is None:
        prompt, answer = CHECK_PROMPT + drawn.fields["text"] if task == CHECK else "", drawn.answer.get("answer", "")
    else:
        rng = random.Random(seed)
        protocol = protocol.of(drawn.fields)
        labels = None
        if shuffled:
            labels = {name: rng.sample(values, len(values)) for name, values in protocol.labels().items()}
        variant = rng.choice(["", *protocol.variants])
        prompt, answer = protocol.render(drawn.fields, variant, labels), json.dumps(drawn.answer)
    row = {"images": drawn.images, "prompt": prompt, "answer": answer, "place": None, "wrong": None}
    if drawn.wrong is None:
        return row
    start = prompt.rindex(drawn.fields["text"])
    wrong = [(a + start, b + start) for a, b in drawn.wrong]
    return row | {"place": (start, start + len(drawn.fields["text"])), "wrong": wrong}


class AnswerCollator:
    """Questions to a batch whose labels are the tokens of the answer; of a text to check, a verdict on each of its words."""

    def __init__(self, processor):
        self.processor = processor
        self.start, self.end, self.right, self.wrong = processor.tokenizer.convert_tokens_to_ids(
            ["<|vision_end|>", "<|im_end|>", RIGHT, WRONG]
        )

    def __call__(self, rows: list[dict]) -> dict[str, torch.Tensor]:
        texts = [self.processor.apply_chat_template(_turns(row), tokenize=False) for row in rows]
        batch = dict(self.processor(text=texts, images=[row["images"] for row in rows], padding=True, return_tensors="pt"))
        ids = batch["input_ids"]
        answer = ((ids == self.end).cumsum(1) - (ids == self.end).long() >= 1) & batch["attention_mask"].bool()
        labels = ids.masked_fill(~answer, -100)
        for i, row in enumerate(rows):
            if row["wrong"] is not None:
                first = int((ids[i] == self.start).nonzero()) + 2  # a label stands one place behind its word
                self._mark(labels[i], first, row)
        return batch | {"labels": labels}

    def _mark(self, labels: torch.Tensor, first: int, row: dict) -> None:
        """What is said of each token of the text; and at its end, unless that is where the question is answered."""
        start, stop = row["place"]
        for i, (a, b) in enumerate(self.processor.tokenizer(row["prompt"], return_offsets_mapping=True)["offset_mapping"]):
            if a < stop and start < b:
                labels[first + i] = self.wrong if any(a < end and begin < b for begin, end in row["wrong"]) else self.right
        if not row["answer"]:
            labels[first + i + 1] = self.wrong if row["wrong"] else self.right


class DecisionLoss:
    """Cross-entropy per question, so that an answer of five fields counts as much as one of a single grade.

    The JSON around the decisions is learned within a few steps and then says nothing, so its tokens weigh little; so do the
    many words of a text beside the one grade that it is about.
    """

    def __init__(self, processor, skeleton: float = 0.05, word: float = 0.1, wrong_word: float = 0.3):
        tokens = processor.tokenizer.get_vocab()
        self._skeleton = torch.tensor([i for token, i in tokens.items() if is_key(token) or token in ("}", "<|im_end|>")])
        self._said = {tokens[RIGHT]: word, tokens[WRONG]: wrong_word}
        self._weight = skeleton

    def __call__(self, outputs, labels: torch.Tensor, num_items_in_batch=None) -> torch.Tensor:
        targets = labels[:, 1:]
        losses = cross_entropy(outputs.logits[:, :-1].float().transpose(1, 2), targets, reduction="none", ignore_index=-100)
        weights = torch.where(torch.isin(targets, self._skeleton), self._weight, 1.0)
        for token, weight in self._said.items():
            weights = torch.where(targets == token, weight, weights)
        weights = weights * (targets != -100)
        return ((losses * weights).sum(1) / weights.sum(1)).mean()


def _turns(row: dict) -> list[dict]:
    question = [{"type": "image"} for _ in row["images"]] + [{"type": "text", "text": row["prompt"]}]
    return [{"role": "user", "content": question}, {"role": "assistant", "content": row["answer"]}]


def main(arguments: list[str]) -> None:
    args, config = parse((JudgeArguments, TrainingArguments), arguments, RECIPES)
    config.remove_unused_columns = False
    processor, before = AutoProcessor.from_pretrained(args.start), AutoTokenizer.from_pretrained(args.start)
    model = Qwen3VLForConditionalGeneration.from_pretrained(args.start, dtype="float32", use_safetensors=True)
    widen(model, before, processor, teach_words(processor))
    embed_patches_by_product(model)
    if config.resume_from_checkpoint is None and args.reading_steps:
        read(model, processor, args, config)
    trainer = _trainer(model, processor, args, config, [*TASKS.values(), *TRAINING_ONLY.values()])
    trainer.train(resume_from_checkpoint=config.resume_from_checkpoint)
    trainer.save_model(config.output_dir)
    processor.save_pretrained(config.output_dir)
    earlier = read_taught(Path(args.start))
    asked = trainer.state.global_step * config.per_device_train_batch_size
    taught = {
        "questions": asked + (earlier["questions"] if earlier else 0),
        "protocols": {name: protocol.version for name, protocol in protocols().items()},
    }
    write_text(Path(config.output_dir) / TAUGHT, json.dumps(taught, indent=2) + "\n")


def read(model, processor, args: JudgeArguments, config: TrainingArguments) -> None:
    """Let the language model learn to use what is seen, before it may change how it is seen.

    Together from the start, its random gradients would undo the vision tower's training.
    """
    settings = {"max_steps": args.reading_steps, "lr_scheduler_type": "constant_with_warmup", "save_strategy": "no"}
    count = args.reading_steps * config.per_device_train_batch_size
    first = replace(args, questions=count, question_seed=args.question_seed + 1, vision_pace=1.0)
    model.model.visual.requires_grad_(False)
    model.model.visual.deepstack_merger_list.requires_grad_(True)  # new too
    _trainer(model, processor, first, replace(config, **settings), READING).train()
    model.model.visual.requires_grad_(True)


def _trainer(model, processor, args: JudgeArguments, config: TrainingArguments, tasks: Sequence[Task]) -> Trainer:
    data = questions(args, config.per_device_train_batch_size, tasks)
    pace = lambda name: args.vision_pace if ".visual." in name else 1.0  # noqa: E731 - it sees well, and would forget
    optimizer = Muon(model, config.learning_rate, args.rest_learning_rate, is_matrix, config.weight_decay, pace)
    return Trainer(
        model=model, args=config, train_dataset=data, data_collator=AnswerCollator(processor),
        compute_loss_func=DecisionLoss(processor), optimizers=(optimizer, None),
    )  # fmt: skip


if __name__ == "__main__":
    run(main)
