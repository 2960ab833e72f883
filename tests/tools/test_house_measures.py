"""The measures of the house: lines, wings before and after their move, files that a turn passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.house import measures, ordinary_runs, source_lines

SOURCE = '''"""A docstring
of two lines."""

import json
from os import (
    path,
)


# a comment
def read(text):
    """Read it."""
    import ast
    return json.loads(text), ast, path
'''


def test_lines_of_code_and_of_imports_are_counted(tmp_path: Path):
    (tmp_path / "one.py").write_text(SOURCE, encoding="utf-8")
    found = source_lines.count(source_lines.python_files(tmp_path))
    assert found == source_lines.Lines(files=1, lines=14, code=7, imports=5)


def test_a_file_belongs_to_its_wing_before_and_after_the_move(tmp_path: Path):
    before = {
        "training/trainer.py": "agents",
        "search/policy.py": "agents",
        "search/random.py": None,
        "trackers/trade/network.py": "models",
        "trackers/traders.py": None,
        "cli/sweep.py": "scale",
    }
    for name, wing in before.items():
        assert source_lines.wing_of(tmp_path / name, tmp_path) == wing
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    left = ["trackers/trade", "training", "search/policy.py", "cli/sweep.py"]
    assert source_lines.unmoved(tmp_path) == left
    for name in ("training/trainer.py", "search/policy.py", "trackers/trade/network.py"):
        (tmp_path / name).unlink()
    (tmp_path / "cli/sweep.py").rename(tmp_path / "sweep.py")
    assert source_lines.unmoved(tmp_path) == []
    assert source_lines.wing_of(tmp_path / "models" / "trade" / "network.py", tmp_path) == "models"


@pytest.mark.nightly
def test_a_turn_passes_the_files_of_asking_and_reporting():
    found = {Path(path).relative_to(ordinary_runs.PACKAGE) for path in map(str, files())}
    rooms = {path.parts[0] for path in found}
    assert {"campaign", "perturb", "report"} <= rooms
    assert len(found) > 20
    assert Path("__init__.py") not in found or len(found) < 400


def files() -> list[str]:
    return ordinary_runs.files_of_turn("tool call")


@pytest.mark.nightly
def test_the_table_has_what_needs_no_run(capsys: pytest.CaptureFixture[str]):
    assert measures.main(["--quick"]) == 0
    rows = dict(
        line.strip("| ").split(" | ")
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("| ")
    )
    core, wings, all_ = (
        int(figure.replace(",", ""))
        for figure in rows["lines of Python: core / wings / all"].split(" / ")
    )
    assert core + wings == all_ > 10_000
    assert int(rows["options on the command line"]) > 20
