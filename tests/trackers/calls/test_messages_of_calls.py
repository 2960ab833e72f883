"""What an assistant is given, and what its message is taken for."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_dstfuzz.dialogue.calls import Tool, ToolCall, canonical
from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn, messages_and_tools
from pytest_dstfuzz.dialogue.messages import calls_of
from pytest_dstfuzz.errors import TrackerError

TAXI = Tool("taxi", "Call a taxi.", '{"type": "object"}')
RECORDED = (
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "function": {"name": "taxi"}}],
    },
    {"role": "tool", "tool_call_id": "1", "content": "at six"},
    {"role": "assistant", "content": "It comes at six."},
)


def called(arguments: object, name: object = "taxi") -> dict[str, Any]:
    return {"tool_calls": [{"id": "1", "function": {"name": name, "arguments": arguments}}]}


def test_recorded_messages_are_sent_as_they_were() -> None:
    first = Turn(0, "Hello.", "A taxi please.")
    second = Turn(1, "It comes at six.", "Thanks.", recorded=tuple(map(canonical, RECORDED)))
    asked = messages_and_tools(Dialogue("a", (first, second), (TAXI,)).context(1).saying("Thx."))
    assert asked.tools == [TAXI.to_json()]
    assert asked.messages == [
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "A taxi please."},
        *RECORDED,
        {"role": "user", "content": "Thx."},
    ]


def test_texts_alone_are_messages_and_no_tools() -> None:
    context = Dialogue("a", (Turn(0, "Hello.", "Hi."),)).context(0).going_on("Yes?", "A taxi.")
    asked = messages_and_tools(context, "system")
    assert [message["role"] for message in asked.messages] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert asked.tools == []


@pytest.mark.parametrize(
    "message",
    [
        called('{"people": 2}'),
        called({"people": 2}),
        {"tool_calls": [{"name": "taxi", "arguments": {"people": 2}}]},
        {"function_call": {"name": "taxi", "arguments": '{"people": 2}'}, "content": None},
        {"tool_calls": [ToolCall("taxi", {"people": 2})]},
        json.loads(json.dumps(called('{"people": 2}')), object_hook=lambda x: SimpleNamespace(**x)),
    ],
)
def test_calls_are_read_in_every_form(message: object) -> None:
    assert calls_of(message) == (ToolCall("taxi", {"people": 2}),)


@pytest.mark.parametrize("message", [{"content": "Hi."}, {"role": "assistant"}, called("") | {}])
def test_no_calls_and_no_arguments(message: dict[str, Any]) -> None:
    assert [call.arguments for call in calls_of(message)] == (
        [{}] if "tool_calls" in message else []
    )


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (called('{"people": 2'), "the call of 'taxi' has arguments that are not valid JSON"),
        (called("[2]"), "has list [2] as arguments instead of a JSON object"),
        (called({1: 2}), "as arguments instead of a JSON object"),
        (called({"a": float("nan")}), "has arguments that cannot be written as JSON"),
        (called("{}", None), "the call of the assistant names no tool"),
        ({"tool_calls": "taxi"}, "tool_calls are str 'taxi' instead of a list"),
        ({"tool_calls": [{"name": "taxi"}, 3]}, "call 2 of the assistant names no tool: int 3"),
        ({"tool_calls": [{"name": "taxi"}] * 101}, "made 101 calls in one message; at most 100"),
        (None, "returned None instead of a message"),
        ({"answer": 1}, "instead of a message"),
        (called("9" * 5000), "has arguments that are not valid JSON (Exceeds the limit"),
    ],
)
def test_what_cannot_be_read_is_told(message: object, told: str) -> None:
    with pytest.raises(TrackerError) as error:
        calls_of(message)
    assert told in str(error.value)


def test_messages_of_other_libraries_are_read() -> None:
    expected = (ToolCall("taxi", {"people": 2}),)
    flat = {"name": "taxi", "args": {"people": 2}, "id": "1", "type": "tool_call"}
    assert calls_of(SimpleNamespace(content="", tool_calls=[flat])) == expected
    block = SimpleNamespace(type="tool_use", id="1", name="taxi", input={"people": 2})
    said = SimpleNamespace(type="text", text="Sure.")
    assert calls_of(SimpleNamespace(role="assistant", content=[said, block])) == expected
    assert calls_of(SimpleNamespace(role="assistant", content=[said])) == ()


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"tool_calls": [{"name": "taxi", "parameters": {}}]}, "has a key 'parameters' but no"),
        (
            SimpleNamespace(tool_calls=[], invalid_tool_calls=[{"name": "taxi", "args": "{"}]),
            "arguments that are not valid JSON",
        ),
    ],
)
def test_no_argument_is_lost_unseen(message: object, problem: str) -> None:
    with pytest.raises(TrackerError, match=problem):
        calls_of(message)
