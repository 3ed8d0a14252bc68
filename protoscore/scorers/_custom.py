"""A user's own metric: a Python file (or an installed module) with a function ``score(images, texts)``.

    # my_metric.py                     protoscore score DATASET --scorer my_metric.py --out RUN
    def score(images, texts):
        "Is the picture bright?"
        return [sum(image.convert("L").resize((8, 8)).tobytes()) / 64 for image in images]

``images`` are RGB pictures of PIL, ``texts`` as many strings; it gives one number a pair (None: it abstains), higher for a
better match. It may also define, at top level, ``higher_is_better = False``, ``batch_size = 64``, and ``batch_free = True``
when no score depends, not even in the last digit, on what else is in the batch (then a pair that was scored in another dataset
or order is never scored again).

**The file is run as it stands, with all rights of the user who named it**, like any script; name no file that you do not trust.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from protoscore.errors import ConfigError
from protoscore.schema import Status
from protoscore.scorers import Facts, Score

if TYPE_CHECKING:
    from PIL.Image import Image


class OwnMetric:
    """The function ``score`` of a module as a scorer. Its revision is the file's digest: an edited metric is another one."""

    def __init__(self, module: ModuleType, name: str):
        if not callable(getattr(module, "score", None)):
            raise ConfigError(f"{module.__file__} defines no function score(images, texts); add one that gives a number a pair")
        self._score = module.score
        self.facts = own_facts(module)
        self.name = name
        self.revision = hashlib.sha256(Path(str(module.__file__)).read_bytes()).hexdigest()[:16]
        self.parameters: dict[str, Any] = {}
        self.batch_size = int(getattr(module, "batch_size", 16))
        self.batch_free = bool(getattr(module, "batch_free", False))

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> list[Score]:
        return [self._one(value) for value in self._score(list(images), list(texts))]

    def _one(self, value: Any) -> Score:
        if isinstance(value, Score):
            return value
        return Score(None, Status.ABSTAINED, "the metric gave None") if value is None else Score(float(value))


def own_facts(module: ModuleType) -> Facts:
    """What such a module says of itself."""
    said = (getattr(module.score, "__doc__", None) or module.__doc__ or "").strip().splitlines()
    return Facts(
        question=said[0] if said else "Whatever its author asks?",
        paper="none",
        licence="its author's",
        higher_is_better=bool(getattr(module, "higher_is_better", True)),
    )


def load_file(path: Path) -> OwnMetric:
    """Run a file and take its ``score``.

    Raises:
        ConfigError: there is no such file, it fails, or it defines no ``score``.
    """
    if not path.is_file():
        raise ConfigError(
            f"--scorer {path}: there is no such file; give the path of a file with a function score(images, texts)"
        )
    name = f"protoscore_own_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigError(
            f"--scorer {path} fails when it is loaded ({type(error).__name__}: {error}); mend the file"
        ) from error
    return OwnMetric(module, path.stem)
