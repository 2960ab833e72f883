"""Twenty mutants of the flight bot fail, ten rewrites pass, and its README says what happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "flight_bot"
README = FOLDER / "README.md"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(FOLDER))
    import mutation_table  # noqa: PLC0415 - found in the folder of the example

    yield mutation_table
    del sys.modules["mutation_table"]


def rows(text: str) -> list[list[str]]:
    lines = re.findall(r"^\| (.+) \|$", text, re.MULTILINE)
    return [line.split(" | ") for line in lines if line.count(" | ") == 6][2:]


def test_each_mutant_changes_a_clean_answer_and_no_rewrite_does(table: ModuleType) -> None:
    clean = table.answers(table.BOT)
    assert len(clean) == 73
    for kind, count in (("mutant", 20), ("rewrite", 10)):
        builds = table.builds(kind)
        assert len({build.name for build in builds}) == len(builds) == count
        for build in builds:
            assert (table.answers(table.source(build)) != clean) == (kind == "mutant"), build.name


def test_the_bot_is_right(table: ModuleType) -> None:
    states = table.answers(table.BOT)
    # After the last turn of the first dialogue.
    assert states[3] == {
        "flight-origin": "london",
        "flight-destination": "rome",
        "flight-date": "friday",
        "flight-time": "morning",
        "flight-passengers": "2",
        "flight-bags": "1",
        "flight-seat": "window",
    }


@pytest.mark.nightly
def test_mutants_fail_and_rewrites_pass() -> None:
    done = subprocess.run(
        [sys.executable, "mutation_table.py"],
        cwd=FOLDER,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 of 20 mutants fail, 10 of 10 rewrites pass." in done.stdout
    # Which build, what it does, clean answers changed, exit status, and what drift says.
    measured = [row[:5] for row in rows(done.stdout)]
    assert [row[:5] for row in rows(README.read_text(encoding="utf-8"))] == measured
    assert [row[4] for row in measured] == ["drift"] * 20 + ["pass"] * 10
