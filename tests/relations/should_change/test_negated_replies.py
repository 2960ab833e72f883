"""A statement to a bot that replies, with the opposite meaning: what is written and expected."""

from __future__ import annotations

import pytest

from pytest_dstfuzz import Campaign, Settings
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.calls import Outcome, ToolCall
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet, Turn
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.relations.relation import OTHER_REPLY, Inapplicable, Scene, Scenes, begin
from pytest_dstfuzz.relations.should_change.relations import Negation
from pytest_dstfuzz.relations.should_change.replies import NO_OPPOSITE, NOT_ONE


def scene_of(user: str) -> Scene:
    data = DialogueSet("bot", "test", (Dialogue("d", (Turn(0, "", user),)),))
    words = load_lexicon()
    scenes = Scenes(data, words, Locks(words), 0, ReplySettings(outcome="reply"))
    return scenes.of("negation", data.dialogues[0], 0, [Outcome({"reply": "Fine."})])


@pytest.mark.parametrize(
    ("user", "opposite"),
    [
        ("I want olives on my pizza, please.", "I do not want olives on my pizza, please."),
        ("I don't want olives.", "I want olives."),
        ("I do not need a bag. Thanks!", "I need a bag. Thanks!"),
        ("Hey! We need garage parking.", "Hey! We do not need garage parking."),
        ("I also need a bag.", "I do not need a bag."),
        ("I need a bag too.", "I do not need a bag."),
        ("I need a bag as well please.", "I do not need a bag please."),
        ("I want to cancel my order.", "I do not want to cancel my order."),
        ("Book the room.", "Do not book the room."),
        ("Cancel my order.", "Do not cancel my order."),
        ("Please cancel my order.", "Please do not cancel my order."),
        ("Don't cancel my order.", "Cancel my order."),
        ("My parcel has not arrived.", "My parcel has arrived."),
        ("My card isn't working.", "My card is working."),
        ("My new card is working.", "My new card is not working."),
        ("I can't log in.", "I can log in."),
        ("A pizza without onions, please.", "A pizza with onions, please."),
        ("A pizza with onions, please.", "A pizza without onions, please."),
        ("No onions please.", "Onions please."),
        ("Which dishes don't contain nuts?", "Which dishes contain nuts?"),
        ("Which rooms are not free?", "Which rooms are free?"),
        ("Which rooms have a view?", "Which rooms do not have a view?"),
        ("Which dishes are vegan?", "Which dishes are not vegan?"),
        ("Find me a hotel in the centre.", "Find me a hotel that is not in the centre."),
        ("Turn off the lamp.", "Do not turn off the lamp."),
        ("Find me a red bike.", "Find me a bike that is not red."),
    ],
)
def test_a_statement_takes_its_opposite(user: str, opposite: str) -> None:
    begun = begin(Negation(), scene_of(user))
    assert isinstance(begun, list)
    assert [(one.seen.user, one.expected) for one in begun] == [(opposite, OTHER_REPLY)]


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        ("Is it open?", NOT_ONE),
        ("What don't you sell?", NOT_ONE),
        ("Which rooms do you have?", NOT_ONE),
        ("My parcel has not arrived yet.", NO_OPPOSITE),
        ("A house with two rooms.", NO_OPPOSITE),
        ("Help me with my order.", NO_OPPOSITE),
        ("I need a bag. I have a card.", NOT_ONE),
        ("My order has arrived. What now?", NOT_ONE),
        ("Thank you!", NOT_ONE),
        ("I want to know your address.", NO_OPPOSITE),
        ("I don't care about the price.", NO_OPPOSITE),
        ("I don't want nothing.", NO_OPPOSITE),
        ("I am in Oslo, find me a house.", NO_OPPOSITE),
        ("Two.", NO_OPPOSITE),
        ("I'm looking for a gift.", NO_OPPOSITE),
        ("I'm going to the church.", NO_OPPOSITE),
        ("I would like to make an appointment.", NO_OPPOSITE),
        ("I want to find out the price.", NO_OPPOSITE),
        ("I need a bag.", NO_OPPOSITE),
        ("We need two rooms.", NO_OPPOSITE),
        ("Find the weather forecast.", NO_OPPOSITE),
        ("Book me a room.", NO_OPPOSITE),
        ("Make that the ninth.", NO_OPPOSITE),
    ],
)
def test_some_statements_stay(user: str, reason: str) -> None:
    assert begin(Negation(), scene_of(user)) == Inapplicable(reason)


def test_a_negated_request_makes_no_call() -> None:
    user = "Cancel my booking on Sunday."
    data = DialogueSet("bot", "test", (Dialogue("d", (Turn(0, "", user),)),))
    settings = Settings.of(outcome="tool-calls", variants=2)

    def deaf(context: Context) -> list[ToolCall]:
        return [ToolCall("cancel", {"day": "Sunday"})] if "ancel" in context.user else []

    def right(context: Context) -> list[ToolCall]:
        return [] if "not" in context.user else deaf(context)

    found = {
        bot: [turn.outcome for turn in Campaign(bot, data, settings, relation="negation")]
        for bot in (deaf, right)
    }
    assert found == {deaf: ["violation"], right: ["held"]}


def test_a_bot_that_ignores_negation_is_found() -> None:
    asked = DialogueSet("bot", "test", (Dialogue("d", (Turn(0, "", "I don't want olives."),)),))
    settings = Settings.of(outcome="reply", variants=2)

    def deaf(context: Context) -> str:
        return "A pizza with olives." if "olives" in context.user else "Sorry?"

    def right(context: Context) -> str:
        refused = "don't" in context.user or "not" in context.user
        return "A pizza without olives." if refused else deaf(context)

    found = {
        bot: [turn.outcome for turn in Campaign(bot, asked, settings, relation="negation")]
        for bot in (deaf, right)
    }
    assert found == {deaf: ["violation"], right: ["held"]}
