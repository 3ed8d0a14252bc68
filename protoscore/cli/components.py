"""What there is: the components of each kind, and the protocols."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer()

KINDS = {  # verb -> kind of component, and what it is for
    "benchmarks": ("benchmarks", "The benchmarks under one contract: what can be drawn, scored, asked and reported."),
    "generators": ("generators", "What makes pictures: for protoscore images --generator."),
    "filters": ("image_filters", "What decides which pictures are kept: for protoscore filter --filter."),
    "embedders": ("embedders", "What turns pictures into vectors: for protoscore embed --embedder."),
    "judges": ("vlms", "The models that can be asked: for protoscore judge --judge."),
}


def _add(verb: str, kind: str, text: str) -> None:
    @app.command(verb, help=text)
    def listed(name: Annotated[str | None, typer.Argument(help="One of them, for all that is known of it.")] = None) -> None:
        from protoscore.reporting.component_cards import print_components

        print_components(kind, name)


for _verb, (_kind, _text) in KINDS.items():
    _add(_verb, _kind, _text)


@app.command()
def protocols(name: Annotated[str | None, typer.Argument(help="One of them, for its prompt.")] = None) -> None:
    """The questions that can be put to a model, with their closed answers: for protoscore judge PROTOCOL."""
    from protoscore.reporting.component_cards import print_protocols

    print_protocols(name)
