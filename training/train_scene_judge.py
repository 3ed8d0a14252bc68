"""Train the embedded judge: ``python training/train_scene_judge.py --recipe scene_judge``.

A generative Qwen3-VL of the embedded size, which answers the prompts of the judging protocols in strict JSON about scenes. It
starts from the scene reader (train_scene_reader.py), which already checks descriptions, and its tokenizer learns each
sentence of the protocols' prompts as one token, so that a prompt of a hundred words costs a dozen.
"""

from __future__ import annotations

import json
import os
import random
import re
from dataclasses import dataclass, field, replace

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import torch
from datasets import Dataset
from judge_scenes import CHECK, DESCRIPTION, MEETINGS, SETS, TASKS, UNKNOWABLE, VISIBLE, example
from recipes import recipe_to_config
from scenes import scene_triplets
from script import run
from tokenizers import AddedToken
from torch.nn.functional import cross_entropy
from transformers import (
    AutoModelForSequenceClassification,
    AutoProcessor,
    AutoTokenizer,
    Qwen3VLForConditionalGeneration,
    Trainer,
    TrainingArguments,
)
from trl import TrlParser

from protoscore.errors import ProtoscoreError
from protoscore.judging.protocol import Protocol, load_protocol
from protoscore.modeling.classifier import register
from protoscore.modeling.encode import set_image_size
from protoscore.modeling.tiny import tiny_config
from protoscore.schema import Cell, derive_seed

# A turn is its pictures, its text and an end mark, as protoscore-tiny knows it; the answer follows the mark at once.
CHAT_TEMPLATE = """\
{%- for message in messages -%}
{%- if message.content is string -%}{{ message.content }}{%- else -%}
{%- for part in message.content -%}
{%- if part.type in ('image', 'image_url') -%}<|vision_start|><|image_pad|><|vision_end|>
{%- else -%}{{ part.text }}{%- endif -%}
{%- endfor -%}{%- endif -%}<|im_end|>
{%- endfor -%}"""
SHARES = {  # of the training examples
    "fairjudge/attributes": 0.42, "fairjudge/profession": 0.07, "fairjudge/alignment": 0.05, "protobias/rubric": 0.05,
    "protobias/image_filter": 0.21, "bbq_v/two_people": 0.06, DESCRIPTION: 0.04, CHECK: 0.10,
}  # fmt: skip
RIGHT, WRONG = "<|right|>", "<|wrong|>"  # what is said of each word of a text, in training only
CHECK_PROMPT = "Check every word: "
# Long questions come in batches of their own, so that they do not pad the others: one batch in so many.
SETS_EVERY = 10  # four pictures a question
SHUFFLED_EVERY = 15  # the labels in another order, word by word


@dataclass
class JudgeArguments:
    """What the judge learns from."""

    start: str = field(
        default="runs/scene_reader", metadata={"help": "the reader to start from; train_scene_reader.py makes it"}
    )
    questions: int = field(default=224_000, metadata={"help": "questions, each asked once"})
    image_size: int = field(default=96, metadata={"help": "pixels a side that pictures are scaled to"})
    head_steps: int = field(
        default=150,
        metadata={"help": "steps in which only the new head learns; else the body forgets how pictures and texts differ first"},
    )
    head_learning_rate: float = field(default=1e-2, metadata={"help": "of these steps, constant"})
    question_seed: int = field(default=5, metadata={"help": "seed of the questions and scenes"})


