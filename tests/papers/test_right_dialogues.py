"""Which dialogues are right throughout, and which of them an agent never sees."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_dstfuzz.agents.training import environment as module
from pytest_dstfuzz.agents.training.environment import hold_out, right_dialogues
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.tracker import Tracker


@pytest.fixture(scope="module")
def data() -> DialogueSet:
    return load_dialogues("sample", "test")


def _knows(data: DialogueSet, *, without: int = 0) -> Tracker:
    known = {
        dialogue.context(turn.index): turn.state or BeliefState()
        for dialogue in data.dialogues[without:]
        for turn in dialogue.turns
    }

    def track(context: Context) -> dict[str, str]:
        return dict(known.get(context, BeliefState({"hotel-area": "nowhere"})))

    return as_tracker(track, normalisation=data.normalisation)


def test_those_right_at_every_turn_in_the_order_of_the_splits(data: DialogueSet) -> None:
    parts = [
        replace(data, split="val", dialogues=data.dialogues[10:20]),
        replace(data, dialogues=data.dialogues[:10]),
    ]
    lines: list[str] = []
    found = right_dialogues(_knows(data, without=3), parts, 64, lines.append)
    expected = (*data.dialogues[10:20], *data.dialogues[3:10])
    assert found.data.dialogues == expected
    assert found.data.split == "val+test"
    assert [len(item.right_dialogues) for item in found.evaluations] == [10, 7]
    assert "7 of 10 dialogues right at every turn" in lines[-1]


def test_progress_is_told(data: DialogueSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.0)
    lines: list[str] = []
    right_dialogues(_knows(data), [data], 64, lines.append)
    assert any("turns predicted" in line for line in lines)


def test_what_cannot_be_used(data: DialogueSet) -> None:
    with pytest.raises(UserError, match="is in two of the splits"):
        right_dialogues(_knows(data), [data, data], 64, str)
    with pytest.raises(UserError, match="nothing to perturb"):
        right_dialogues(_knows(data, without=len(data.dialogues)), [data], 64, str)
    with pytest.raises(UserError, match=r"2 dialogues are too few .* hold out 20 %"):
        hold_out(replace(data, dialogues=data.dialogues[:2]))


def test_a_fifth_is_held_out(data: DialogueSet) -> None:
    train, held = hold_out(data)
    count = len(data.dialogues)
    drawn = stream(0, "agent", "split").permutation(count)[: round(0.2 * count)]
    assert held.dialogues == tuple(data.dialogues[place] for place in sorted(drawn))
    assert {*train.dialogues} | {*held.dialogues} == {*data.dialogues}
    assert len(train.dialogues) + len(held.dialogues) == count
