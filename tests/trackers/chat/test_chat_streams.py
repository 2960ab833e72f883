"""Streamed completions are what they would have been in one piece."""

from __future__ import annotations

import json
from typing import Any

import pytest
from assistant_server import call, calling, pieces, streamed, whole
from hypothesis import given
from hypothesis import strategies as st
from loopback import Says

from pytest_dstfuzz.trackers.chat.client import join_completion
from pytest_dstfuzz.trackers.web.transport import MalformedReply, Reply


def reply_of(says: Says) -> Reply:
    assert isinstance(says.body, bytes)
    headers = {name.lower(): value for name, value in says.headers.items()}
    return Reply(says.status, says.body, headers)


def joined(says: Says) -> dict[str, Any]:
    reply = reply_of(says)
    assert reply.is_stream
    return join_completion(reply.events())


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)
_CALLS = st.lists(
    st.tuples(st.text(min_size=1, max_size=6), st.dictionaries(st.text(max_size=6), _JSON)),
    max_size=4,
)


@given(calls=_CALLS, said=st.none() | st.text(min_size=1), piece=st.integers(1, 9))
def test_what_comes_in_pieces_is_put_together(
    calls: list[tuple[str, dict[str, Any]]], said: str | None, piece: int
) -> None:
    made = [call(name, arguments, place) for place, (name, arguments) in enumerate(calls)]
    message: dict[str, Any] = {"role": "assistant", "content": said}
    if made:
        message["tool_calls"] = made
    found = joined(streamed(pieces(message, piece)))
    in_one = whole(message, "tool_calls").body
    assert isinstance(in_one, dict)
    assert found["usage"] == in_one["usage"]
    (choice,) = in_one["choices"]
    found["choices"][0]["message"]["content"] = found["choices"][0]["message"]["content"] or None
    assert found["choices"] == [{key: choice[key] for key in ("message", "finish_reason")}]


BOTH = [("a", '{"x": 1}'), ("b", '{"y": 2}')]


@pytest.mark.parametrize(
    "parts",
    [
        # One number for all calls, and an id for each.
        [{"index": 0, "id": id_, "function": {"name": id_, "arguments": a}} for id_, a in BOTH],
        # No numbers.
        [{"id": id_, "function": {"name": id_, "arguments": a}} for id_, a in BOTH],
        # Neither numbers nor ids.
        [{"function": {"name": name, "arguments": a}} for name, a in BOTH],
        # The name and the id with each piece.
        [
            {"index": place, "id": name, "function": {"name": name, "arguments": half}}
            for place, (name, a) in enumerate(BOTH)
            for half in (a[:3], a[3:])
        ],
        # Arguments as an object.
        [
            {"index": place, "function": {"name": name, "arguments": json.loads(a)}}
            for place, (name, a) in enumerate(BOTH)
        ],
    ],
)
def test_calls_are_told_apart_as_services_number_them(parts: list[dict[str, Any]]) -> None:
    found = joined(streamed([{"tool_calls": [part]} for part in parts]))
    calls = found["choices"][0]["message"]["tool_calls"]
    made = [(one["function"]["name"], one["function"]["arguments"]) for one in calls]
    assert made == BOTH


def test_a_call_of_the_old_form_is_put_together() -> None:
    parts = [{"function_call": {"name": "a"}}, {"function_call": {"arguments": "{"}}]
    parts += [{"function_call": {"arguments": "}"}}]
    message = joined(streamed(parts, "function_call"))["choices"][0]["message"]
    assert message["function_call"] == {"name": "a", "arguments": "{}"}


def stream_of(text: str) -> Says:
    return Says(text.encode(), headers={"Content-Type": "text/event-stream"})


@pytest.mark.parametrize(
    ("says", "problem"),
    [
        (streamed(pieces(calling(call("a", {}))), None), "ended its stream before its answer"),
        (stream_of('data: {"error": {"message": "busy"}}\n\n'), "with an error, dict"),
        (stream_of("data: [1]\n\n"), "streamed list"),
        (stream_of('data: {"choices": [\n\n'), "not valid JSON"),
        (stream_of(""), "ended its stream before its answer"),
    ],
)
def test_a_stream_that_breaks_is_told(says: Says, problem: str) -> None:
    with pytest.raises(MalformedReply, match=problem):
        joined(says)


def test_lines_may_end_in_any_way_and_an_event_may_have_several() -> None:
    text = ': hello\rdata: {"a":\rdata: 1}\r\rid: 3\r\ndata:{"a": 2}\n\ndata: {"a": 3}'
    assert [one["a"] for one in reply_of(stream_of(text)).events()] == [1, 2, 3]
