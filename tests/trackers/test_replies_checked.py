"""What a system replied, brought to what is tested, or one message that says what is wrong."""

from __future__ import annotations

import pytest

from pytest_dstfuzz.dialogue.dialogues import BeliefState
from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.trackers.tracker import Prediction, is_repeatable
from pytest_dstfuzz.trackers.validation import check_prediction


@pytest.mark.parametrize(
    "answered", [" At nine.\n", Prediction(BeliefState({"hotel-area": "north"}), reply="At nine.")]
)
def test_a_reply_is_tested_alone(answered: object) -> None:
    found = check_prediction(answered, outcome="reply")
    assert found.state == {"reply": "At nine."}
    assert check_prediction(found, outcome="reply") == found


@pytest.mark.parametrize(
    ("answered", "message"),
    [
        (None, "returned no reply"),
        (Prediction(BeliefState({"a-b": "c"})), "leave --dst-outcome=reply out"),
        (" \n", "returned an empty reply"),
        (7, "returned an int instead of a text as the reply"),
        (
            {"hotel-area": "north"},
            "if it is a tracker of belief states, leave --dst-outcome=reply out",
        ),
        ("x" * 100_001, "a reply of 100,001 characters; at most 100,000 are allowed"),
        ("caf\udce9", "which contains a lone surrogate"),
    ],
)
def test_what_is_no_reply_is_told(answered: object, message: str) -> None:
    with pytest.raises(TrackerError) as told:
        check_prediction(answered, outcome="reply")
    assert message in str(told.value)


def test_a_text_where_states_are_tested_names_the_option() -> None:
    with pytest.raises(
        TrackerError, match="if the system replies to users, add --dst-outcome=reply"
    ):
        check_prediction("At nine.")


def test_systems_that_reply_repeat_themselves_only_where_they_say_so() -> None:
    class Bot:
        pass

    class Sure:
        repeatable = True

    found = [is_repeatable(bot, None, "reply") for bot in (Bot(), Sure())]
    assert found == [False, True]
    assert is_repeatable(Bot(), True, "reply")
    assert is_repeatable(Bot())
