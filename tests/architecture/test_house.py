"""What keeps the house one that people find their way in, read from the source."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "pytest_dstfuzz"


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """Return the syntax tree of each module. Nothing holds these millions of nodes afterwards."""
    return {
        ".".join(("pytest_dstfuzz", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def imported(tree: ast.Module, modules: Collection[str]) -> set[str]:
    """Return those of the modules that a module names anywhere, for types alone too."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if name in modules else node.module for name in names}
    return found & set(modules)


def test_no_class_name_stands_twice(trees: dict[str, ast.Module]) -> None:
    places = defaultdict(list)
    for module, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_modules_import_each_other_in_one_direction(trees: dict[str, ast.Module]) -> None:
    waiting = {module: imported(tree, trees) - {module} for module, tree in trees.items()}
    while free := {module for module, needs in waiting.items() if not needs & set(waiting)}:
        waiting = {module: needs for module, needs in waiting.items() if module not in free}
    in_circles = {module: sorted(needs & set(waiting)) for module, needs in waiting.items()}
    assert in_circles == {}


def test_each_room_says_that_it_is_internal(trees: dict[str, ast.Module]) -> None:
    rooms = [module for module in trees if module.count(".") == 1]
    said = {
        module: ast.get_docstring(trees[module]) or ""
        for module in rooms
        if (PACKAGE / module.split(".")[1]).is_dir()
    }
    assert [module for module, text in said.items() if not text.startswith("Internal: ")] == []


def test_functions_stay_readable(trees: dict[str, ast.Module]) -> None:
    long = {
        f"{module}.{node.name}": length
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (length := (node.end_lineno or 0) - node.lineno + 1) >= 60
    }
    assert long == {}


def test_no_two_files_of_tests_have_one_name() -> None:
    """They are imported by their names: of two, pytest collects the first and stops."""
    names = [path.name for path in PACKAGE.with_name("tests").rglob("test_*.py")]
    assert sorted({name for name in names if names.count(name) > 1}) == []
