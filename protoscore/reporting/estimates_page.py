"""The page of a benchmark that draws none of its own: every estimate with its interval, group by group."""

from __future__ import annotations

from pathlib import Path

import protoscore
from protoscore.folder import read_manifest
from protoscore.reporting.pages import environment
from protoscore.reporting.results import Results, lines


def estimates_page(results: Results, run: Path) -> str:
    """A self-contained HTML page of ``results``."""
    template = environment().get_template("estimates.html.jinja")
    manifest = read_manifest(run)
    return template.render(results=results, lines=lines(results), manifest=manifest, version=protoscore.__version__)
