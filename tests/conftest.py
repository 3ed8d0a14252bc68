"""Fixtures shared by the suite. Nothing here or in the tests reaches the network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

ROOT = Path(__file__).parent.parent


def run(*arguments: str, cwd: Path = ROOT, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the interpreter of this suite with ``arguments`` and capture what it says."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        text=True,
        capture_output=True,
        env=os.environ | (env or {}),
        timeout=600,
    )


def cli(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line of protoscore."""
    return run("-c", "from protoscore.cli import main; main()", *arguments, env=env)


BUILD = ["dataset_scripts/protobias/build.py", "--triplets", "160", "--renditions", "2", "--size", "96", "--seed", "4"]


@pytest.fixture(scope="session")
def dataset(tmp_path_factory) -> Path:
    """A small built dataset: 160 triplets, two renditions, both splits, with refusals."""
    out = tmp_path_factory.mktemp("built") / "dataset"
    result = run(*BUILD, "--out", str(out))
    assert result.returncode == 0, result.stderr
    return out
