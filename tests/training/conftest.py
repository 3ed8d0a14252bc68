"""One small training run, for all tests that look at what a run leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.support import STEPS, train


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("trained")
    assert train("--output_dir", str(out), *STEPS) == 0
    return out
