"""Fragments of the changelog have a kind that there is, and say something."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest
from pages_of_docs import ROOT

FRAGMENTS = sorted((ROOT / "changelog.d").glob("*"))


def test_fragments_have_a_kind() -> None:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "towncrier"
    ]
    kinds = {kind["directory"] for kind in table["type"]}
    for path in FRAGMENTS:
        match = re.fullmatch(r"\+[a-z0-9-]+\.([a-z]+)\.md", path.name)
        assert match is not None, path.name
        assert match[1] in kinds, path.name
        assert path.read_text(encoding="utf-8").strip(), path.name


def test_towncrier_makes_a_release_of_them() -> None:
    pytest.importorskip("towncrier")
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version=9.9.9"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "## [9.9.9]" in done.stdout
    for path in FRAGMENTS:
        first = path.read_text(encoding="utf-8").split("\n")[0].strip()
        assert first[:60] in done.stdout, path.name
