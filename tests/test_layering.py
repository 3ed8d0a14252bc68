"""Which room may know which: data flows one way, a stage knows no benchmark and no component by name, statistics know nothing.

Imports are read from the source, at top level and inside functions; those that only a type checker follows are left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, run

PACKAGE = ROOT / "protoscore"
GROUND = (
    "errors",
    "schema",
    "catalog",
    "folder",
    "sqlite",
    "typed_yaml",
    "provenance",
    "figures",
    "batches",
    "backoff",
    "stats",
)
COMPONENTS = ("scorers", "vlms", "generators", "embedders", "image_filters")
STAGES = ("images", "filters", "embedding", "scoring", "judging")
# From below to above; a room may know those of its own line and of the lines before it, but for the rules further down.
ORDER = (
    GROUND, ("sources", "scenes"), ("modeling",), ("vlms",), ("asking",),
    ("scorers", "generators", "embedders", "image_filters"), STAGES, ("reporting",),
    ("publishing", "uploads", "spaces", "callbacks"), ("benchmarks",), ("cli",),
)  # fmt: skip
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}
GENERAL = (
    "schema.py",
    "images.py",
    "filters.py",
    "embedding.py",
    "sources",
    "scoring",
    "asking",
    "judging",
    "reporting",
    "publishing",
)
PROTOBIAS_WORDS = re.compile(r"\b(?:Triplet|Cell|five_quantities|FiveQuantities|incongruent)\b")


def modules() -> Iterator[tuple[str, Path]]:
    """Dotted name below the package, and file, of every module."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if "assets" not in path.parts:
            yield ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"), path


def imports(path: Path) -> set[str]:
    """Modules below the package that a file imports, dotted, without what stands under ``if TYPE_CHECKING``."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "protoscore":
            inner = (node.module or "").removeprefix("protoscore").lstrip(".")
            names = {f"{inner}.{alias.name}".lstrip(".") for alias in node.names}
            found.update(name if (PACKAGE / Path(*name.split("."))).with_suffix(".py").is_file() else inner for name in names)
        if isinstance(node, ast.Import):
            found.update(a.name.removeprefix("protoscore.") for a in node.names if a.name.startswith("protoscore."))
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return {name for name in found if name and name != "__version__"}


EDGES = [(name, target) for name, path in modules() for target in imports(path)]


def room(name: str) -> str:
    return name.split(".")[0]


def test_every_room_has_its_place():
    unknown = {room(name) for name, _ in modules() if name} - LEVEL.keys() - {"", "__init__"}
    assert not unknown, f"say in ORDER where these belong: {sorted(unknown)}"


def test_data_flows_one_way():
    upwards = [f"{a} imports {b}" for a, b in EDGES if room(a) in LEVEL and LEVEL[room(b)] > LEVEL[room(a)]]
    assert not upwards, "\n".join(upwards)


def test_there_is_no_circle_of_packages():
    below: dict[str, set[str]] = {}
    for a, b in EDGES:
        if room(a) != room(b):
            below.setdefault(room(a), set()).add(room(b))

    def reach(start: str, seen: frozenset[str] = frozenset()) -> Iterator[list[str]]:
        for target in below.get(start, ()):
            if target in seen:
                yield [start, target]
            else:
                for rest in reach(target, seen | {start}):
                    yield [start, *rest]

    circles = {tuple(circle) for name in below for circle in reach(name)}
    assert not circles, circles


def test_a_stage_knows_no_component_by_name_and_no_benchmark():
    for a, b in EDGES:
        if room(a) in (*STAGES, "reporting", "publishing", "asking", "sources"):
            assert room(b) != "benchmarks", f"{a} imports {b}"
            if room(b) in COMPONENTS and "." in b:  # the contract stands in the package itself
                assert b.split(".")[1].startswith("_"), f"{a} imports {b}"


def test_a_component_knows_no_stage_and_no_benchmark():
    for a, b in EDGES:
        if room(a) in COMPONENTS:
            assert room(b) not in (*STAGES, "reporting", "publishing", "benchmarks", "cli"), f"{a} imports {b}"


def test_statistics_know_nothing():
    for a, b in EDGES:
        if room(a) == "stats":
            assert room(b) in ("stats", "errors", "figures"), f"{a} imports {b}"


def test_the_library_knows_nothing_of_what_stands_beside_it():
    others = ("dataset_scripts", "evaluate_modules", "training", "space", "model_cards", "tests")
    for name, path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom | ast.Import):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
                assert not {n.split(".")[0] for n in names} & set(others), name


@pytest.mark.parametrize("place", GENERAL)
def test_general_rooms_keep_nothing_of_protobias(place):
    paths = [PACKAGE / place] if place.endswith(".py") else sorted((PACKAGE / place).rglob("*.py"))
    for path in paths:
        if path.is_file():
            found = PROTOBIAS_WORDS.search(path.read_text(encoding="utf-8"))
            assert not found, f"{path.relative_to(ROOT)} says {found.group()}"  # type: ignore[union-attr]


def test_no_class_name_is_there_twice():
    seen: dict[str, str] = {}
    twice = []
    for name, path in modules():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                if node.name in seen:
                    twice.append(f"{node.name}: {seen[node.name]} and {name}")
                seen[node.name] = name
    assert not twice, "\n".join(twice)


def test_help_costs_no_library_of_numbers():
    """The command line and the package import what they need when they need it."""
    code = (
        "import sys, protoscore.cli; print([n for n in ('numpy', 'pyarrow', 'scipy', 'torch', 'datasets') if n in sys.modules])"
    )
    result = run("-c", code)
    assert result.returncode == 0 and result.stdout.strip() == "[]", result.stdout + result.stderr
