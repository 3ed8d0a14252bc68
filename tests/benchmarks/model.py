"""Speed of ProtoScore: ``python -m tests.benchmarks.model [--size tiny|4b]``. Prints, asserts nothing.

Random weights; the 4B size has Qwen3-VL-4B's shape and needs a GPU, the tiny size is protoscore-tiny's shape on the CPU. Three
ways do the same work side by side, warm, alternated, best of a few rounds:

* loop: one pair after the other, each picture in a forward pass of its own
* TRL: its trainer with its own settings (no workers, activation checkpointing, a pair a batch), and the smallest collator that
  shows it pictures
* ours: scoring in batches of similar length, prepared ahead; training with batches and workers

Training is the recipes' LoRA in all three. MFU is the arithmetic of the loop's forward (and backward) passes, counted by torch,
over what the machine can do in that time: the maker's bfloat16 figure on a known GPU, elsewhere a large matrix product timed in
the same run.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import torch
from datasets import Dataset
from peft import LoraConfig, get_peft_model
from PIL import Image
from torch.utils.flop_counter import FlopCounterMode
from transformers import Qwen3VLConfig
from trl import RewardConfig

from protoscore.modeling.classifier import Qwen3VLForSequenceClassification
from protoscore.modeling.encode import encode, set_image_size
from protoscore.modeling.protoscore import ProtoScore
from protoscore.modeling.tiny import tiny_config, tiny_processor
from training.protoscore.reward import PairTrainer

PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12}  # bfloat16, dense, per the makers
TEXTS = [
    "A bird in a green meadow.",
    "A bird in a green meadow with exactly two stones nearby and a tall tree behind it, seen from the side.",
    "A vehicle on a street, to the left of a red box.",
    "A person in an office holds a blue book; a lamp, a chair and three potted plants stand in the background of the room.",
]
LORA = LoraConfig(
    r=16, lora_alpha=32, lora_dropout=0.05, modules_to_save=["score"], task_type="SEQ_CLS",
    target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
)  # fmt: skip
ROUNDS = 3


def model_4b(processor) -> Qwen3VLForSequenceClassification:
    """Qwen3-VL-4B's layers (as its published configuration has them) with random weights, in bfloat16 on the GPU."""
    tiny = tiny_config(processor).to_dict()
    tokens = {key: value for key, value in tiny.items() if key.endswith("_token_id")}
    text = dict(
        vocab_size=len(processor.tokenizer), hidden_size=2560, intermediate_size=9728, num_hidden_layers=36,
        num_attention_heads=32, num_key_value_heads=8, head_dim=128, pad_token_id=processor.tokenizer.pad_token_id,
        rope_parameters={"rope_type": "default", "rope_theta": 5e6, "mrope_section": [24, 20, 20], "mrope_interleaved": True},
    )  # fmt: skip
    vision = dict(
        depth=24, hidden_size=1024, intermediate_size=4096, num_heads=16, patch_size=16, out_hidden_size=2560,
        num_position_embeddings=2304, deepstack_visual_indexes=[5, 11, 17],
    )  # fmt: skip
    config = Qwen3VLConfig(text_config=text, vision_config=vision, id2label={0: "score"}, tie_word_embeddings=False, **tokens)
    with torch.device("cuda"):
        return Qwen3VLForSequenceClassification(config).to(torch.bfloat16)


