"""A few pictures with their prompts, for trying the commands on: ``protoscore example FOLDER``."""

from __future__ import annotations

import csv
import tempfile
from importlib.resources import files
from pathlib import Path

from protoscore.errors import ProtoscoreError
from protoscore.folder import plain_disk_errors
from protoscore.scenes.draw import draw_scene
from protoscore.scenes.spec import SceneSpec
from protoscore.schema import derive_seed
from protoscore.typed_yaml import Strict, load_yaml

SIZE = 384  # px


class _Prompt(Strict):
    text: str
    a: SceneSpec
    b: SceneSpec


class _Example(Strict):
    text: str
    one: SceneSpec
    two: SceneSpec
    prompts: list[_Prompt]


def write_example(folder: Path) -> str:
    """Write ``one.png`` and ``two.png``, ``a/`` and ``b/`` with a picture per prompt each, and ``prompts.csv``.

    Returns:
        The text that ``one.png`` and ``two.png`` are both about.

    Raises:
        ProtoscoreError: the folder is there already, or cannot be written to.
    """
    if folder.exists():
        raise ProtoscoreError(f"{folder} is there already; give a folder that is not, or remove it")
    example = load_yaml(Path(str(files("protoscore.scenes") / "example.yaml")), _Example)
    drawn = {"one.png": example.one, "two.png": example.two}
    for number, prompt in enumerate(example.prompts, 1):
        drawn |= {f"a/{number}.png": prompt.a, f"b/{number}.png": prompt.b}
    with plain_disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as draft:
            _write(Path(draft) / "example", drawn, example.prompts)
            (Path(draft) / "example").rename(folder)
    return example.text


def _write(folder: Path, drawn: dict[str, SceneSpec], prompts: list[_Prompt]) -> None:
    for name, spec in drawn.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        draw_scene(spec, derive_seed("example", name), SIZE)[0].save(folder / name)
    lines = [("file", "prompt"), *((f"{number}.png", prompt.text) for number, prompt in enumerate(prompts, 1))]
    with (folder / "prompts.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(lines)
