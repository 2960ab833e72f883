"""From messages and tools as OpenAI's API has them to Anthropic's, and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from table_talk import BOOK, FIND, MESSAGES

from pytest_dstfuzz.dialogue.anthropic import answer_of, chat_messages, request_of, tools_of
from pytest_dstfuzz.dialogue.messages import calls_of
from pytest_dstfuzz.dialogue.readers.messages import read_messages
from pytest_dstfuzz.dialogue.readers.source import Oddities
from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.trackers.anthropic.client import join_message
from pytest_dstfuzz.trackers.web.transport import MalformedReply

MENU = {"type": "text", "text": "There is leek soup."}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": [*blocks]}


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def test_a_dialogue_with_calls_and_results() -> None:
    made = {"type": "tool_use", "id": "call_9", "name": "find_menu", "input": {"day": "today"}}
    soup = {
        "type": "tool_result",
        "tool_use_id": "call_9",
        "content": [said('{"soup": "leek"}')],
    }
    assert request_of(MESSAGES) == {
        "system": "You work in a restaurant.",
        "messages": [
            user(said("What is on the menu today?")),
            {"role": "assistant", "content": [made]},
            user(soup),
            {"role": "assistant", "content": [MENU]},
            user(said("A table for two, please.")),
        ],
    }


def test_results_of_parallel_calls_go_into_the_message_of_the_user() -> None:
    calls = [{"id": f"a:{x}", "function": {"name": x, "arguments": "{}"}} for x in "xy"]
    messages = [
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "system", "content": "And kind."},
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "Now.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a:y", "content": ""},
        {"role": "tool", "tool_call_id": "a:x", "content": [{"type": "text", "text": "1"}]},
        {"role": "system", "content": "It is late."},
        {"role": "user", "content": "And?"},
    ]
    found = request_of(messages)
    assert found["system"] == "Be brief.\n\nAnd kind."
    assert found["messages"][1]["content"] == [
        said("Now."),
        {"type": "tool_use", "id": "a_x", "name": "x", "input": {}},
        {"type": "tool_use", "id": "a_y", "name": "y", "input": {}},
    ]
    assert found["messages"][2:] == [
        user(
            {"type": "tool_result", "tool_use_id": "a_y", "content": []},
            {"type": "tool_result", "tool_use_id": "a_x", "content": [said("1")]},
            said("It is late."),
            said("And?"),
        )
    ]


def test_a_request_is_read_back_as_the_same_messages() -> None:
    odd = Oddities()
    given = read_messages(MESSAGES, "given", odd)
    found = read_messages(chat_messages(request_of(MESSAGES), "found", odd), "found", odd)
    assert [(one.role, one.text, one.calls, one.answers) for one in found] == [
        (one.role, one.text, one.calls, one.answers) for one in given
    ]


def test_a_recorded_call_with_empty_arguments_is_sent_without_any() -> None:
    call = {"id": "1", "function": {"name": "find_menu", "arguments": ""}}
    (sent,) = request_of([{"role": "assistant", "tool_calls": [call]}])["messages"]
    assert sent["content"] == [{"type": "tool_use", "id": "1", "name": "find_menu", "input": {}}]


@pytest.mark.parametrize(
    ("url", "source"),
    [
        ("https://shop.example/a.png", {"type": "url", "url": "https://shop.example/a.png"}),
        (
            "data:image/png;base64,aGk=",
            {"type": "base64", "media_type": "image/png", "data": "aGk="},
        ),
    ],
)
def test_pictures_are_sent(url: str, source: dict[str, str]) -> None:
    parts = [{"type": "text", "text": "This?"}, {"type": "image_url", "image_url": {"url": url}}]
    (found,) = request_of([{"role": "user", "content": parts}])["messages"]
    assert found == user(said("This?"), {"type": "image", "source": source})


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"role": "user", "content": [{"type": "input_audio"}]}, "accepts only texts and images"),
        (
            {
                "role": "assistant",
                "tool_calls": [{"id": "1", "function": {"name": "x", "arguments": "{"}}],
            },
            "the recorded call of 'x' has str '{' as arguments",
        ),
    ],
)
def test_what_has_no_counterpart_is_told(message: dict[str, Any], problem: str) -> None:
    with pytest.raises(TrackerError) as raised:
        request_of([message])
    assert problem in str(raised.value)


def test_tools_have_an_object_as_schema() -> None:
    assert tools_of([BOOK.to_json(), FIND.to_json(), {"function": {"name": "x"}}]) == [
        {"name": "book_table", "description": "Book a table.", "input_schema": BOOK.schema},
        {
            "name": "find_menu",
            "description": "Find the menu of today.",
            "input_schema": {"type": "object", "properties": {}},
        },
        {"name": "x", "input_schema": {"type": "object", "properties": {}}},
    ]


def test_an_answer_becomes_a_choice() -> None:
    blocks = [
        {"type": "thinking", "thinking": "Two?"},
        said("Yes. "),
        {"type": "tool_use", "id": "t1", "name": "book_table", "input": {"people": 2}},
        said("Done."),
    ]
    choice = answer_of({"content": blocks, "stop_reason": "tool_use"})
    assert choice["message"]["content"] == "Yes. Done."
    assert calls_of(choice["message"])[0].arguments == {"people": 2}
    assert choice["finish_reason"] == "tool_calls"
    assert answer_of({"content": [], "stop_reason": "max_tokens"})["finish_reason"] == "length"
    refused = answer_of({"content": [], "stop_reason": "refusal"})["message"]
    assert refused == {
        "role": "assistant",
        "content": None,
        "refusal": "the service stopped the answer",
    }


@pytest.mark.parametrize(
    "events", [[], [{"type": "message_start", "message": {"content": []}}, {"type": "ping"}]]
)
def test_a_stream_that_ends_early_is_told(events: list[dict[str, Any]]) -> None:
    with pytest.raises(MalformedReply, match="stream"):
        join_message(events)


def test_input_that_is_no_json_stays_a_text() -> None:
    delta = {"type": "input_json_delta", "partial_json": '{"people": '}
    events = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 3}}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "name": "x", "input": {}},
        },
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "message_stop"},
    ]
    choice = answer_of(join_message(events))
    with pytest.raises(TrackerError, match="arguments that are not valid JSON"):
        calls_of(choice["message"])
    assert json.dumps(choice)
