"""Manners of the command line: what a person sees who types it for the first time, or wrongly."""

from __future__ import annotations

import pytest

from protoscore import catalog
from protoscore.asking.protocol import protocol_names
from protoscore.cli.components import KINDS
from tests.conftest import cli


def test_bare_it_shows_its_help():
    bare, asked = cli(), cli("--help")
    assert bare.returncode == asked.returncode == 0 and bare.stdout.split() == asked.stdout.split() and not bare.stderr


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["score"], "Missing option '--out'; see: protoscore score --help"),
        (["scoer"], "No such command 'scoer'. Did you mean 'scorers', 'score'?; see: protoscore --help"),
        (["rate", "a cat", "a.png", "--nope"], "No such option: --nope; see: protoscore rate --help"),
        (
            ["rate", "a cat", "a.png", "-s", "random", "-s", "constant"],
            "--scorer is given twice, and takes one value; see: protoscore rate --help",
        ),
        (
            ["report", "run", "--out", "a.html", "--out", "b.html"],
            "--out is given twice, and takes one value; see: protoscore report --help",
        ),
        (["judges", "lokal"], "unknown vlm 'lokal'; did you mean 'local'? known: batch, chat, local, scripted"),
    ],
)  # fmt: skip
def test_a_wrong_line_is_one_line_with_the_help_to_look_at(typed, message):
    said = cli(*typed)
    assert (said.returncode, said.stderr.strip(), said.stdout) == (2, f"protoscore: {message}", "")


@pytest.mark.parametrize("verb", KINDS)
def test_every_component_is_listed_with_its_options(verb):
    kind = KINDS[verb][0]
    text = cli(verb).stdout
    for name in catalog.names(kind):
        if hasattr(catalog.module(kind, name), "create"):
            assert f"\n{name}\n" in f"\n{text}"
            one = cli(verb, name).stdout
            assert all(f"{option}=" in one for option in catalog.options_of(kind, name).types), name


def test_every_protocol_is_listed_with_its_labels():
    text = cli("protocols").stdout
    assert all(f"\n{name}" in f"\n{text}" for name in protocol_names())
    assert "Context: {{ item.context" in cli("protocols", "bbq_v/two_people").stdout
