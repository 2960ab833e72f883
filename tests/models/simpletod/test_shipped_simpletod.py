"""The SimpleTOD that ships: as good as its card says, and at work without a network."""

from __future__ import annotations

import re
import socket
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.models.simpletod.tracker import SHIPPED, load_simpletod
from pytest_dstfuzz.trackers.evaluate import evaluate

CARD = SHIPPED / "README.md"
#: What is committed and shipped may not be larger.
LARGEST = 15_000_000


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: socket.socket, address: object) -> NoReturn:
        pytest.fail(f"something connects to {address}")

    monkeypatch.setattr(socket.socket, "connect", refused)


@pytest.mark.nightly
def test_it_is_as_good_as_its_card_says() -> None:
    row = re.search(r"first (\d+) of them .* \| (\d+) \| ([\d.]+) % \|", CARD.read_text("utf-8"))
    assert row is not None
    data = load_dialogues("sample", "test")
    found = evaluate(load_simpletod(), replace(data, dialogues=data.dialogues[: int(row[1])]), 64)
    assert found.turns == int(row[2])
    assert 100 * found.joint_goal_accuracy == pytest.approx(float(row[3]), abs=1.3)


@pytest.mark.nightly
def test_a_run_needs_no_network(pytester: pytest.Pytester) -> None:
    done = pytester.runpytest(
        *("--dst-model=simpletod", "--dst-validity=strict", "--dst-turns=6", "--dst-variants=2"),
        "--dst-max-failure-rate=100%",
    )
    assert done.ret == 0
    done.stdout.fnmatch_lines(["dstfuzz: simpletod on sample*"])


def test_it_is_small_enough_to_ship() -> None:
    sizes = {path.name: path.stat().st_size for path in Path(SHIPPED).iterdir()}
    assert sum(sizes.values()) < LARGEST
    assert {"model.safetensors", "tokenizer.json", "simpletod.json", "README.md"} <= set(sizes)
