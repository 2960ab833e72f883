"""A tracker answers under the fingerprint of the files that it was loaded from, or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.errors import GivenUpError, UserError
from pytest_dstfuzz.files import content_of
from pytest_dstfuzz.trackers import registry
from pytest_dstfuzz.trackers.registry import TrackerMaker, register_tracker, resolve_tracker
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker
from pytest_dstfuzz.trackers.validation import preflight

CONTEXT = Context((Exchange("", "i need a cheap hotel in the north"),))


class Fixed:
    """Gives one area for every question."""

    def __init__(self, area: str) -> None:
        self.area = area

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        return [Prediction({"hotel-area": self.area}) for _ in contexts]


class FileMaker(TrackerMaker):
    """Makes a tracker from ``area.txt`` of a folder. ``during`` is written while it reads."""

    def __init__(self, during: str = "") -> None:
        self.during = during

    def __call__(self, checkpoint: str = "") -> Tracker:
        file = Path(checkpoint, "area.txt")
        area = file.read_text("utf-8")
        if self.during:
            file.write_text(self.during, encoding="utf-8")
        return Fixed(area)

    def fingerprint(self, checkpoint: str | None, device: str) -> str:
        return f"{device}-{content_of(str(checkpoint))}"


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(registry.TRACKERS, "_registered", {})
    (tmp_path / "area.txt").write_text("north", encoding="utf-8")
    return tmp_path


def load_later(checkpoint: Path, during: str = "") -> Tracker:
    register_tracker("filed", FileMaker(during))
    return resolve_tracker("filed", checkpoint=str(checkpoint), later=True)


def test_files_that_change_before_the_load_are_refused(checkpoint: Path):
    later = load_later(checkpoint)
    (checkpoint / "area.txt").write_text("south", encoding="utf-8")
    with pytest.raises(UserError, match="changed"):
        preflight(later, [CONTEXT])
    with pytest.raises(GivenUpError, match="changed"):
        later.predict([CONTEXT])
    (checkpoint / "area.txt").write_text("north", encoding="utf-8")
    assert later.predict([CONTEXT])[0].state["hotel-area"] == "north"


def test_files_that_change_during_the_load_are_refused(checkpoint: Path):
    with pytest.raises(UserError, match="changed"):
        preflight(load_later(checkpoint, during="south"), [CONTEXT])


def test_a_network_whose_files_change_during_the_load_is_refused(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
):
    tracker = pytest.importorskip("pytest_dstfuzz.models.trade.tracker")
    read = tracker.read_weights
    model = checkpoint / "model"
    shutil.copytree(tracker.folder_of(None), model)

    def read_and_write(path: Path) -> object:
        found = read(path)
        with (model / "config.json").open("a", encoding="utf-8") as config:
            config.write(" ")
        return found

    monkeypatch.setattr(tracker, "read_weights", read_and_write)
    with pytest.raises(UserError, match="changed"):
        tracker.load_trade(model)