def questions(args: JudgeArguments, batch: int) -> Dataset:
    """Rows of ``images``, ``prompt``, ``answer``, and of a text in the prompt its ``place`` and ``wrong`` words (else None)."""
    protocols = {name: load_protocol(name) for name in TASKS}
    rows = [{"task": _task(args, i, batch), "position": i} for i in range(args.questions)]

    def draw(columns: dict) -> dict:
        drawn = [
            _question(args, protocols.get(task), task, i, shuffled=(i // batch) % SHUFFLED_EVERY == 1)
            for task, i in zip(columns["task"], columns["position"], strict=True)
        ]
        return {key: [row[key] for row in drawn] for key in ("images", "prompt", "answer", "place", "wrong")}

    return Dataset.from_list(rows).with_transform(draw)


def _task(args: JudgeArguments, position: int, batch: int) -> str:
    if (position // batch) % SETS_EVERY == 0:
        return "diversity/attribute_count"
    draw = derive_seed("task", args.question_seed, position // 2) / 2**63  # neighbours share their text, see judge_scenes
    for task, share in SHARES.items():
        draw -= share
        if draw < 0:
            return task
    return "fairjudge/attributes"


def _question(args: JudgeArguments, protocol: Protocol | None, task: str, position: int, shuffled: bool) -> dict:
    seed = 2 * derive_seed(args.question_seed, position // 2) + position % 2
    drawn = example(task, seed, "train")
    if protocol is None:
        prompt, answer = CHECK_PROMPT + drawn.fields["text"] if task == CHECK else "", drawn.answer.get("answer", "")
    else:
        rng = random.Random(seed)
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

    def __init__(self, processor, skeleton: float = 0.05, word: float = 0.1):
        tokens = processor.tokenizer.get_vocab()
        self._skeleton = torch.tensor([i for token, i in tokens.items() if _is_key(token) or token in ("}", "<|im_end|>")])
        self._words = torch.tensor([tokens[RIGHT], tokens[WRONG]])
        self._weight, self._word = skeleton, word

    def __call__(self, outputs, labels: torch.Tensor, num_items_in_batch=None) -> torch.Tensor:
        targets = labels[:, 1:]
        losses = cross_entropy(outputs.logits[:, :-1].float().transpose(1, 2), targets, reduction="none", ignore_index=-100)
        weights = torch.where(torch.isin(targets, self._skeleton), self._weight, 1.0)
        weights = torch.where(torch.isin(targets, self._words), self._word, weights) * (targets != -100)
        return ((losses * weights).sum(1) / weights.sum(1)).mean()


def _is_key(token: str) -> bool:
    return token.startswith(("{", ', "')) and token.endswith(": ")


def _turns(row: dict) -> list[dict]:
    question = [{"type": "image"} for _ in row["images"]] + [{"type": "text", "text": row["prompt"]}]
    return [{"role": "user", "content": question}, {"role": "assistant", "content": row["answer"]}]


def judge_processor(start: str, image_size: int):
    """The processor of ``start`` with one token more for each sentence of the protocols' prompts, label, and new word."""
    protocols = [load_protocol(name) for name in TASKS]
    phrases, pieces = set(), set()
    for protocol in protocols:
        for text in (protocol.prompt, *protocol.variants.values()):
            phrases |= {piece for piece in _pieces(protocol, text) if len(piece) > 5}
        for position, (name, values) in enumerate(protocol.labels().items()):
            pieces |= {("{" if position == 0 else ", ") + json.dumps(name) + ": ", *map(json.dumps, values)}
        if len(protocol.decisions) == 1:  # a whole answer in one token: it is decided where the question ends
            (name,) = protocol.decisions
            pieces |= {json.dumps({name: value}) for value in protocol.labels()[name]}
    processor = AutoProcessor.from_pretrained(start)
    words = [
        AddedToken(word, single_word=True, lstrip=True, normalized=False) for word in _words(protocols, processor.tokenizer)
    ]
    lines = [AddedToken(text, normalized=False) for text in sorted(phrases | pieces | {CHECK_PROMPT, RIGHT, WRONG})]
    processor.tokenizer.add_tokens(words + lines)
    processor.tokenizer.model_max_length = 1024
    processor.chat_template = CHAT_TEMPLATE
    set_image_size(processor, image_size)
    return processor


def _words(protocols: list[Protocol], tokenizer) -> list[str]:
    """Words that questions and labels have and that the tokenizer, which knows scenes' descriptions, would spell."""
    described = {word for t in scene_triplets(24_000, seed=0) for cell in Cell for word in _split(t.description(cell))}
    texts = [str(value) for p in protocols for values in p.labels().values() for value in values]
    texts += [*MEETINGS, *UNKNOWABLE, *(question for question, _ in VISIBLE)]
    asked = {word for text in [*texts, *SETS] for word in _split(text) if len(word) > 1}
    return sorted(word for word in asked - described if len(tokenizer.tokenize(f" {word}")) > 1)


def _split(text: str) -> list[str]:
    return re.findall(r"[A-Za-z]+", text)


def _pieces(protocol: Protocol, text: str) -> list[str]:
    """What is the same in every question, line by line, with line ends and the labels in their first order."""
    labels = {name: ", ".join(map(str, values)) for name, values in protocol.labels().items()}
    filled = re.sub(r"\{\{ labels\.(\w+) \| join\(\", \"\) \}\}", lambda m: labels[m[1]], text.strip())
    return [piece for line in re.findall(r"[^\n]+\n*", filled) for piece in re.split(r"\{[{%].*?[%}]\}", line)]


def judge_model(start: str, processor, seed: int) -> Qwen3VLForConditionalGeneration:
    """The body of a trained reader, with a new vocabulary head and the new tokens' embeddings.

    The reader gathers what it thinks of a picture and a text at the end mark, and there a grade is decided. The keys of a
    longer answer start out as that mark too, other new tokens as the mean of what they are spelt with.
    """
    register()
    torch.manual_seed(seed)
    config = tiny_config(processor)
    config.text_config.max_position_embeddings = 2048
    model = Qwen3VLForConditionalGeneration(config)
    state = AutoModelForSequenceClassification.from_pretrained(start, dtype="float32").model.state_dict()
    known = state.pop("language_model.embed_tokens.weight")
    missing, unexpected = model.model.load_state_dict(state, strict=False)
    if unexpected or missing != ["language_model.embed_tokens.weight"]:
        raise ProtoscoreError(f"{start} is not of the embedded size; give what train_scene_reader.py made as --start")
    spelling, tokenizer = AutoTokenizer.from_pretrained(start), processor.tokenizer
    with torch.no_grad():
        embeddings = model.model.language_model.embed_tokens.weight
        embeddings[: len(spelling)] = known[: len(spelling)]
        for index in range(len(spelling), len(tokenizer)):
            token = tokenizer.convert_ids_to_tokens(index)
            spelt = spelling("<|im_end|>" if _is_key(token) else token, add_special_tokens=False)["input_ids"]
            embeddings[index] = known[spelt].mean(0)
        model.lm_head.weight.zero_()  # a new head says nothing, and pulls at nothing that the body has learned
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model


def main(arguments: list[str]) -> None:
    parser = TrlParser((JudgeArguments, TrainingArguments))
    args, config = parser.parse_args_and_config(args=recipe_to_config(arguments))
    config.remove_unused_columns = False
    processor = judge_processor(args.start, args.image_size)
    model = judge_model(args.start, processor, config.seed)
    if config.resume_from_checkpoint is None:
        teach_head(model, processor, args, config)
    data = questions(args, config.per_device_train_batch_size)
    trainer = _trainer(model, processor, config, data)
    trainer.train(resume_from_checkpoint=config.resume_from_checkpoint)
    trainer.save_model(config.output_dir)
    processor.save_pretrained(config.output_dir)


def teach_head(model, processor, args: JudgeArguments, config: TrainingArguments) -> None:
    """Let the new vocabulary head read what the body knows already, before the body may change.

    Together from the start, both learn to give the most frequent answer, and the body's states lose what tells pictures apart.
    """
    settings = {
        "max_steps": args.head_steps, "learning_rate": args.head_learning_rate, "lr_scheduler_type": "constant",
        "warmup_steps": 0, "save_strategy": "no", "weight_decay": 0.0,
    }  # fmt: skip
    first = replace(args, questions=args.head_steps * config.per_device_train_batch_size, question_seed=args.question_seed + 1)
    model.model.requires_grad_(False)
    data = questions(first, config.per_device_train_batch_size)
    _trainer(model, processor, replace(config, **settings), data).train()
    model.model.requires_grad_(True)


def _trainer(model, processor, config: TrainingArguments, data: Dataset) -> Trainer:
    loss = DecisionLoss(processor)
    return Trainer(
        model=model, args=config, train_dataset=data, data_collator=AnswerCollator(processor), compute_loss_func=loss
    )  # fmt: skip


if __name__ == "__main__":
    run(main)
