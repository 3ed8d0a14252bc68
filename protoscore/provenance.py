"""With what a result was made: versions of what moves a score, and the hardware. Names no machine, no path, no person."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import protoscore

PACKAGES = ("torch", "transformers", "tokenizers", "pillow", "numpy")


def made_with() -> dict[str, Any]:
    """Versions of protoscore, Python and the libraries that are installed; processor, cores, threads, GPU."""
    body: dict[str, Any] = {"protoscore": protoscore.__version__, "python": platform.python_version(), **_installed()}
    body["processor"], body["cores"] = _processor(), os.cpu_count()
    torch = sys.modules.get("torch")  # where no scorer needed it, it says nothing about the scores
    if torch is not None:
        body["threads"] = torch.get_num_threads()
        body["gpu"] = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return body


@cache
def _installed() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


@cache
def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines() if info.is_file() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())
