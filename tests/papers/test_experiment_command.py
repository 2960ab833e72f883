"""The command experiment: what it refuses, and its help."""

from __future__ import annotations

import pytest

from pytest_dstfuzz import cli
from pytest_dstfuzz.papers.commands import EXPERIMENTS


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("experiment", "required: NAME"),
        ("experiment rq11", "unknown experiment 'rq11'. Did you mean 'rq1'?"),
    ],
)
def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str], line: str, message: str) -> None:
    assert cli.main(line.split()) == 2
    output, errors = capsys.readouterr()
    assert (output, errors.count("\n")) == ("", 1)
    assert errors.startswith("dstfuzz: error: ")
    assert message in errors


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["experiment", "-h"])
    assert ended.value.code == 0
    assert "examples:\n  dstfuzz " in capsys.readouterr().out


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_every_experiment_has_its_own_help(capsys: pytest.CaptureFixture[str], name: str) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["experiment", name, "--help"])
    assert ended.value.code == 0
    assert f"dstfuzz experiment {name}" in capsys.readouterr().out
