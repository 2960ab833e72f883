"""`pytest_dstfuzz.testing`: the conformance kit for the suite of a tracker's author."""

from __future__ import annotations

from pathlib import Path

import pytest
from keyword_tracker import Keywords

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Dialogue, Turn
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.testing import check_tracker

TALK = Dialogue(
    "talk",
    (
        Turn(0, "", "wombats live up north", BeliefState({"hotel-area": "north"})),
        Turn(1, "Do they?", "no, down south", BeliefState({"hotel-area": "south"})),
    ),
)
LINE = '{"dialogue_id": "a", "users": ["wombats live up north"], "states": [{"a-b": "north"}]}'


def test_a_sound_tracker_passes_on_dialogues_of_ones_own() -> None:
    found = check_tracker(Keywords, [TALK])
    found.assert_passed()
    assert found.evaluation is not None
    assert found.evaluation.joint_goal_accuracy == 1.0


def test_dialogues_may_be_loaded_or_a_path(tmp_path: Path) -> None:
    path = tmp_path / "talks.jsonl"
    path.write_text(LINE, encoding="utf-8")
    for dialogues in (path, str(path), load_dialogues(path)):
        assert check_tracker(Keywords(), dialogues).evaluation is not None


def test_what_is_wrong_is_said_with_advice() -> None:
    asked = []

    def forgetful(context: Context) -> dict[str, str]:
        asked.append(context)
        return {"hotel-area": "north" if len(asked) % 2 else "south"}

    with pytest.raises(AssertionError, match=r"memory: [\s\S]*Keep no data between contexts"):
        check_tracker(forgetful, [TALK]).assert_passed()


def test_no_turns_and_no_tracker_are_mistakes() -> None:
    with pytest.raises(UserError, match="has no turns"):
        check_tracker(Keywords, [])
    with pytest.raises(UserError, match="is not a tracker"):
        check_tracker(object(), [TALK])
