"""A wing imports the public names, the documented extension modules, and the wings it needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from test_layers import MODULES, PACKAGE

import pytest_dstfuzz
from tools.docs.extension_modules import PAGE, documented, exported, page_text, source_of
from tools.house.wings import NEEDS

PUBLIC = {name for name in pytest_dstfuzz.__all__ if (PACKAGE / f"{name}.py").is_file()}


def taken_from_outside(wing: str) -> Iterator[tuple[str, str, str]]:
    """Yield file and line, module and name of what a wing imports from the rest of the package."""
    for path in MODULES:
        place = path.relative_to(PACKAGE)
        if place.parts[0] != wing:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [(alias.name, "") for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [(node.module or "", alias.name) for alias in node.names]
            else:
                continue
            for module, name in names:
                # A module of the package is imported by `from` too.
                if source_of(f"{module}.{name}").is_file() and name:
                    module, name = f"{module}.{name}", ""  # noqa: PLW2901
                room = f"{module}.".split(".")[1]
                if module.partition(".")[0] == PACKAGE.name and room not in (wing, *NEEDS[wing]):
                    yield f"{place}:{node.lineno}", module, name


@pytest.mark.parametrize("wing", NEEDS)
def test_a_wing_imports_public_names_and_extension_modules_alone(wing: str) -> None:
    modules = documented()
    wrong = []
    for place, module, name in taken_from_outside(wing):
        if module == PACKAGE.name:
            names = [*pytest_dstfuzz.__all__, "__version__"]
        elif module in modules or module.partition(".")[2] in PUBLIC:
            names = exported(module) or []
        else:
            wrong.append(f"{place}: {module} is not on {PAGE.name}: add it or do without")
            continue
        if name not in names:
            wrong.append(f"{place}: {name} is not in __all__ of {module}")
    assert wrong == []


def test_each_extension_module_is_needed_by_a_wing() -> None:
    used = {module for wing in NEEDS for _, module, _ in taken_from_outside(wing)}
    assert [module for module in documented() if module not in used] == []


def test_the_page_says_what_the_modules_say() -> None:
    assert PAGE.read_text("utf-8") == page_text(), "python -m tools.docs.extension_modules"
