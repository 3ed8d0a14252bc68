"""Scoring samples in a real (tiny) training run: logged where the training logs, and never in its way."""

from __future__ import annotations

import random

import numpy as np
import pytest
from PIL import Image

from protoscore.errors import ConfigError
from protoscore.schema import Status
from protoscore.scorers import Facts, Score

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from protoscore.callbacks import SampleScorer, ScoreSamples  # noqa: E402

PROMPTS = ["a bird beside a pond with exactly two stones nearby.", "a dog in a park."]


class Brightness:
    """A metric that fails on demand."""

    name, revision, batch_size, parameters = "brightness", "1", 8, {}
    facts = Facts(question="How dark?", paper="none", licence="none", higher_is_better=False)

    def __init__(self, answers=None):
        self.answers = answers

    def score(self, images, texts):
        if isinstance(self.answers, Exception):
            raise self.answers
        return self.answers or [Score(float(np.asarray(image).mean())) for image in images]


class Regression(torch.nn.Module):
    """The smallest thing that a Trainer trains, and that paints its weight."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x, labels):
        return {"loss": ((self.drop(self.weight * x) - labels) ** 2).mean()}

    def generate(self, prompts):
        self.eval()
        torch.rand(7), random.random(), np.random.rand()
        level = int(min(255, 20 + 100 * abs(float(self.weight.detach()))))
        return [Image.new("L", (96, 96), level) for _ in prompts]


def train(folder, scorers, generate=None, **options):
    torch.manual_seed(0)
    model = Regression()
    settings = transformers.TrainingArguments(
        output_dir=folder, max_steps=6, logging_steps=2, save_steps=3, eval_strategy="steps", eval_steps=3, report_to=[],
        per_device_train_batch_size=2, learning_rate=0.1, use_cpu=True, disable_tqdm=True, save_total_limit=1,
    )  # fmt: skip
    data = [{"x": torch.tensor([1.0]), "labels": torch.tensor([2.0])}] * 12
    trainer = transformers.Trainer(model, settings, train_dataset=data, eval_dataset=data[:2])
    samples = SampleScorer(scorers, PROMPTS, generate or model.generate)
    if options.pop("watched", True):
        trainer.add_callback(ScoreSamples(samples, trainer, **options))
    trainer.train()
    return trainer, samples


def logged(trainer, key):
    return {entry["step"]: entry[key] for entry in trainer.state.log_history if key in entry}


@pytest.mark.parametrize(
    ("options", "steps"), [({"on": "save"}, [3, 6]), ({"on": "evaluate"}, [3, 6]), ({"on": "steps", "every": 2}, [2, 4, 6])]
)
def test_a_real_trainer_logs_the_scores_and_trains_as_without(tmp_path, options, steps):
    trainer, samples = train(tmp_path / "a", ["protoscore", Brightness()], **options)
    plain, _ = train(tmp_path / "b", ["constant"], watched=False)
    assert list(logged(trainer, "samples/protoscore")) == list(logged(trainer, "samples/brightness")) == steps
    assert all(value < 0 for value in logged(trainer, "samples/brightness").values())  # lower is better: the sign is turned
    assert set(logged(trainer, "samples/failed").values()) == {0.0}
    assert len(samples.history) == 4 * len(steps)
    assert logged(trainer, "loss") == logged(plain, "loss") and float(trainer.model.weight) == float(plain.model.weight)


@pytest.mark.parametrize(
    ("metric", "generate", "failed", "broken"),
    [
        (Brightness(RuntimeError("CUDA out of memory")), None, 2.0, 0.0),
        (Brightness([Score(None, Status.REFUSED), Score(float("nan"))]), None, 2.0, 0.0),
        (Brightness([Score(1.0)]), None, 2.0, 0.0),
        (Brightness(), lambda prompts: 1 / 0, None, 1.0),
        (Brightness(), lambda prompts: [Image.new("RGB", (8, 8))], None, 1.0),
        (Brightness(), lambda prompts: ["no picture"] * 2, None, 1.0),
    ],
)
def test_failures_are_states(metric, generate, failed, broken):
    samples = SampleScorer([metric], PROMPTS, generate or Regression().generate)
    logged = samples(1)
    assert "samples/brightness" not in logged and logged["samples/failed"] == broken
    assert logged.get("samples/brightness_failed") == failed
    assert len(samples.history) == (2 if failed else 0)


def test_the_training_goes_on_when_a_metric_fails(tmp_path):
    trainer, _ = train(tmp_path, [Brightness(RuntimeError("CUDA out of memory"))], on="save")
    assert trainer.state.global_step == 6 and logged(trainer, "samples/brightness_failed") == {3: 2.0, 6: 2.0}


def test_a_tracker_that_is_offline_does_not_stop_the_training(tmp_path):
    class Offline(transformers.TrainerCallback):
        def on_log(self, args, state, control, logs=None, **kwargs):
            if "samples/failed" in logs:
                raise ConnectionError("tracker is offline")

    model = Regression()
    settings = transformers.TrainingArguments(
        output_dir=tmp_path, max_steps=2, save_steps=1, report_to=[], use_cpu=True, disable_tqdm=True
    )
    data = [{"x": torch.tensor([1.0]), "labels": torch.tensor([2.0])}] * 4
    trainer = transformers.Trainer(model, settings, train_dataset=data, callbacks=[Offline()])
    trainer.add_callback(ScoreSamples(SampleScorer(["constant"], PROMPTS, model.generate), trainer))
    trainer.train()
    assert trainer.state.global_step == 2


def test_a_plain_loop_and_wrong_settings():
    samples = SampleScorer(["constant"], PROMPTS, lambda prompts: [Image.new("RGB", (8, 8))] * 2, prefix="val")
    assert samples(5) == {"val/failed": 0.0, "val/constant": 0.5, "val/constant_failed": 0.0}
    assert [(s.step, s.prompt, s.score.value) for s in samples.history] == [(5, p, 0.5) for p in PROMPTS]
    for options in ({"on": "never"}, {"on": "steps"}, {"on": "save", "every": 2}, {"on": "steps", "every": 0}):
        with pytest.raises(ConfigError):
            ScoreSamples(samples, None, **options)
    with pytest.raises(ConfigError):
        SampleScorer(["constant"], [], lambda prompts: [])
