"""The core without its wings: it loads, shows its options and tests a bot."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from processes import COVERAGE

from tools.house.wings import NEEDS

ROOT = Path(__file__).parents[2]
BOT = """
def track(context):
    return {"hotel-area": "north"} if "north" in context.user else {}
"""
#: Loads every public name, and prints the help of the command and of pytest.
ALL = """
import pytest, pytest_dstfuzz
from pytest_dstfuzz.cli import main
assert all(getattr(pytest_dstfuzz, name) for name in pytest_dstfuzz.__all__)
try:
    main(["--help"])
except SystemExit as ended:
    assert not ended.code
raise SystemExit(pytest.main(["-p", "_dstfuzz_pytestplugin", "--help"]))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the core, as if it was installed there."""
    site = tmp_path_factory.mktemp("site")
    left_out = shutil.ignore_patterns("__pycache__", *NEEDS)
    shutil.copytree(ROOT / "pytest_dstfuzz", site / "pytest_dstfuzz", ignore=left_out)
    shutil.copy(ROOT / "_dstfuzz_pytestplugin.py", site)
    about = site / "pytest_dstfuzz-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: pytest-dstfuzz\nVersion: 0\n")
    (about / "entry_points.txt").write_text("[pytest11]\ndstfuzz = _dstfuzz_pytestplugin\n")
    return site


def run(site: Path, folder: Path, *words: str) -> str:
    """Run Python beside the core alone, and return what it printed."""
    # Not measured: coverage would look for the files of the copy when it reports.
    alone = {"PYTHONPATH": str(site), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    around = {name: value for name, value in os.environ.items() if name != COVERAGE}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**around, **alone},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_core_has_its_names_commands_and_options(site: Path, tmp_path: Path) -> None:
    shown = run(site, tmp_path, "-c", ALL)
    assert "--dst-search=" in shown
    assert "  doctor " in shown
    assert "train-agent" not in shown


def test_the_core_tests_a_bot(site: Path, tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(BOT, encoding="utf-8")
    options = ("--dst-model=bot:track", "--dst-turns=3", "--dst-report=report.json")
    run(site, tmp_path, "-m", "pytest", "-p", "_dstfuzz_pytestplugin", *options)
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["turns"]
