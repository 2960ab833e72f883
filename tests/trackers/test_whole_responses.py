"""A Python bot may return the whole response of its client, as an object or a dictionary."""

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_dstfuzz.dialogue.messages import answered_message
from pytest_dstfuzz.errors import MalformedAnswerError
from pytest_dstfuzz.trackers.calls import as_calls
from pytest_dstfuzz.trackers.replies import as_reply

SAID = "One moment."
CALL = {"name": "rent", "arguments": '{"seats": 2}'}
RESPONSES: dict[str, dict[str, Any]] = {
    "ChatCompletion": {
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": SAID,
                    "tool_calls": [{"id": "c1", "type": "function", "function": CALL}],
                },
            }
        ],
    },
    "Response": {
        "object": "response",
        "output": [
            {"type": "reasoning", "summary": [], "content": [{"type": "text", "text": "Hm."}]},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": SAID}],
            },
            {"type": "function_call", "id": "f1", "call_id": "c1", **CALL},
        ],
    },
    "Message": {
        "type": "message",
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm."},
            {"type": "text", "text": SAID},
            {"type": "tool_use", "id": "c1", "name": "rent", "input": {"seats": 2}},
        ],
    },
    "GenerateContentResponse": {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "Hm.", "thought": True},
                        {"text": SAID, "function_call": None},
                        {"text": None, "function_call": {"name": "rent", "args": {"seats": 2}}},
                    ],
                }
            }
        ]
    },
}


def as_object(value: Any) -> Any:
    """Return JSON with objects that have attributes, but no keys. Arguments stay as they are."""
    if isinstance(value, list):
        return [as_object(one) for one in value]
    if not isinstance(value, dict):
        return value
    plain = {"args", "input"}
    fields = {key: inner if key in plain else as_object(inner) for key, inner in value.items()}
    return SimpleNamespace(**fields)


@pytest.mark.parametrize("form", [dict, as_object], ids=["dictionary", "object"])
@pytest.mark.parametrize("name", RESPONSES)
def test_the_calls_and_the_text_of_a_response_are_found(name: str, form: Any) -> None:
    found = as_calls(form(RESPONSES[name]))
    assert dict(found.calls or {}) == {"rent[0]": "call 1", "rent[0].seats": "2"}
    assert found.reply == SAID
    assert as_reply(form(RESPONSES[name]), "the bot").reply == SAID


def test_a_message_keeps_its_calls_beside_parts() -> None:
    message = RESPONSES["ChatCompletion"]["choices"][0]["message"]
    found = as_calls({**message, "content": [{"type": "text", "text": SAID}]})
    assert dict(found.calls or {}) == {"rent[0]": "call 1", "rent[0].seats": "2"}


def test_a_message_of_langchain_is_a_reply() -> None:
    assert as_reply(SimpleNamespace(content=SAID, type="ai"), "the bot").reply == SAID


@pytest.mark.parametrize(
    "answer", [{"choices": []}, {"object": "response", "output": []}, {"area": "north"}, 3, None]
)
def test_a_response_without_a_message_is_no_reply(answer: Any) -> None:
    with pytest.raises(MalformedAnswerError):
        as_reply(answer, "the bot")


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("before", [False, True])
def test_a_list_of_items_is_an_answer(wrapped: bool, before: bool) -> None:
    call = {"type": "function_call", "name": "track", "arguments": "{}", "call_id": "1"}
    result = {"type": "function_call_output", "call_id": "1", "output": "On its way"}
    text = {"type": "output_text", "text": "It is on its way."}
    says = {"type": "message", "role": "assistant", "content": [text]}
    asks = {"role": "user", "content": "Where is my parcel?"}
    for earlier, new, expected in (
        ([asks, call, result], says, ("It is on its way.", [])),
        ([asks, says, asks], call, (None, [call])),
    ):
        items = [*earlier, new] if before else [new]
        found = answered_message({"output": items} if wrapped else items)
        assert isinstance(found, dict)
        assert (found["content"], found["tool_calls"]) == expected
