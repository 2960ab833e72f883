"""Functions from messages and tools to a message, tested by what they call."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_dstfuzz import Campaign, Settings
from pytest_dstfuzz.dialogue.calls import Tool, ToolCall, calls_outcome
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Dialogue, DialogueSet, Turn
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.validation import ask, check_prediction

TAXI = Tool("taxi", "Call a taxi.")
TWO = ToolCall("taxi", {"people": 2})
SAID = "we would like to have a taxi for two people please , as soon as you can"
TALK = Dialogue(
    "a",
    (
        Turn(0, "", SAID, calls=calls_outcome([TWO])),
        Turn(1, "It comes.", "many thanks and a good day", calls=calls_outcome(())),
    ),
    (TAXI,),
)


def fragile(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any] | str:
    """Call a taxi wherever the word stands."""
    assert tools[0]["function"]["name"] == "taxi"
    return {"tool_calls": [TWO]} if "taxi" in messages[-1]["content"] else "You are welcome."


async def waited(messages: list[dict[str, Any]]) -> list[ToolCall]:
    return [TWO] if "taxi" in messages[-1]["content"] else []


class Looking:
    """Takes a context, and says itself what it calls."""

    def __call__(self, context: Context) -> Prediction:
        calls = [TWO] if "taxi" in context.user else []
        return Prediction(BeliefState(), calls=calls_outcome(calls))


@pytest.mark.parametrize("assistant", [fragile, waited, Looking])
def test_every_form_of_function_is_asked(assistant: object) -> None:
    made = as_tracker(assistant, outcome="tool-calls")
    contexts = [TALK.context(0), TALK.context(1)]
    found = ask(made, contexts, outcome="tool-calls")
    assert [one.state for one in found] == [TALK.turns[0].calls, {}]


def test_what_cannot_be_asked_is_told() -> None:
    with pytest.raises(UserError, match="calls no tools: give a function from messages and tools"):
        as_tracker(3, outcome="tool-calls")


@pytest.mark.parametrize("answer", [7, Prediction(BeliefState({"a-b": "c"})), None])
def test_what_is_no_message_is_told(answer: object) -> None:
    with pytest.raises(TrackerError, match=r"the assistant returned .* where tool calls are"):
        check_prediction(answer, outcome="tool-calls")


def test_a_call_that_a_misspelling_takes_away_is_found_and_arguments_are_locked() -> None:
    data = DialogueSet("own", "test", (TALK,))
    settings = Settings.of(outcome="tool-calls", turns="all", variants=20, repeatable=True)
    first, second = Campaign(fragile, data, settings)
    assert first.clean_state == first.label
    assert first.is_right
    assert {str(change) for one in first.violations for change in one.changed_slots} == {
        "taxi[0]: call 1 -> none",
        "taxi[0].people: 2 -> none",
    }
    assert all("two" in variant.text.split() for variant in first.variants if variant.valid)
    assert (second.outcome, second.clean_state) == ("held", {})
