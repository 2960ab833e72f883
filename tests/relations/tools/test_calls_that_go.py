"""Calls whose argument is not said any more, is not wanted, or is another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from booking import described, dialogue, tool

from pytest_dstfuzz import Campaign, Settings
from pytest_dstfuzz.dialogue.calls import Tool, ToolCall
from pytest_dstfuzz.dialogue.dialogues import DialogueSet

SHIP = tool(
    "send_again",
    "Sends an item once more.",
    [],
    shipping=described("string", "How fast.", enum=["express", "standard"]),
    item=described("string", "What to send."),
)
WANTED = ToolCall("send_again", {"shipping": "express"})
NEWS = tool("news", "Reads the news.", [], country=described("string", "Of which country."))
WEATHER = tool("weather", "Reads the forecast.", ["town"], town=described("string", "Where."))


def variants(
    name: str, tools: Sequence[Tool], *talks: Sequence[tuple[str, ToolCall | None]], bot: Any = None
) -> list[Any]:
    """Return the rewrites of some dialogues; the bot calls what was recorded unless one is given.

    It is given the utterance and what it calls at the clean turn.
    """
    made = tuple(
        dialogue(f"d{number}", *talk, tools=tuple(tools)) for number, talk in enumerate(talks)
    )
    recorded = {said: call for talk in talks for said, call in talk}

    def answer(messages: list[dict[str, Any]], _: object) -> object:
        said = messages[-1]["content"]
        if said not in recorded and bot is not None:
            return bot(said) or "All right."
        call = recorded.get(said)
        return [call] if call else "All right."

    settings = Settings.of(outcome="tool-calls", turns="all", variants=8, repeatable=True)
    results = list(Campaign(answer, DialogueSet("d", "test", made), settings, relation=name))
    return [variant for one in results for variant in one.variants]


REPLACE = [("I want it with express shipping", WANTED)]


@pytest.mark.parametrize(
    ("made", "outcome", "failure"),
    [
        (None, "held", None),
        (ToolCall("send_again", {}), "held", None),
        (ToolCall("send_again", {"shipping": "standard"}), "held", None),
        (WANTED, "violation", "stuck"),
        (ToolCall("send_again", {"item": "cup"}), "violation", "other"),
    ],
)
def test_what_is_not_wanted_is_not_ordered_or_ordered_otherwise(
    made: ToolCall | None, outcome: str, failure: str | None
) -> None:
    (one,) = variants("negation", [SHIP], REPLACE, bot=lambda _: [made] if made else None)
    assert one.text == "I do not want it with express shipping"
    assert (one.outcome, one.failure) == (outcome, failure)
    assert [str(delta) for delta in one.expected] == [
        "send_again[0].shipping: express -> anything but express, or no call"
    ]


def news(country: str) -> ToolCall:
    return ToolCall("news", {"country": country})


@pytest.mark.parametrize("made", [None, ToolCall("news", {}), news("iceland"), news("spain")])
def test_an_argument_that_is_left_out_may_be_what_the_bot_takes_for_it(
    made: ToolCall | None,
) -> None:
    talk = [
        ("read me the news of iceland please", news("iceland")),
        ("also show me the sports news for norway please", news("norway")),
    ]
    found = variants("removal", [NEWS], talk, bot=lambda _: [made] if made else None)
    (one,) = [one for one in found if one.text.startswith("also")]
    assert one.text == "also show me the sports news please"
    assert one.outcome == "held"


def test_a_value_that_goes_without_saying_is_not_left_out() -> None:
    said = "also show me the sports news for norway please"
    silent = [("show me the news", news("norway"))]
    assert not [
        one for one in variants("removal", [NEWS], [(said, news("norway"))], silent) if one.edits
    ]
    party = tool("table", "Books.", [], guests=described("integer", "How many."))
    alone = [("please book a nice table for 1 guest please", ToolCall("table", {"guests": 1}))]
    assert not variants("removal", [party], alone)
    three = [("please book a nice table for 3 guests please", ToolCall("table", {"guests": 3}))]
    assert variants("removal", [party], three)


def test_a_required_argument_may_come_from_an_earlier_message() -> None:
    def forecast(town: str) -> ToolCall:
        return ToolCall("weather", {"town": town})

    first = ("please read me the weather for Elm Hill", forecast("Elm Hill"))
    later = ("please also read me the weather for Oak Bay", forecast("Oak Bay"))
    found = {one.text: one for one in variants("removal", [WEATHER], [first, later])}
    alone = found["please read me the weather"].expected
    assert [delta.slot for delta in alone] == ["weather[0]", "weather[0].town"]
    (delta,) = found["please also read me the weather"].expected
    assert str(delta) == "weather[0].town: Oak Bay -> anything but Oak Bay, or no call"


def turned_to(argument: str, *values: object, said: str = "please do {} for me") -> set[str]:
    """Return what the user says when turning to another value of an argument."""
    schema = tool("act", "Acts.", [], **{argument: described("string", "It.")})
    talks = [[(said.format(one), ToolCall("act", {argument: one}))] for one in values]
    found = variants("turn-back", [schema], *talks)
    return {one.text.partition("Actually, ")[2] for one in found}


def test_turning_to_another_value_says_it_as_the_data_writes_it() -> None:
    assert turned_to("subject", "Notes for Ann McKay", "Minutes of May") == {
        "make the subject Notes for Ann McKay.",
        "make the subject Minutes of May.",
    }
    assert turned_to("number_of_adults", 2, 4) == {
        "make the number of adults 2.",
        "make the number of adults 4.",
    }
    # Other measures are of another kind, and nobody calls an argument by a preposition.
    assert turned_to("tip", 15, 0.2, 20) == {"make the tip 15.", "make the tip 20."}
    assert not turned_to("to", "Elm Hill", "Oak Bay")


def test_what_nobody_calls_a_value_is_left_alone() -> None:
    mail = "Dear all, we meet at nine in the small room on the left"
    assert not turned_to("body", mail, "Dear all, the small room on the left is not free today")
    lists = [
        [("please cook with chicken and rice", ToolCall("act", {"food": ["chicken", "rice"]}))],
        [("please cook with broccoli and corn", ToolCall("act", {"food": ["broccoli", "corn"]}))],
    ]
    cook = tool("act", "Acts.", [], food={"type": "array", "items": {"type": "string"}})
    for name in ("turn-back", "value-swap", "removal", "negation", "repair"):
        assert not variants(name, [cook], *lists)
