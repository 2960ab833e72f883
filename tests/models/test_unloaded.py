"""A shipped network is known before it is loaded, and loaded when it is asked."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.errors import GivenUpError, UserError
from pytest_dstfuzz.models.trade.files import SHIPPED
from pytest_dstfuzz.models.trade.tracker import TradeTracker, load_trade
from pytest_dstfuzz.trackers.registry import resolve_tracker
from pytest_dstfuzz.trackers.tracker import UnloadedTracker
from pytest_dstfuzz.trackers.validation import preflight

CONTEXT = Context((Exchange("", "i need a cheap hotel in the north"),))


def test_it_is_the_tracker_that_it_stands_for() -> None:
    later, now = resolve_tracker("trade", later=True), load_trade()
    assert isinstance(later, UnloadedTracker)
    assert later.fingerprint == now.fingerprint
    assert later.predict([CONTEXT]) == now.predict([CONTEXT])
    assert isinstance(later.load(), TradeTracker)
    assert later.load() is later.load()


def test_knowing_it_loads_no_torch() -> None:
    lines = (
        "import sys",
        "from pytest_dstfuzz.trackers.registry import resolve_tracker",
        "assert resolve_tracker('trade', later=True).fingerprint",
        "assert 'torch' not in sys.modules",
    )
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)


def test_what_is_wrong_with_it_is_said_when_it_is_tested(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(SHIPPED, folder)
    (folder / "config.json").write_text("{}", encoding="utf-8")
    later = resolve_tracker("trade", checkpoint=str(folder), later=True)
    with pytest.raises(
        UserError, match='is not a TRADE checkpoint: it lacks \\"format\\": \\"trade\\"'
    ):
        preflight(later, [CONTEXT])
    # Tested in an earlier run, and gone since: there is nothing more to ask.
    with pytest.raises(GivenUpError, match="can no longer be loaded"):
        later.predict([CONTEXT])


def test_a_model_that_is_not_there_is_known_at_once(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no TRADE checkpoint at"):
        resolve_tracker("trade", checkpoint=str(tmp_path), later=True)
