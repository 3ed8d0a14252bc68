"""Score sample pictures while a generator trains, and log the scores where the training logs.

In a plain loop (diffusers with accelerate, or anything else)::

    watch = SampleScorer(["protoscore", "clip_score"], prompts, generate)
    ...
    accelerator.log(watch(step), step=step)

With a transformers, TRL or other Trainer, on each save or evaluation, or every so many steps::

    trainer.add_callback(ScoreSamples(watch, trainer, on="save"))

``generate(prompts)`` is the user's: it makes one PIL picture a prompt with the model as it is now. A metric that fails, or a
``generate`` that does, becomes a count of failures in what is logged and a warning; it never stops the training. Nor does it
change it: random states and the model's training mode are afterwards what they were.
"""

from __future__ import annotations

import logging
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from protoscore.errors import ConfigError, MissingExtra
from protoscore.schema import Status
from protoscore.scorers import Score

if TYPE_CHECKING:
    from PIL.Image import Image

    from protoscore.scorers import Scorer

    Generate = Callable[[list[str]], Sequence[Image]]

try:
    from transformers import TrainerCallback
except ImportError:  # a plain loop does without
    TrainerCallback = None

log = logging.getLogger(__name__)
When = Literal["save", "evaluate", "steps"]


class Sample(NamedTuple):
    """One sample picture's outcome."""

    step: int
    scorer: str
    prompt: str
    score: Score


class SampleScorer:
    """Makes a picture a prompt, scores them, and gives a flat dict to log.

    Args:
        scorers: names (``protoscore``, ``clip_score``, ``protoscore:FOLDER``, ``./my_metric.py``), or scorers.
        prompts: texts to make pictures for, the same at every step, so that steps can be compared.
        generate: makes one picture a prompt.
        prefix: of the logged keys.

    Attributes:
        history: every outcome so far, failures included.

    Raises:
        UnknownName, MissingExtra, CheckpointError: a scorer cannot be loaded. That is found here, before the training.
    """

    def __init__(self, scorers: Sequence[str | Scorer], prompts: Sequence[str], generate: Generate, prefix: str = "samples"):
        from protoscore.catalog import load

        if not prompts or not scorers:
            raise ConfigError("give at least one scorer and one prompt to score samples with")
        self.scorers: list[Scorer] = [load("scorers", s) if isinstance(s, str) else s for s in scorers]
        self.prompts, self.prefix, self.history = list(prompts), prefix, list[Sample]()
        self._generate = generate

    def __call__(self, step: int) -> dict[str, float]:
        """Score samples of the model as it is now.

        Returns:
            ``PREFIX/SCORER`` (mean of those that have a score, higher is better for every metric), ``PREFIX/SCORER_failed``
            (how many have none), ``PREFIX/failed`` (1 when no pictures could be made). A mean without a score is left out.
        """
        with _same_randomness():
            return self._measure(step)

    def _measure(self, step: int) -> dict[str, float]:
        try:
            pictures = [picture.convert("RGB") for picture in self._generate(list(self.prompts))]
            if len(pictures) != len(self.prompts):
                raise ValueError(f"generate gave {len(pictures)} pictures for {len(self.prompts)} prompts")
        except Exception as error:  # the user's code, which may raise anything
            log.warning("step %d: no sample pictures (%s: %s)", step, type(error).__name__, error)
            return {f"{self.prefix}/failed": 1.0}
        logged = {f"{self.prefix}/failed": 0.0}
        for scorer in self.scorers:
            scores = self._score(scorer, pictures, step)
            self.history += [Sample(step, scorer.name, p, s) for p, s in zip(self.prompts, scores, strict=True)]
            values = [s.value for s in scores if s.status == Status.OK and s.value is not None and np.isfinite(s.value)]
            sign = 1.0 if scorer.facts.higher_is_better else -1.0
            key = f"{self.prefix}/{scorer.name}"
            logged |= ({key: sign * float(np.mean(values))} if values else {}) | {
                f"{key}_failed": float(len(scores) - len(values))
            }
        return logged

    def _score(self, scorer: Scorer, pictures: list[Image], step: int) -> list[Score]:
        try:
            scores = scorer.score(pictures, self.prompts)
            if len(scores) != len(pictures):
                raise ValueError(f"{len(scores)} scores for {len(pictures)} pictures")
            return scores
        except (Exception, SystemExit) as error:  # a metric, out of memory beside the training as likely as not
            log.warning("step %d: %s could not score the samples (%s: %s)", step, scorer.name, type(error).__name__, error)
            return [Score(None, Status.ERROR, f"{type(error).__name__}: {error}")] * len(pictures)


@contextmanager
def _same_randomness() -> Iterator[None]:
    """Leave the random states of Python, numpy and torch as they were, so that training goes as it would have."""
    torch = sys.modules.get("torch")
    states = random.getstate(), np.random.get_state(), torch.get_rng_state() if torch else None
    devices = torch.cuda.get_rng_state_all() if torch and torch.cuda.is_available() else None
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        if torch:
            torch.set_rng_state(states[2])
        if torch and devices is not None:
            torch.cuda.set_rng_state_all(devices)


class ScoreSamples(TrainerCallback or object):  # type: ignore[misc]
    """Runs a :class:`SampleScorer` in a Trainer and logs through ``trainer.log`` to whatever it reports to.

    Only the first process makes and scores samples. A model that is split over processes (FSDP, ZeRO-3) cannot generate in one
    of them: there, call the :class:`SampleScorer` where all of them are.

    Args:
        samples: what makes and scores.
        trainer: whose ``log`` is called.
        on: each ``save``, each ``evaluate``, or every ``every`` ``steps``.

    Raises:
        MissingExtra: transformers is not installed.
        ConfigError: ``on`` and ``every`` do not fit together.
    """

    def __init__(self, samples: SampleScorer, trainer: Any, on: When = "save", every: int | None = None):
        if TrainerCallback is None:
            raise MissingExtra("transformers", "models")
        if on not in ("save", "evaluate", "steps"):
            raise ConfigError(f"on must be 'save', 'evaluate' or 'steps', not {on!r}")
        if (on == "steps") != (every is not None) or (every is not None and every < 1):
            raise ConfigError("every is a number of steps, 1 or more, and goes with on='steps'")
        self._samples, self._trainer, self._on, self._every = samples, trainer, on, every

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._on == "save":
            self._run(state, control, kwargs.get("model"))

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._on == "evaluate":
            self._run(state, control, kwargs.get("model"))

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._every and state.global_step % self._every == 0:
            self._run(state, control, kwargs.get("model"))

    def _run(self, state: Any, control: Any, model: Any) -> None:
        if not state.is_world_process_zero:
            return
        training, due = getattr(model, "training", None), control.should_log
        try:
            self._trainer.log(self._samples(state.global_step))
        except Exception as error:  # a tracker that is offline
            log.warning("step %d: samples could not be logged (%s: %s)", state.global_step, type(error).__name__, error)
        control.should_log = due  # trainer.log clears it, and the step's own loss would go unlogged
        if training is not None:
            model.train(training)
