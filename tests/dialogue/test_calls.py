"""Tool calls as paths: nothing is lost, and equal calls are equal outcomes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.dialogue.calls import (
    AnswerPath,
    Tool,
    ToolCall,
    Transcript,
    calls_outcome,
    place_of,
    text_of,
    value_of,
)
from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn, turn_keys
from pytest_dstfuzz.kinds.tool_calls import TOOL_CALLS

SCALARS = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
TAXI = Tool("taxi", "Call a taxi.", '{"type": "object"}')


@given(SCALARS | st.just([]) | st.just({}))
def test_no_value_is_lost(value: Any) -> None:
    found = value_of(text_of(value))
    assert (type(found), found) == (type(value), value)


def test_calls_of_one_tool_are_numbered_and_places_told() -> None:
    calls = [
        ToolCall("find", {"tags": ["a", "b"], "near": {"city": "York", "limits": {}}}),
        ToolCall("book", {"people": "2"}),
        ToolCall("find", {}),
    ]
    assert dict(calls_outcome(calls)) == {
        "book[0]": "call 2",
        "book[0].people": '"2"',
        "find[0]": "call 1",
        "find[0].near.city": "York",
        "find[0].near.limits": "{}",
        "find[0].tags[0]": "a",
        "find[0].tags[1]": "b",
        "find[1]": "call 3",
    }
    assert str(calls[1]) == "book(people='2')"


@pytest.mark.parametrize(
    ("path", "call", "argument", "slot"),
    [
        ("find[0]", "find[0]", "", "find"),
        ("find[12].near.city", "find[12]", "near.city", "find.near.city"),
        ("find[0].tags[1].name", "find[0]", "tags[1].name", "find.tags.name"),
    ],
)
def test_paths_are_taken_apart(path: str, call: str, argument: str, slot: str) -> None:
    found = AnswerPath.of(path)
    assert (str(found.call), found.argument, found.part[1]) == (call, argument, slot)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "hotel-area",
        "a.b[0].c",
        "a[1][0].b",
        "a[0].",
        "a[0]..b",
        "a[0].[1]",
        "a[0].b[c",
        "a[00]",
    ],
)
def test_a_path_is_shown_as_it_was(path: str) -> None:
    assert str(AnswerPath.of(path)) == path


def test_what_is_no_path_of_a_call() -> None:
    assert not AnswerPath.of("hotel-area").in_call
    assert (place_of("call 12"), place_of("north")) == (12, None)


def test_contexts_with_other_recordings_are_other_contexts() -> None:
    turns = (Turn(0, "", "A taxi please."), Turn(1, "Where to?", "Home."))
    said = turns[1]
    recorded = Turn(1, said.system, said.user, recorded=('{"role": "tool"}',))
    dialogues = [
        Dialogue("a", turns),
        Dialogue("a", turns, (TAXI,)),
        Dialogue("a", (turns[0], recorded), (TAXI,)),
    ]
    contexts = [dialogue.context(1) for dialogue in dialogues]
    assert contexts[0].transcript is None
    assert len(set(contexts)) == 3
    assert len({str(context.key()) for context in contexts}) == 3
    assert len({turn_keys(dialogue) for dialogue in dialogues}) == 3
    last = contexts[2].saying("To work.")
    assert last.transcript == Transcript((TAXI,), (None, recorded.recorded))
    assert last.again(1).transcript == last.transcript
    assert contexts[2].going_on("Fine.", "Thanks.").transcript == last.transcript


def test_the_label_of_a_turn_is_what_was_called() -> None:
    calls = calls_outcome([ToolCall("taxi")])
    dialogue = Dialogue("a", (Turn(0, "", "A taxi please.", calls=calls),), (TAXI,))
    assert TOOL_CALLS.label(dialogue, 0) == calls
    assert TOOL_CALLS.label(Dialogue("a", (Turn(0, "", "Hi"),)), 0) is None


def test_a_tool_in_the_form_of_an_api() -> None:
    assert TAXI.to_json() == {
        "type": "function",
        "function": {
            "name": "taxi",
            "description": "Call a taxi.",
            "parameters": {"type": "object"},
        },
    }


@pytest.mark.parametrize(
    ("path", "domain", "slot"),
    [
        ("find[3].near.city", "find", "find.near.city"),
        ("find[0]", "find", "find"),
        ("hotel-book day", "hotel", "hotel-book day"),
        ("size", "", "size"),
    ],
)
def test_arguments_count_for_their_tool_whichever_call_it_is(
    path: str, domain: str, slot: str
) -> None:
    assert AnswerPath.of(path).part == (domain, slot)
