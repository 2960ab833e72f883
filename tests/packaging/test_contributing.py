"""Commands of contributors: hooks of commits, and the matrix of versions."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
HOOKS = ROOT / ".pre-commit-config.yaml"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def pinned() -> dict[str, str]:
    """Return name -> version of all that `make` and CI install."""
    lines = (ROOT / ".ci" / "constraints.txt").read_text("utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_hooks_are_the_pinned_tools_of_the_checkout() -> None:
    """Nothing is fetched for them: they work offline, in the versions that CI has."""
    for repository in yaml.safe_load(HOOKS.read_text("utf-8"))["repos"]:
        assert repository["repo"] == "local"
        for hook in repository["hooks"]:
            folder, tool = hook["entry"].split()[0].rsplit("/", 1)
            assert (folder, hook["language"]) == (".venv/bin", "system")
            assert tool in pinned()


def test_the_hooks_are_valid() -> None:
    pytest.importorskip("pre_commit", reason="pre-commit is not installed")
    command = [sys.executable, "-m", "pre_commit", "validate-config", str(HOOKS)]
    subprocess.run(command, check=True)


def test_the_matrix_is_what_the_package_says() -> None:
    code = (ROOT / "noxfile.py").read_text("utf-8")
    pythons = re.search(r"^PYTHONS = \((.*)\)$", code, re.MULTILINE)
    assert pythons is not None
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert re.findall(r'"([\d.]+)"', pythons[1]) == named
    (pytest_wanted,) = (line for line in PROJECT["dependencies"] if line.startswith("pytest"))
    oldest = pytest_wanted.partition(">=")[2].partition(".")[0]
    assert re.findall(r'"(\d+)": "pytest>=', code)[0] == oldest


def test_what_is_asked_for_by_name_is_pinned() -> None:
    """Users and tests install the same versions everywhere. Benchmarks and pages may differ."""
    names = {
        re.split(r"[^\w-]", line)[0].lower()
        for extra in ("all", "test", "dev")
        for line in (*PROJECT["optional-dependencies"][extra], *PROJECT["dependencies"])
        if not line.startswith("pytest-dstfuzz")
    }
    assert names - set(pinned()) == set()
