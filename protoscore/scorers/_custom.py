"""A custom metric: a Python file (or an installed module) with a function ``score(images, texts)``.

    # my_metric.py                     protoscore score DATASET --scorer my_metric.py --out RUN
    def score(images, texts):
        "Is the picture bright?"
        return [sum(image.convert("L").resize((8, 8)).tobytes()) / 64 for image in images]

``images`` are RGB pictures of PIL, ``texts`` as many strings; it gives one number per pair (None: it abstains), higher for a
better match. It may also define, at top level, ``higher_is_better = False``, ``batch_size = 64``, and ``batch_free = True``
when no score depends, not even in the last digit, on what else is in the batch (then a pair that was scored in another dataset
or order is never scored again). Files beside it can be imported by name.

**The file is run as it stands, with all rights of the user who named it**, like any script; name no file that you do not trust.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from protoscore.errors import ConfigError
from protoscore.schema import Status
from protoscore.scorers import Facts, Score, number

if TYPE_CHECKING:
    from PIL.Image import Image


class CustomMetric:
    """The function ``score`` of a module as a scorer. Its revision is a digest of the file and of the files beside it that it
    imports: an edited metric is another one."""

    def __init__(self, module: ModuleType, name: str):
        if not callable(getattr(module, "score", None)):
            raise ConfigError(
                f"{module.__file__} defines no function score(images, texts); add one that gives a number per pair"
            )
        self._score = module.score
        self.facts = custom_facts(module)
        self.name = name
        self.revision = _digest(Path(str(module.__file__)))
        self.parameters: dict[str, Any] = {}
        self.batch_size = int(getattr(module, "batch_size", 16))
        self.batch_free = bool(getattr(module, "batch_free", False))

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> list[Score]:
        given = self._score(list(images), list(texts))
        if isinstance(given, (str, bytes, Mapping, set)):
            raise TypeError(f"the metric gave a {type(given).__name__}, not a list of numbers")
        return [_one(value) for value in given]


def _one(value: Any) -> Score:
    if isinstance(value, Score):
        return value
    if value is None:
        return Score(None, Status.ABSTAINED, "the metric gave None")
    try:
        return Score(number(value))
    except TypeError as error:
        return Score(None, Status.ERROR, f"the metric gave {error}")


def custom_facts(module: ModuleType) -> Facts:
    """What such a module says of itself."""
    said = (getattr(module.score, "__doc__", None) or module.__doc__ or "").strip().splitlines()
    return Facts(
        question=said[0] if said else "Whatever its author asks?",
        paper="none",
        licence="its author's",
        higher_is_better=bool(getattr(module, "higher_is_better", True)),
    )


def load_file(path: Path) -> CustomMetric:
    """Run a file and take its ``score``.

    Raises:
        ConfigError: there is no such file, it fails, or it defines no ``score``.
    """
    if not path.is_file():
        raise ConfigError(
            f"--scorer {path}: there is no such file; give the path of a file with a function score(images, texts)"
        )
    name = f"protoscore_custom_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # at the end: a file there hides no library
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"--scorer {path} fails when it is loaded ({type(error).__name__}: {error}); mend the file"
        ) from error
    return CustomMetric(module, path.stem)


def _digest(path: Path) -> str:
    """Of a file and of what it imports from its own folder, at any depth; of the file alone where that is everything."""
    files = [path]
    for file in files:  # grows meanwhile
        files += [other for other in _beside(file, path.parent) if other not in files]
    digest = hashlib.sha256(path.read_bytes())
    for file in sorted(files[1:]):
        digest.update(f"\n{file.relative_to(path.parent).as_posix()}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def _beside(file: Path, folder: Path) -> Iterator[Path]:
    """The files of ``folder`` that an import statement of ``file`` may mean."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):  # compiled, or broken and not imported so far
        return
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        root = file.parents[node.level - 1] if isinstance(node, ast.ImportFrom) and node.level else folder
        for name in [module, *(f"{module}.{alias.name}".strip(".") for alias in node.names)]:
            at = root.joinpath(*name.split(".")) if name else root
            yield from (path for path in (at.with_name(f"{at.name}.py"), at / "__init__.py") if path.is_file())


def adopt(module: ModuleType, name: str) -> CustomMetric:
    """The metric of an installed module that has no more than a function ``score``."""
    return CustomMetric(module, name)
