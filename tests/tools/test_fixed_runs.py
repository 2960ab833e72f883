"""The fixed runs of a rebuild: they leave reports, and each difference of two is found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tools.house import fixed_runs


def write(folder: Path, **report: Any) -> Path:
    folder.mkdir()
    (folder / "pizza.json").write_text(json.dumps(report), encoding="utf-8")
    return folder


def report(**more: Any) -> dict[str, Any]:
    return {
        "tool": {"name": "dst", "version": "1"},
        "summary": {"violations": 3, "rate": 0.5},
        "turns": [{"id": "a", "text": "at http://127.0.0.1:4000/bot"}],
        "run": {"started": "monday", "contexts": {"asked": 7}},
        **more,
    }


def test_times_versions_and_ports_are_no_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    write(tmp_path / "one", **report())
    other = {
        "tool": {"name": "dst", "version": "2"},
        "turns": [{"id": "a", "text": "at http://127.0.0.1:5000/bot"}],
        "run": {"started": "friday", "took": 3, "contexts": {"asked": 7}},
    }
    write(tmp_path / "two", **report(**other))
    assert fixed_runs.main(["--compare", str(tmp_path / "one"), str(tmp_path / "two")]) == 0
    assert capsys.readouterr().out == "0 differences\n"


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"summary": {"violations": 4, "rate": 0.5}}, "summary.violations"),
        ({"summary": {"violations": 3}}, "summary.rate"),
        ({"summary": {"violations": 3.0, "rate": 0.5}}, "summary.violations"),
        ({"turns": []}, "turns"),
        ({"run": {"contexts": {"asked": 8}}}, "run.contexts.asked"),
        ({"more": None}, "more"),
    ],
)
def test_anything_else_is_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, Any], path: str
):
    before = write(tmp_path / "one", **report())
    after = write(tmp_path / "two", **report(**changed))
    assert fixed_runs.main(["--compare", str(before), str(after)]) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"pizza.json: {path}: ")
    assert last.startswith("1 ")


def test_new_names_are_given(tmp_path: Path):
    before = write(tmp_path / "one", failures={"kind": "lost-3f"})
    after = write(tmp_path / "two", broken={"kind": "lost"})
    compare = ["--compare", str(before), str(after), "--renamed", "failures=broken"]
    assert fixed_runs.main(compare) == 1
    assert fixed_runs.main([*compare, "--renamed", "lost-3f=lost"]) == 0


@pytest.mark.nightly
def test_a_run_leaves_its_report_and_status(tmp_path: Path):
    assert fixed_runs.main(["--output", str(tmp_path / "one"), "--only", "tool-calls"]) == 0
    found = json.loads((tmp_path / "one" / "tool-calls.json").read_text(encoding="utf-8"))
    assert found["summary"]["violations"] > 0
    statuses = json.loads((tmp_path / "one" / "statuses.json").read_text(encoding="utf-8"))
    assert statuses == {"tool-calls": 1}
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    (tmp_path / "two" / "tool-calls.json").unlink()
    assert fixed_runs.main(["--compare", str(tmp_path / "one"), str(tmp_path / "two")]) == 1
