"""The public door: names that load lazily."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import pytest_dstfuzz
from pytest_dstfuzz import games

MODULES = (pytest_dstfuzz, games)


@pytest.mark.parametrize(
    ("module", "name"), [(one, name) for one in MODULES for name in one.__all__]
)
def test_a_public_name_is_there_and_has_a_docstring(module: ModuleType, name: str) -> None:
    found = getattr(module, name)
    assert found.__doc__
    assert name in dir(module)


@pytest.mark.parametrize("module", MODULES)
def test_type_checkers_see_the_same_names(module: ModuleType) -> None:
    stub = Path(str(module.__file__)).with_suffix(".pyi")
    aliases = [
        alias
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert sorted(alias.asname or "" for alias in aliases) == sorted(module.__all__)


def test_importing_the_package_loads_nothing() -> None:
    code = (
        "import sys; before = set(sys.modules); import pytest_dstfuzz\n"
        "assert set(sys.modules) - before == {'pytest_dstfuzz'}, set(sys.modules) - before\n"
        "dir(pytest_dstfuzz)\n"
        "from pytest_dstfuzz import Context\n"
        "assert 'pytest_dstfuzz.dialogue.dialogues' in sys.modules\n"
        "assert not {'torch', 'transformers', 'pytest'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'Contxt'"):
        pytest_dstfuzz.Contxt  # type: ignore[attr-defined]  # noqa: B018 - the look-up is the test
