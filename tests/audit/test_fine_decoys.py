"""Fine decoys are as small as a slip, and change what is asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_dstfuzz.audit.decoys import FINE_KINDS, FineDecoyMaker, KnownTurns
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.dialogue.dialogues import BeliefState

Turns = tuple[TurnResult, ...]
#: Each in three turns, so that none is a slip of who labelled.
STATES = [
    {"train-day": "tuesday", "hotel-name": "acorn guest house", "train-leaveat": "10:15"},
    {"train-day": "thursday", "hotel-name": "allenbell guest house", "train-leaveat": "16:15"},
    {"hotel-parking": "no", "hotel-internet": "yes", "hotel-name": "bridge guest house"},
    {"restaurant-name": "curry garden", "train-book people": "4"},
    {"restaurant-name": "curry prince", "train-book people": "6"},
]


@pytest.fixture
def known(turns: Turns) -> list[TurnResult]:
    """The trains of the campaign, and turns with other slots."""
    labelled = [
        replace(turns[0], dialogue_id=f"k{number}-{copy}", label=BeliefState(state))
        for number, state in enumerate(STATES)
        for copy in range(3)
    ]
    return [*turns, *labelled]


def made(
    known: list[TurnResult], kind: str, text: str, state: dict[str, str], system: str = ""
) -> str | None:
    label = BeliefState(state)
    turn = replace(known[0], dialogue_id="new", user=text, system=system, label=label)
    variant = replace(turn.variants[0], text=text)
    decoy = FineDecoyMaker(KnownTurns([*known, turn])).make(turn, variant, kind)
    assert decoy is None or (decoy.kind == kind and decoy.what and decoy.text != text)
    return decoy.text if decoy else None


@pytest.mark.parametrize(
    ("text", "state", "expected"),
    [
        ("a tran leaving from ely .", {"train-departure": "ely"}, "a tran leaving for ely ."),
        ("a train to ely pls", {"train-destination": "ely"}, "a train from ely pls"),
        # The other end says what is meant.
        ("a train from ely to york", {"train-departure": "ely"}, None),
        ("going to ely from york", {"train-destination": "ely"}, None),
        ("i like to go to ely", {"train-departure": "york"}, None),
        ("one with free parking", {"hotel-parking": "yes"}, "one without free parking"),
        ("Without parking .", {"hotel-parking": "no"}, "With parking ."),
        ("help me with a train", {}, None),
    ],
)
def test_another_cue(
    known: list[TurnResult], text: str, state: dict[str, str], expected: str | None
) -> None:
    assert made(known, "cue", text, state) == expected


@pytest.mark.parametrize(
    ("text", "reach", "negation"),
    [
        ("we do not need a hotel", "we do not X need a hotel", "we do now need a hotel"),
        ("we don't want parking", "we don't X want parking", "we do want parking"),
        ("i do n't need to book a table", "i do n't X need to book a table", "i do need to book"),
        ("I'm not looking for trains", "I'm not X looking for trains", "I'm now looking for"),
        # The request is the same without, or nobody can tell.
        ("i don't want to miss it", None, None),
        ("i do not care", None, None),
        ("i do not need any rooms", None, None),
        ("not now. is it in ely?", None, None),
    ],
)
def test_a_negated_wish(
    known: list[TurnResult], text: str, reach: str | None, negation: str | None
) -> None:
    found = made(known, "degree", text, {})
    limited = [reach and reach.replace("X", word) for word in ("just", "only")]
    assert found in limited
    found = made(known, "negation", text, {})
    assert found is not None if negation else found is None
    assert not negation or str(found).startswith(negation)


def test_words_that_come_and_go(known: list[TurnResult]) -> None:
    state = {"train-destination": "ely"}
    assert made(known, "degree", "not just a train to ely", state) == "not a train to ely"
    assert made(known, "degree", "not just now , to ely", {}) is None
    assert made(known, "negation", "i am now looking for ely", state) == "i am not looking for ely"
    assert made(known, "negation", "i am now in a hurry", state) is None


def test_one_digit(known: list[TurnResult]) -> None:
    state = {"train-leaveat": "10:15", "train-book people": "4"}
    assert made(known, "digit", "4 at 10:15", {"train-leaveat": "10:15"}) == "4 at 16:15"
    assert made(known, "digit", "for 4 people", state) == "for 6 people"
    assert made(known, "digit", "for four people", state) is None
    # 10:17 differs in one digit, and one turn alone has it: it may be a slip of who labelled.
    assert made(known, "digit", "at 11:17", {"train-leaveat": "11:17"}) is None


def test_one_word_of_a_name(known: list[TurnResult]) -> None:
    garden = {"restaurant-name": "curry garden"}
    assert made(known, "name", "try Curry Garden", garden) == "try Curry Prince"
    house = {"hotel-name": "acorn guest house"}
    assert made(known, "name", "the acorn guest house ?", house) == "the guest house ?"
    # It was said before, so that the rest is enough: another name then.
    heard = made(known, "name", "the acorn guest house ?", house, "acorn guest house is free")
    assert heard in {"the bridge guest house ?", "the allenbell guest house ?"}
    assert made(known, "name", "on tuesday", {"train-day": "tuesday"}) is None


def test_a_value_that_is_spelled_nearly_so(known: list[TurnResult]) -> None:
    assert made(known, "value_typo", "on Tuesday", {"train-day": "tuesday"}) == "on Thursday"
    assert made(known, "value_typo", "to ely", {"train-destination": "ely"}) is None
    assert made(known, "value_typo", "to norwich", {"train-destination": "norwich"}) is None


@pytest.mark.parametrize("kind", FINE_KINDS)
def test_nothing_known_gives_no_decoy(known: list[TurnResult], kind: str) -> None:
    assert made(known, kind, "hello there , how are you ?", {}) is None
    assert made(known, kind, "", {}) is None
