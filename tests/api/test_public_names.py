"""The public door: names that load lazily, old imports that still work."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import pytest_dstfuzz
from pytest_dstfuzz.errors import DstfuzzDeprecationWarning

STUB = Path(pytest_dstfuzz.__file__).with_suffix(".pyi")
#: What the README imported before the public names were there.
OLD = {
    "pytest_dstfuzz.dialogue.types": ("Context", "Dialogue", "Turn", "BeliefState"),
    "pytest_dstfuzz.trackers.protocol": ("Prediction", "Tracker", "gini_impurity"),
    "pytest_dstfuzz.perturb.lexicon": ("load_lexicon",),
    "pytest_dstfuzz.perturb.lexicon.sources": ("KeyedVectorsNeighbours", "wordnet_synonyms"),
}


@pytest.mark.parametrize("name", pytest_dstfuzz.__all__)
def test_a_public_name_is_there_and_has_a_docstring(name: str) -> None:
    found = getattr(pytest_dstfuzz, name)
    assert found.__doc__
    assert name in dir(pytest_dstfuzz)


def test_type_checkers_see_the_same_names() -> None:
    aliases = [
        alias
        for node in ast.parse(STUB.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert sorted(alias.asname or "" for alias in aliases) == sorted(pytest_dstfuzz.__all__)


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


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in OLD.items() for name in names]
)
def test_an_old_import_works_with_one_warning(module: str, name: str) -> None:
    home = importlib.import_module(module)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = getattr(home, name)
    (warning,) = caught
    assert warning.category is DstfuzzDeprecationWarning
    assert f"{module}.{name} is deprecated: it is pytest_dstfuzz" in str(warning.message)
    assert warning.filename == __file__
    new = str(warning.message).split(" it is ")[1].removesuffix(f".{name} now")
    assert found is getattr(importlib.import_module(new), name)


@pytest.mark.parametrize("module", OLD)
def test_an_old_module_has_no_other_names(module: str) -> None:
    with pytest.raises(AttributeError, match="Contxt"):
        importlib.import_module(module).Contxt  # noqa: B018 - the look-up is the test
