"""The other examples run as their READMEs say, from a folder of their own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import run_python

EXAMPLES = Path(__file__).parents[2] / "examples"
SHIPPED = Path(__file__).parents[2] / "pytest_dstfuzz" / "models" / "resources" / "trade"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Copy an example out of this project, whose settings are not a newcomer's, and run it."""

    def run(name: str, *options: str) -> subprocess.CompletedProcess[str]:
        folder = tmp_path / name
        shutil.copytree(EXAMPLES / name, folder, ignore=shutil.ignore_patterns("__pycache__"))
        command = ("-m", "pytest", "-p", "no:cacheprovider")
        report = f"--dst-report={tmp_path / 'report.json'}"
        return run_python(*command, report, *options, cwd=folder)

    return run


def read_report(folder: Path) -> Any:
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))


def test_the_own_tracker_fails_where_a_rule_does(run: Run, tmp_path: Path) -> None:
    done = run("own_tracker", "--dst-model=my_bot:track", "--dst-domains=train")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stdout
    report = read_report(tmp_path)
    changed = {
        change["slot"]
        for turn in report["turns"]
        for variant in turn["variants"]
        if variant["outcome"] == "violation"
        for change in variant["changed_slots"]
    }
    assert changed == {"train-leaveat"}
    assert report["summary"]["errors"] == 0


@pytest.mark.nightly
def test_the_quickstart_tests_the_shipped_tracker(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    if not (SHIPPED / "model.safetensors").is_file():
        pytest.skip("this checkout has no trained checkpoint")
    done = run("quickstart", "--dst-turns=20", "--dst-max-failure-rate=100%")
    assert done.returncode == 0, done.stdout + done.stderr
    report = read_report(tmp_path)
    # What the ini file of the example says, and the search that comes with this tracker.
    assert report["settings"]["model"] == "trade"
    assert report["settings"]["variants"] == 5
    assert report["summary"]["turns"] == 20
    assert report["summary"]["errors"] == 0
    assert report["settings"]["search"] == "noise+bandit"
    assert any(len(variant["edits"]) > 1 for variant in variants(report))


def variants(report: Any) -> list[Any]:
    return [variant for turn in report["turns"] for variant in turn["variants"]]


def test_violations_that_hang_on_unlikely_edits_are_counted(tmp_path: Path) -> None:
    def edit(operator: str, before: str, after: str) -> dict[str, str]:
        return {"operator": operator, "before": before, "after": after}

    def violation(edits: list[Any], context: list[Any], needed: list[Any] | None) -> Any:
        minimal = None if needed is None else {"edits": needed, "context_edits": []}
        past = [{"turn_index": 0, "edits": context}]
        return {
            "outcome": "violation",
            "index": 0,
            "text": "",
            "context": [""],
            "edits": edits,
            "context_edits": past,
            "minimal": minimal,
        }

    swapped = edit("swap", "th", "ht")
    letter, emoji = edit("look_alike", "I", "Ι"), edit("emoji", "", ":)")
    variants = [
        violation([swapped, letter], [emoji], [swapped]),
        violation([emoji, edit("repeat", "i", "ii")], [], [emoji]),
        violation([swapped], [], None),
        violation([edit("any", "I", ""), swapped], [], []),
        {**violation([emoji], [], [emoji]), "outcome": "held"},
    ]
    path = tmp_path / "report.json"
    report = {"schema_version": 3, "summary": {}, "settings": {}}
    turn = {"id": "a-t1", "dialogue_id": "a", "turn_index": 1, "system": "", "user": ""}
    full = {**report, "turns": [{**turn, "variants": variants}]}
    path.write_text(json.dumps(full), encoding="utf-8")
    script = EXAMPLES / "precision" / "unlikely_edits.py"
    command = [sys.executable, str(script), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    somewhere, needed = done.stdout.splitlines()
    assert somewhere == "with such an edit: 2 of 4 {'a look-alike letter': 1, 'an emoji': 2}"
    assert needed == "that need one: 1 of 3 {'an emoji': 1}"
    path.write_text(json.dumps({**report, "turns": []}), encoding="utf-8")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "the report has no violations\n")


def test_the_tired_refund_bot_is_talked_into_refunds(run: Run) -> None:
    done = run("refund_bot")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 1 passed" in done.stdout
    assert "decided by 'all of my', said 3 times: the advantage is 10" in done.stdout
