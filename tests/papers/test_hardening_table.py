"""The table of a tracker and of hardened ones, on the sample dialogues."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch")

from pytest_dstfuzz.cli import main
from pytest_dstfuzz.models.trade.files import SHIPPED

GIVEN = ["experiment", "hardening", "--model", "trade", "--data", "sample", "--variants", "2"]
SOME = ["--max-dialogues", "9", "--relations", "value-swap,speech"]


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A copy of the shipped tracker that says it was trained on a relation."""
    folder = Path(shutil.copytree(SHIPPED, tmp_path / "trained"))
    path = folder / "config.json"
    config = json.loads(path.read_text("utf-8"))
    config["about"]["settings"]["relations"] = "negation,value-swap"
    path.write_text(json.dumps(config), "utf-8")
    return folder


def test_equal_trackers_have_equal_figures(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*GIVEN, *SOME, "--hardened", f"twin={trained}", "--output", str(tmp_path)]
    assert main(given) == 0
    shown = capsys.readouterr().out
    assert "| difference |  | 0.00 points [" in shown
    assert "| `value-swap` | yes |" in shown
    assert "| `speech` | no |" in shown
    assert (tmp_path / "hardening.md").read_text("utf-8") == shown
    with (tmp_path / "hardening.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    tests = ["right", "slips", "value-swap", "speech"]
    assert [row["test"] for row in rows] == 2 * tests
    first, twin = rows[:4], rows[4:]
    for one, other in zip(first, twin, strict=True):
        assert one["tracker"] == "trade"
        assert other["tracker"] == "twin"
        assert {**one, "tracker": "", "trained_on": ""} == {
            **other,
            "tracker": "",
            "trained_on": "",
        }
    assert [row["trained_on"] for row in twin] == ["no", "no", "yes", "no"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([*GIVEN], "required: --hardened"),
        ([*GIVEN, "--hardened", "folder"], "must be NAME=CHECKPOINT"),
        ([*GIVEN, "--hardened", "a=nowhere"], "no TRADE checkpoint at nowhere"),
        ([*GIVEN[:3], "simpletod", "--data", "sample", "--hardened", "a=b"], "--model trade"),
    ],
)
def test_a_mistake_is_told(
    capsys: pytest.CaptureFixture[str], given: list[str], message: str
) -> None:
    assert main(given) == 2
    assert message in capsys.readouterr().err
