"""Extras are small, messages name the smallest, and TRADE needs no transformers."""

from __future__ import annotations

import ast
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
OURS = re.compile(r"pytest-dstfuzz\[(.*)\]")


def packages(extra: str) -> set[str]:
    """Return the packages that an extra asks for, those of the extras in it too."""
    found: set[str] = set()
    for requirement in PROJECT["optional-dependencies"][extra]:
        if inner := OURS.fullmatch(requirement):
            found.update(*map(packages, inner[1].split(",")))
        else:
            found.add(re.split(r"[^\w.-]", requirement)[0])
    return found


EXTRAS = {name: packages(name) for name in PROJECT["optional-dependencies"]}
#: A module of another name than the package that is asked for, which brings it.
BRINGS = {"tokenizers": "transformers", "markupsafe": "jinja2"}


def named_extras() -> list[tuple[str, str, frozenset[str]]]:
    """Return place, extra and packages of each message that names an extra."""
    found = []
    for path in sorted((ROOT / "pytest_dstfuzz").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id
            if called in ("needs_extra", "MissingExtraError"):
                words = [part.value for part in node.args if isinstance(part, ast.Constant)]
                # Computed names are tested by their users.
                if len(words) == len(node.args):
                    place = f"{path.relative_to(ROOT)}:{node.lineno}"
                    found.append((place, words[1], frozenset(words[2:])))
    return found


def test_messages_name_the_smallest_extra() -> None:
    named = named_extras()
    assert len(named) > 8
    base = {re.split(r"[^\w.-]", requirement)[0] for requirement in PROJECT["dependencies"]}
    wrong = []
    for place, extra, modules in named:
        needed = {BRINGS.get(module, module) for module in modules} - base
        enough = {name: len(has) for name, has in EXTRAS.items() if needed <= has}
        if extra not in enough:
            wrong.append(f"{place}: {extra} has not all of {sorted(needed)}")
        elif enough[extra] > min(enough.values()):
            wrong.append(f"{place}: smaller than {extra}: {min(enough, key=enough.__getitem__)}")
    assert wrong == []


def test_the_extra_of_trade_is_torch_alone() -> None:
    assert EXTRAS["trade"] == {"torch"}
    assert EXTRAS["simpletod"] == EXTRAS["models"] == {"torch", "transformers"}
    assert not any("torch" in line or "transformers" in line for line in PROJECT["dependencies"])


#: A plugin of pytest that hides packages, wherever they are imported.
HIDING = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in {names}:
            raise ModuleNotFoundError(f'No module named {{name!r}}', name=name)
sys.meta_path.insert(0, Hidden())
"""


def run_without(pytester: pytest.Pytester, names: set[str], *options: str) -> pytest.RunResult:
    """Run the built-in suite on a tracker, where packages cannot be imported."""
    pytester.makepyfile(hiding=HIDING.format(names=names))
    return pytester.runpytest_subprocess("-p", "hiding", "-p", "no:hypothesispytest", *options)


@pytest.mark.nightly
@pytest.mark.usefixtures("new_processes")
def test_trade_runs_where_transformers_cannot_be_imported(pytester: pytest.Pytester) -> None:
    pytest.importorskip("torch", reason="TRADE needs torch")
    result = run_without(
        pytester,
        {"transformers", "tokenizers"},
        *("--dst-model=trade", "--dst-turns=4", "--dst-max-failure-rate=100%"),
    )
    result.assert_outcomes(passed=4)


@pytest.mark.usefixtures("new_processes")
@pytest.mark.parametrize("model", ["trade", "simpletod"])
def test_a_shipped_tracker_without_its_packages_names_its_own_extra(
    pytester: pytest.Pytester, model: str
) -> None:
    result = run_without(pytester, {"torch", "transformers"}, f"--dst-model={model}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f'*pip install "pytest-dstfuzz[[]{model}[]]"*'])


def test_the_base_install_is_small() -> None:
    found: set[str] = set()
    wanted = list(PROJECT["dependencies"])
    while wanted:
        requirement = Requirement(wanted.pop())
        name = canonicalize_name(requirement.name)
        here = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if here and name not in found:
            found.add(name)
            wanted += metadata.requires(name) or []
    # At most 12 with the package itself.
    assert len(found) <= 11, sorted(found)
