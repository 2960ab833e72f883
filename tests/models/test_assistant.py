"""The assistant that ships, asked with tools that it never saw."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import MUSIC, TABLE, TOOLS, WEATHER, assistant, calls, text, tool, user

from pytest_dstfuzz.models.assistant.assistant import Assistant
from pytest_dstfuzz.models.assistant.network import load_shipped_weights

ASSISTANT = Assistant()


def called(call: dict[str, Any], result: object) -> list[dict[str, Any]]:
    """Return a recorded call with what came back."""
    made = {"id": "c1", "type": "function", "function": call}
    return [
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "c1", "content": json.dumps(result)},
    ]


def test_what_is_asked_for_is_called() -> None:
    answer = ASSISTANT([user("What is the weather in Lisbon on Friday?")], TOOLS)
    assert calls(answer) == [("get_weather", {"city": "Lisbon", "date": "Friday"})]
    assert answer["role"] == "assistant"
    assert answer["tool_calls"][0]["type"] == "function"


def test_what_is_missing_is_asked_for() -> None:
    answer = ASSISTANT([user("Please look up the weather for me.")], TOOLS)
    assert answer == assistant("What city would you like?")


def test_a_reservation_is_confirmed_and_then_made() -> None:
    messages = [user("Please reserve a table at Casa Verde for two people at 7 pm.")]
    first = ASSISTANT(messages, TOOLS)
    assert calls(first) == []
    assert "Casa Verde" in first["content"]
    messages += [first, user("Yes, that is right.")]
    arguments = {"restaurant_name": "Casa Verde", "time": "7 pm", "party_size": 2}
    assert calls(ASSISTANT(messages, TOOLS)) == [("reserve_table", arguments)]


def test_results_are_told_and_the_same_call_is_not_made_again() -> None:
    messages = [user("What is the weather in Lisbon on Friday?")]
    call = {"name": "get_weather", "arguments": '{"city": "Lisbon", "date": "Friday"}'}
    messages += called(call, {"sky": "sunny"})
    told = ASSISTANT(messages, TOOLS)
    assert calls(told) == []
    assert "sunny" in told["content"]
    messages += [told, user("Thanks, that is everything for me.")]
    assert calls(ASSISTANT(messages, TOOLS)) == []
    again = [*messages[:-1], user("And what is the weather like in Oslo?")]
    assert calls(ASSISTANT(again, TOOLS)) == [("get_weather", {"city": "Oslo", "date": "Friday"})]


def test_the_same_bytes_whatever_was_asked_before() -> None:
    messages = [
        user("I need a table at the Blue Olive."),
        assistant("For how many people and at what time?"),
        user("For four people at 8:30 pm."),
    ]
    whole = json.dumps(Assistant()(messages, TOOLS))
    warm = Assistant()
    for end in (1, 3):
        warm(messages[:end], TOOLS)
    assert json.dumps(warm(messages, TOOLS)) == whole
    assert ASSISTANT.repeatable
    assert ASSISTANT.fingerprint == Assistant().fingerprint


@pytest.mark.parametrize(
    ("messages", "tools"),
    [
        ([], []),
        ([], TOOLS),
        ([user("Hello")], []),
        ([user("")], TOOLS),
        ([{"role": "system", "content": "Be kind."}], TOOLS),
        ([user("Play a song")], [{"type": "function", "function": {"name": "play"}}]),
        ([user("Play a song")], [{"type": "web_search"}, {"name": "play", "parameters": None}]),
        ([{"role": "tool", "content": "no JSON"}], TOOLS),
        ([*called({"name": "gone", "arguments": "{"}, []), user("Hm?")], TOOLS),
        ([{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], TOOLS),
    ],
)
def test_whatever_comes_is_answered(messages: list[Any], tools: list[Any]) -> None:
    answer = ASSISTANT(messages, tools)
    assert answer["role"] == "assistant"
    assert answer["content"] or answer["tool_calls"]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(max_size=60), max_size=4))
def test_any_text_is_answered(said: list[str]) -> None:
    answer = ASSISTANT([user(one) for one in said], [WEATHER, MUSIC])
    for name, arguments in calls(answer):
        assert name in ("get_weather", "play_song")
        assert arguments.keys() <= {"city", "date", "song", "room"}
        assert arguments.get("room", "attic") in ("attic", "kitchen")


def test_types_of_the_schema_are_kept() -> None:
    lamp = tool(
        "set_lamp",
        "Switch a lamp on and set how bright it is",
        {"lamp": text("Name of the lamp"), "percent": {"type": "integer"}},
        "lamp",
    )
    messages = [user("Set the reading lamp to 40 percent"), assistant("Which lamp?")]
    messages.append(user("The reading lamp, at 40 percent please"))
    for _, arguments in calls(ASSISTANT(messages, [lamp])):
        assert isinstance(arguments.get("percent", 0), int)
    party = [
        user("Reserve Nonna Pia for two at 6 pm"),
        assistant("Please confirm."),
        user("Yes"),
    ]
    for _, arguments in calls(ASSISTANT(party, [TABLE])):
        assert isinstance(arguments["party_size"], int)


def test_numbers_are_found_as_they_are_written() -> None:
    transfer = tool(
        "transfer_money",
        "Transfer money to somebody",
        {"amount": {"type": "number", "description": "Amount of money to transfer"}},
        "amount",
    )
    messages = [user("Please transfer money to my sister"), assistant("What amount?")]
    for said, amount in (("1,250.50 dollars", 1250.5), ("It is $40", 40), ("Ninety pounds", 90)):
        answers = [*messages, user(said), assistant("Please confirm."), user("Yes, please.")]
        assert calls(ASSISTANT(answers, [transfer])) == [("transfer_money", {"amount": amount})]


def test_an_object_is_asked_for_and_never_made_up() -> None:
    seat = tool("book_seat", "Book a seat", {"seat": {"type": "object"}}, "seat")
    answer = ASSISTANT([user("Book seat 12 at the window")], [seat])
    assert answer == assistant("What seat would you like?")


def test_the_weights_are_small() -> None:
    assert sum(one.size for one in load_shipped_weights().by_name.values()) * 2 < 6_000_000
