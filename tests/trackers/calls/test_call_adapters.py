"""Functions from messages and tools to a message, tested by what they call."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_dstfuzz import Campaign, Settings
from pytest_dstfuzz.dialogue.calls import Tool, ToolCall, calls_outcome
from pytest_dstfuzz.dialogue.dialogues import (
    Admissible,
    BeliefState,
    Context,
    Dialogue,
    DialogueSet,
    Turn,
)
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.relations.relation import Delta
from pytest_dstfuzz.testing import assert_follows
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
    with pytest.raises(
        UserError, match="cannot call tools: give a function that takes messages and tools"
    ):
        as_tracker(3, outcome="tool-calls")


@pytest.mark.parametrize("answer", [7, Prediction(BeliefState({"a-b": "c"})), None])
def test_what_is_no_message_is_told(answer: object) -> None:
    with pytest.raises(TrackerError, match=r"the assistant returned .* instead of tool calls"):
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


@pytest.mark.parametrize("value", ["1" * 5000, "[" * 5000])
def test_odd_arguments_end_no_campaign(value: str) -> None:
    def odd(messages: list[dict[str, Any]]) -> list[ToolCall]:
        return [ToolCall("taxi", {"date": "today" if messages[-1]["content"] == SAID else value})]

    schema = '{"type": "object", "properties": {"date": {"type": "string", "format": "date"}}}'
    talk = Dialogue("a", TALK.turns[:1], (Tool("taxi", "", schema),))
    settings = Settings.of(outcome="tool-calls", variants=2, repeatable=True)
    (turn,) = Campaign(odd, DialogueSet("own", "test", (talk,)), settings)
    assert turn.violations


def test_dialogues_given_to_a_campaign_lock_what_their_schemas_list() -> None:
    schema = '{"type": "object", "properties": {"kind": {"enum": ["please"]}}}'
    talk = Dialogue("a", TALK.turns[:1], (Tool("taxi", "", schema),))
    settings = Settings.of(outcome="tool-calls", variants=40, repeatable=True, validity="strict")
    (turn,) = Campaign(fragile, [talk], settings)
    assert all("please" in one.text.split() for one in turn.variants if one.valid)


def test_what_is_expected_is_found_in_the_comparison_s_words() -> None:
    def to_town(messages: list[dict[str, Any]]) -> list[ToolCall]:
        town = messages[-1]["content"].split()[-1]
        return [ToolCall("taxi", {"town": town if town == "Boston" else town.lower()})]

    clean = Dialogue("a", (Turn(0, "", "A taxi to Boston"),), (TAXI,)).context(0)
    to_york = Delta("taxi[0].town", "Boston", Admissible(("York",)))
    assert_follows(to_town, clean, clean.saying("A taxi to York"), to_york, outcome="tool-calls")
    with pytest.raises(AssertionError, match="expected York"):
        assert_follows(to_town, clean, clean.saying("A taxi to Ely"), to_york, outcome="tool-calls")
    for slot in ("taxi.town", "taxi[0].town"):
        with pytest.raises(AssertionError, match="town"):
            assert_follows(
                to_town, clean, clean.saying("A taxi to Ely"), outcome="tool-calls", slots=[slot]
            )
