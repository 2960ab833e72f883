"""How often an assistant makes the recorded calls, and what the conformance kit says of one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_dstfuzz.comparisons.calls import comparison_of_calls
from pytest_dstfuzz.comparisons.comparison import call_judge
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.calls import Tool, ToolCall, calls_outcome
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet, Turn
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.testing import check_tracker
from pytest_dstfuzz.trackers.calls import EQUAL_CALLS, CallJudge, as_caller, evaluate_calls

TABLE = ToolCall("book_table", {"people": 2, "area": "north"})
TAXI = ToolCall("call_taxi", {"start": "here"})
TOOLS = (Tool("book_table"), Tool("call_taxi"))


def talk(name: str, *recorded: tuple[str, list[ToolCall] | None]) -> Dialogue:
    turns = (
        Turn(number, "", user, calls=None if calls is None else calls_outcome(calls))
        for number, (user, calls) in enumerate(recorded)
    )
    return Dialogue(name, tuple(turns), TOOLS)


DATA = DialogueSet(
    "talks",
    "test",
    (
        talk("d1", ("a table", [TABLE]), ("thanks", []), ("bye", None)),
        talk("d2", ("a table and a taxi", [TABLE, TAXI]), ("a taxi", [TAXI])),
    ),
)
JUDGE = call_judge(comparison_of_calls(DATA, ReplySettings()))


def answer(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> object:
    """Book for "2" people, in other letters, and never for a taxi alone."""
    del tools
    last = messages[-1]["content"]
    calls = [TAXI] if "table and" in last else []
    if "table" in last:
        calls.append(ToolCall("book_table", {"people": "2", "area": "North"}))
    return [{"name": one.name, "arguments": json.dumps(one.arguments)} for one in calls]


@pytest.mark.parametrize(
    ("judge", "right", "tables", "arguments"), [(JUDGE, 3, 2, 4), (EQUAL_CALLS, 1, 0, 0)]
)
def test_messages_and_arguments_are_counted(
    judge: CallJudge, right: int, tables: int, arguments: int
) -> None:
    found = evaluate_calls(as_caller(answer), DATA, judge, 8)
    assert (found.right, found.turns, found.unlabelled) == (right, 4, 1)
    # That nothing was to be called says little: turns with calls stand beside it.
    assert (found.right_with_calls, found.turns_with_calls) == (right - 1, 3)
    table, taxi = found.tools
    assert table == ("book_table", 2, tables, 4, arguments)
    assert (taxi.tool, taxi.calls, taxi.arguments, taxi.right_arguments) == ("call_taxi", 2, 2, 1)
    told = "\n".join(found.lines())
    assert f" {25 * right}.00 %  ({right} of 4 turns)" in told
    assert found.to_json()["tools"]["book_table"]["right_arguments"] == arguments


def test_a_call_too_many_makes_a_message_wrong() -> None:
    data = DialogueSet("talks", "test", (talk("d1", ("a table and", [TABLE])),))
    found = evaluate_calls(as_caller(answer), data, JUDGE, 8)
    assert (found.right, found.tools[0].right) == (0, 1)


def test_data_without_recorded_messages_is_told() -> None:
    data = DialogueSet("logs", "test", (talk("d1", ("hello", None)),))
    with pytest.raises(UserError, match="no turn of 'logs' is followed by a recorded message"):
        evaluate_calls(as_caller(answer), data, JUDGE, 8)


def test_the_kit_speaks_of_calls() -> None:
    found = check_tracker(answer, DATA, outcome="tool-calls")
    told = {one.check: one for one in found.findings}
    assert told["accuracy"].message == ("right at 1 of 4 turns with recorded calls (1 have none)")
    assert "values" not in told
    silent = check_tracker(lambda _messages: "Hello.", DATA, outcome="tool-calls")
    warned = {one.check: one for one in silent.findings}["accuracy"]
    assert warned.message == "the assistant calls nothing at any of 5 turns"
    assert "tracker" not in found.explain()
