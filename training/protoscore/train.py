"""Train ProtoScore: ``accelerate launch -m training.protoscore.train --recipe counterbalanced --model_name_or_path ...``.

A recipe is a YAML file of ``recipes`` (or a path); any of its keys can be overridden on the command line.
``--model_name_or_path tiny`` starts the embedded size from scratch and needs no download. ``--resume_from_checkpoint last``
goes on from the newest checkpoint that was written to its end.
"""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from transformers import AutoModelForSequenceClassification, AutoProcessor
from trl import ModelConfig, RewardConfig, get_peft_config, get_quantization_config

from protoscore.benchmarks.protobias.taxonomy import load_taxonomy
from protoscore.benchmarks.protobias.writers.template import write
from protoscore.errors import ConfigError
from protoscore.modeling.classifier import register
from protoscore.modeling.encode import SCORE_TEMPLATE, set_image_size
from protoscore.modeling.loading import UNQUANTIZED, warm_start
from protoscore.modeling.tiny import tiny_model, tiny_processor
from training.protoscore.pairs import PairArguments, evaluation_cells, training_pairs
from training.protoscore.reward import PairTrainer, last_whole_checkpoint
from training.protoscore.run_card import write_record
from training.recipes import parse
from training.script import run

TEXT = "{{ part.text }}"  # where chat templates of the family put a text
RECIPES = Path(__file__).parent / "recipes"


def load(model: ModelConfig, config: RewardConfig, pairs: PairArguments):
    """The processor and the classifier to start from."""
    register()
    if model.model_name_or_path in (None, "tiny"):
        counts = {"animals": 4000, "objects": 4000, "demography": 4000}
        processor = tiny_processor(t.text for t in write(load_taxonomy(), counts, seed=0))
        return processor, tiny_model(processor, seed=config.seed)
    processor = AutoProcessor.from_pretrained(model.model_name_or_path, revision=model.model_revision)
    if not pairs.keep_chat_template:
        processor.chat_template = SCORE_TEMPLATE
    elif TEXT in processor.chat_template:
        processor.chat_template = processor.chat_template.replace(TEXT, pairs.prompt + TEXT)
    elif pairs.prompt:
        raise ConfigError(f"the base's chat template has no {TEXT} to put --prompt before; leave it out")
    set_image_size(processor, pairs.image_size)
    quantization = get_quantization_config(model)
    if quantization is not None:
        quantization.llm_int8_skip_modules = UNQUANTIZED
    classifier = AutoModelForSequenceClassification.from_pretrained(
        model.model_name_or_path, revision=model.model_revision, num_labels=1, dtype=model.dtype,
        attn_implementation=model.attn_implementation, quantization_config=quantization, use_safetensors=True,
    )  # fmt: skip
    classifier.config.id2label = {0: "score"}
    if pairs.head_from:
        if len(pairs.head_from) != 2:
            raise ConfigError("head_from takes two answers, e.g. --head_from yes no")
        warm_start(classifier, model.model_name_or_path, processor, tuple(pairs.head_from), model.model_revision)
    return processor, classifier


def main(arguments: list[str]) -> None:
    pairs, config, model = parse((PairArguments, RewardConfig, ModelConfig), arguments, RECIPES)
    if config.eval_strategy != "no" and not pairs.eval_triplets:
        raise ConfigError("evaluation during training needs triplets; give --eval_triplets 300, or --eval_strategy no")
    resume = config.resume_from_checkpoint
    if resume == "last":
        resume = last_whole_checkpoint(config.output_dir)
    processor, classifier = load(model, config, pairs)
    trainer = PairTrainer(
        model=classifier, args=config, train_dataset=training_pairs(pairs), eval_dataset=evaluation_cells(pairs),
        processor=processor, cache_gb=pairs.vision_cache_gb, peft_config=get_peft_config(model),
    )  # fmt: skip
    trainer.train(resume_from_checkpoint=resume)
    trainer.save_model(config.output_dir)  # uploads nothing
    if trainer.is_world_process_zero():
        write_record(config.output_dir, model.model_name_or_path or "tiny", pairs, config, trainer.state)
    if config.push_to_hub:
        trainer.push_to_hub()


if __name__ == "__main__":
    run(main)
