"""The experiment negotiation: what it trains, plays, writes and goes on with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_dstfuzz.cli import main as dstfuzz
from tests.games.made_talks import write_talks

pytest.importorskip("torch")

from pytest_dstfuzz.games.negotiation.supervised import MODEL_FILE


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_talks(tmp_path_factory.mktemp("data"))


@pytest.mark.nightly
def test_the_experiment_trains_plays_and_goes_on(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "negotiation"
    words = ["experiment", "negotiation", "--data", str(data), "--output", str(output)]
    words += ["--games", "2", "--epochs", "1", "--rounds", "1", "--steps", "1"]
    assert dstfuzz([*words, "--targets", "sv", "--rows", "no-attack,delayed,lookahead"]) == 0
    first = capsys.readouterr()
    assert "| Lookahead (ours) |" in first.out
    assert "attack-hardened: a new attacker trained" in first.err
    row = json.loads((output / "rows" / "sv-delayed-2-1000.json").read_text(encoding="utf-8"))
    assert row["figures"]["games"] == 2
    bytes_before = (output / "rl" / MODEL_FILE).read_bytes()
    assert dstfuzz([*words, "--steps", "2"]) == 2
    assert "other training settings: steps was 1, is now 2." in capsys.readouterr().err
    assert dstfuzz([*words, "--targets", "sv,hardened", "--rows", "no-attack,lookahead"]) == 0
    assert (output / "rl" / MODEL_FILE).read_bytes() == bytes_before
    assert "Against `hardened`" in capsys.readouterr().out
    assert (output / "negotiation.csv").read_text(encoding="utf-8").startswith("target,row,games")