def pictures(count: int, side: int) -> list[Image.Image]:
    """Pictures of a few shapes, as users have them."""
    rng = np.random.default_rng(0)
    shapes = [(side, side), (side * 3 // 2, side), (side, side * 4 // 3)]
    return [Image.fromarray(rng.integers(0, 256, (h, w, 3), dtype=np.uint8)) for w, h in (shapes[i % 3] for i in range(count))]


def best(*actions: Callable[[], object]) -> list[float]:
    """Shortest time of each action over a few alternated rounds, after one to warm up."""
    times: list[list[float]] = [[] for _ in actions]
    for number in range(ROUNDS + 1):
        for action, seen in zip(actions, times, strict=True):
            start = time.perf_counter()
            action()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            if number:
                seen.append(time.perf_counter() - start)
    return [min(seen) for seen in times]


def peak_memory(action: Callable[[], object]) -> float:
    """GB that ``action`` adds at its peak: on the GPU as its allocator counts, else of a fork of this process."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        action()
        return (torch.cuda.max_memory_allocated() - before) / 1e9
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        torch.set_num_threads(1)  # the threads of this process are not in its fork, and work for them would wait for ever
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        action()
        os.write(writer, str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        kilobytes = answer.read()
    os.waitpid(child, 0)
    return float(kilobytes) / 1e6


def machine_flops() -> tuple[float, str]:
    """What this machine can do a second, and where the figure is from."""
    if torch.cuda.is_available():
        name = torch.cuda.get_device_name()
        for known, peak in PEAKS.items():
            if known in name:
                return peak, f"{name}, {peak / 1e12:.0f} TFLOP/s by its maker"
    device, dtype = ("cuda", torch.bfloat16) if torch.cuda.is_available() else ("cpu", torch.float32)
    size = 8192 if device == "cuda" else 1024
    a = torch.randn(size, size, device=device, dtype=dtype)
    (seconds,) = best(lambda: a @ a)
    return 2 * size**3 / seconds, f"{device}, {2 * size**3 / seconds / 1e9:.0f} GFLOP/s in a {size}-wide matrix product"


def loop_scores(model: ProtoScore, images: list[Image.Image], texts: list[str]) -> list[float]:
    return [model.score_batch([image], [text])[0][0] for image, text in zip(images, texts, strict=True)]


def rows(images: list[Image.Image], texts: list[str]) -> Dataset:
    """Pairs whose two pictures are drawn from the list on access."""
    table = Dataset.from_dict({"text": texts, "seed": list(range(len(texts)))})

    def draw(batch: dict) -> dict:
        sides = {
            side: [images[(i + shift) % len(images)] for i in batch["seed"]] for side, shift in (("chosen", 0), ("rejected", 1))
        }
        return {"text": batch["text"], "margin": [0.5] * len(batch["text"]), **sides}

    return table.with_transform(draw)


def loop_training(model: ProtoScore, images: list[Image.Image], texts: list[str], learns: list[torch.nn.Parameter]) -> None:
    """A step a pair, each picture in a forward pass of its own."""
    optimizer = torch.optim.AdamW(learns, lr=1e-5)
    for i, text in enumerate(texts):
        sides = [encode(model.processor, [images[(i + s) % len(images)]], [text]).inputs.to(model.model.device) for s in (0, 1)]
        chosen, rejected = (model.model(**inputs, use_cache=False).logits for inputs in sides)
        torch.nn.functional.softplus(0.5 - (chosen - rejected)).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def trainer_run(model: ProtoScore, data: Dataset, batch: int, **settings: object) -> None:
    with tempfile.TemporaryDirectory() as folder, Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        config = RewardConfig(
            output_dir=folder, per_device_train_batch_size=batch, num_train_epochs=1, report_to="none", save_strategy="no",
            logging_strategy="no", disable_tqdm=True, use_cpu=not torch.cuda.is_available(), learning_rate=1e-5, **settings,
        )  # fmt: skip
        PairTrainer(model=model.model, args=config, train_dataset=data, processor=model.processor).train()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", choices=["tiny", "4b"], default="4b" if torch.cuda.is_available() else "tiny")
    parser.add_argument("--pairs", type=int, default=0, help="pairs a measurement (default 48, or 128 at 4b)")
    parser.add_argument("--batch", type=int, default=0, help="pairs a batch of ours (default 16 for scoring, 8 for training)")
    options = parser.parse_args()
    big = options.size == "4b"
    count, side = options.pairs or (128 if big else 48), 512 if big else 96
    processor = tiny_processor(TEXTS * 3)
    set_image_size(processor, side)
    network = model_4b(processor) if big else Qwen3VLForSequenceClassification(tiny_config(processor))
    model = ProtoScore(network, processor)
    images, texts = pictures(count, side), [TEXTS[i % len(TEXTS)] for i in range(count)]
    can, where = machine_flops()
    weights = sum(p.numel() for p in network.parameters())
    print(
        f"{options.size}: {weights / 1e6:,.1f} M weights, {side} px, {count} pairs, {torch.get_num_threads()} threads; {where}"
    )
    batch = options.batch or 16
    scoring = {
        "loop": lambda: loop_scores(model, images, texts),
        "ours": lambda: model.score(images, texts, batch_size=batch),
    }
    report("scoring", "images", count, flops(lambda: model.score_batch(images[:1], texts[:1])), can, scoring)
    model.model = get_peft_model(network, LORA)
    learns = [p for p in model.model.parameters() if p.requires_grad]
    data, workers, bf16 = rows(images, texts), min(4, os.cpu_count() or 1), torch.cuda.is_available()
    training = {
        "loop": lambda: loop_training(model, images, texts, learns),
        "TRL": lambda: trainer_run(model, data, 1, bf16=bf16, activation_checkpointing=True),
        "ours": lambda: trainer_run(
            model, data, options.batch or 8, bf16=bf16, activation_checkpointing=False, dataloader_num_workers=workers
        ),
    }
    report("training", "pairs", count, flops(lambda: loop_training(model, images, texts[:1], learns)), can, training)


def flops(action: Callable[[], object]) -> int:
    """Floating-point operations of matrix products and attention in ``action``, backward passes included."""
    with FlopCounterMode(display=False) as counter:
        action()
    return counter.get_total_flops()


def report(what: str, unit: str, count: int, each: int, can: float, ways: dict[str, Callable[[], object]]) -> None:
    seconds = best(*ways.values())
    for (name, action), taken in zip(ways.items(), seconds, strict=True):
        print(
            f"{what:9} {name:5} {count / taken:8.2f} {unit}/s  x{seconds[0] / taken:5.2f}  "
            f"peak +{peak_memory(action):6.2f} GB  MFU {count * each / taken / can:6.1%}"
        )


if __name__ == "__main__":
    main()
