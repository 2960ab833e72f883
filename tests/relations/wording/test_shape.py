"""Asides, values said again, turns said in two, and two turns said in one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.calls import Outcome
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, DialogueSet, Turn
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.relations.registry import relation_by_name
from pytest_dstfuzz.relations.relation import UNCHANGED, Inapplicable, Rewrite, Scenes, begin

Rewritten = Callable[..., list[Rewrite]]
STATE = {"hotel-area": "north", "hotel-pricerange": "cheap"}


def test_an_aside_comes_before_the_turn(rewritten: Rewritten):
    found = rewritten("aside", "In the north.", STATE, system="In which area?")
    assert found
    for one in found:
        *_, aside, last = one.seen.exchanges
        assert (aside.system, last.user) == ("In which area?", "In the north.")
        assert aside.user.endswith("?")
        assert last.system.endswith("In which area?")
        assert len(one.seen.exchanges) == len(one.reference.exchanges) + 1
        assert one.expected == UNCHANGED
    assert rewritten("aside", "In the north.", STATE) == []


def spoken(name: str, scenes: Scenes, *said: tuple[str, Mapping[str, str]]) -> list[Rewrite]:
    turns = [
        Turn(index, "Anything else?" if index else "", user, BeliefState(state))
        for index, (user, state) in enumerate(said)
    ]
    scene = scenes.labelled(name, Dialogue("d", tuple(turns)), len(turns) - 1)
    begun = begin(relation_by_name(name), scene)
    return [] if isinstance(begun, Inapplicable) else list(begun)


def talk(scenes: Scenes, *said: tuple[str, Mapping[str, str]]) -> list[str]:
    return [one.seen.user for one in spoken("restate", scenes, *said)]


CHEAP = ("I would like a cheap inn.", {"hotel-pricerange": "cheap"})


def test_a_need_is_said_once_more(scenes: Scenes):
    found = talk(scenes, CHEAP, ("In the north.", STATE))
    assert set(found) == {
        f"In the north. {lead} I would like a cheap inn."
        for lead in ("Once again:", "To repeat:", "As I said:")
    }


@pytest.mark.parametrize(
    ("first", "user", "state"),
    [
        (CHEAP, "In the north?", STATE),
        (CHEAP, "In the north, thanks.", STATE),
        (CHEAP, "That one is fine.", STATE),
        (CHEAP, "An expensive one in the north.", {**STATE, "hotel-pricerange": "expensive"}),
        (CHEAP, "A museum in the north.", {**CHEAP[1], "attraction-area": "north"}),
        (("I want to book a cheap hotel.", CHEAP[1]), "In the north.", STATE),
        (("Is there a cheap hotel?", CHEAP[1]), "In the north.", STATE),
    ],
)
def test_some_needs_are_not_said_once_more(
    scenes: Scenes, first: tuple[str, Mapping[str, str]], user: str, state: Mapping[str, str]
):
    assert talk(scenes, first, (user, state)) == []


def test_a_turn_is_said_in_two(rewritten: Rewritten):
    user = "I need a hotel. It should be cheap. Is it in the north there?"
    found = rewritten("split", user, STATE)
    said = [tuple(exchange.user for exchange in one.seen.exchanges) for one in found]
    assert said == [
        ("I need a hotel.", "It should be cheap. Is it in the north there?"),
        ("I need a hotel. It should be cheap.", "Is it in the north there?"),
    ]
    assert all(one.seen.exchanges[1].system == "Okay." for one in found)


@pytest.mark.parametrize(
    "user", ["A cheap hotel.", "Is there a hotel? It must be cheap.", "Yes. No."]
)
def test_some_turns_are_not_cut(rewritten: Rewritten, user: str):
    assert rewritten("split", user, STATE) == []


def test_two_turns_are_said_in_one(scenes: Scenes):
    museum = ("Find me a museum.", {"attraction-type": "museum"})
    cheap = (CHEAP[0], {**museum[1], **CHEAP[1]})
    (found,) = spoken("join", scenes, museum, cheap, ("In the north.", {**museum[1], **STATE}))
    assert [one.user for one in found.seen.exchanges] == [
        "Find me a museum.",
        "I would like a cheap inn. In the north.",
    ]
    assert [one.user for one in found.reference.exchanges] == [museum[0], cheap[0], "In the north."]
    assert found.expected == UNCHANGED
    assert [move.kind for move in found.moves] == ["join"]


ASKS = "Can you find me a cheap hotel? What does it cost?"


@pytest.mark.parametrize(
    ("first", "user", "state"),
    [
        (CHEAP, "Yes, in the north.", STATE),
        (CHEAP, "I want that one in the north.", STATE),
        (CHEAP, "Is it in the north there?", STATE),
        (CHEAP, "I want an expensive one.", {"hotel-pricerange": "expensive"}),
        (CHEAP, "I need a museum in the north.", {**CHEAP[1], "attraction-area": "north"}),
        (CHEAP, "I need nothing else.", CHEAP[1]),
        (("A cheap hotel.", CHEAP[1]), "In the north.", STATE),
        ((ASKS, CHEAP[1]), "In the north.", STATE),
    ],
)
def test_some_turns_are_not_said_in_one(
    scenes: Scenes, first: tuple[str, Mapping[str, str]], user: str, state: Mapping[str, str]
):
    assert spoken("join", scenes, first, (user, state)) == []


def replied(name: str, *said: str, several: bool = True) -> list[tuple[str, ...]]:
    """Return the messages of the user in each rewrite, of a bot that replies."""
    turns = tuple(Turn(index, "I see." if index else "", user) for index, user in enumerate(said))
    talk, words = Dialogue("d", turns), load_lexicon()
    other = Dialogue("o", (Turn(0, "", "Hello."), Turn(1, "Good morning.", "Bye.")))
    data = DialogueSet("bot", "test", (talk, other) if several else (talk,))
    scenes = Scenes(data, words, Locks(words), 0, ReplySettings(outcome="reply"))
    replies = [Outcome({"reply": "We open at nine."})] * len(turns)
    begun = begin(relation_by_name(name), scenes.of(name, talk, len(turns) - 1, replies))
    if isinstance(begun, Inapplicable):
        return []
    assert isinstance(begun, list)
    return [tuple(exchange.user for exchange in one.seen.exchanges) for one in begun]


def test_facts_may_come_in_an_earlier_turn_before_a_reply():
    told = ("I have a cat.", "Which food do you sell?")
    assert replied("split", " ".join(told)) == [told]
    assert replied("join", *told) == [(" ".join(told),)]
    lost = "I lost my card, so what should I do?"
    assert replied("split", lost) == [("I lost my card.", "What should I do?")]


def test_a_bot_for_single_questions_may_forget():
    assert replied("split", "I have a cat. Which food do you sell?", several=False) == []


@pytest.mark.parametrize(
    "user",
    [
        "Cancel my order. What does it cost?",
        "I need nothing else. Thank you so much.",
        "In short, can you fix it?",
    ],
)
def test_some_first_parts_would_need_a_reply(user: str):
    assert replied("split", user) == []


@pytest.mark.parametrize(
    ("first", "user"),
    [
        ("Do you like cats?", "Which food do you sell?"),
        ("I have a cat.", "Yes, and which food do you sell?"),
        ("Find me a vet.", "Which food do you sell?"),
        ("I need a vet.", "Which food do you sell?"),
        ("I have a cat.", "It is grey."),
        ("My cat is bleeding.", "Which food do you sell?"),
    ],
)
def test_some_facts_stay_in_their_turn(first: str, user: str):
    assert replied("join", first, user) == []


def test_a_detail_may_come_in_a_second_turn():
    said = replied("split", "I need a table for two on Friday.")
    assert said == [("I need a table.", "For two on Friday, please.")]
    assert replied("split", "Cancel my lesson on Friday.") == []
    assert replied("split", "Can you keep this map for me?") == []
    assert replied("split", "What is the weather like on Friday?") == []


def test_replies_have_no_need_that_the_state_keeps():
    assert relation_by_name("restate").on == ("state", "tool-calls")
    for name in ("aside", "split", "join"):
        assert set(relation_by_name(name).on) == {"state", "reply", "tool-calls"}


@pytest.mark.parametrize("name", ["aside", "restate", "split", "join"])
def test_assistants_that_call_tools_are_tested(name: str):
    data, words = load_dialogues("sample-tools", outcome="tool-calls"), load_lexicon()
    guards = Locks(words, data.ontology, data.cue_words)
    scenes = Scenes(data, words, guards, 0, ReplySettings(outcome="tool-calls"))
    relation, applies = relation_by_name(name), 0
    for dialogue in data.dialogues:
        for turn in dialogue.turns:
            if turn.calls is None:
                continue
            begun = begin(relation, scenes.labelled(name, dialogue, turn.index))
            applies += not isinstance(begun, Inapplicable)
    assert applies > 0
