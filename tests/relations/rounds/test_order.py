"""Shuffle and drop: what they ask and expect, and each reason for which they do not apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_dstfuzz.dialogue.dialogues import Ontology
from pytest_dstfuzz.relations.relation import UNCHANGED, Move
from pytest_dstfuzz.relations.rounds import Drop, Shuffle

if TYPE_CHECKING:
    from conftest import Begin, Said

START = ("", "Hi, a train to Ely for me.", {"train-destination": "ely"})
ROOM = ("Anything else?", "A cheap hotel, too.", {"hotel-pricerange": "cheap"})
MODERATE = ("Sure.", "A moderate hotel.", {"hotel-pricerange": "moderate"})
DAY = ("Sure.", "The train is on friday.", {"train-day": "friday"})
PEOPLE = ("Sure.", "The train is for 3 people.", {"train-people": "3"})
BYE = ("Done.", "Great, bye.", {})


def test_independent_rounds_change_places(begin: Begin):
    (found,) = begin(Shuffle(), [START, DAY, PEOPLE, BYE])
    assert [e.user for e in found.seen.exchanges] == [START[1], PEOPLE[1], DAY[1], BYE[1]]
    assert found.moves == (Move("move", 2, 1),)
    assert found.about == "round 3 before round 2"
    assert found.expected == UNCHANGED
    assert [e.user for e in found.reference.exchanges] == [START[1], DAY[1], PEOPLE[1], BYE[1]]


def test_several_rounds_change_places(begin: Begin):
    found = begin(Shuffle(), [START, DAY, PEOPLE, ROOM, BYE])
    orders = {tuple(e.user for e in rewrite.seen.exchanges[1:-1]) for rewrite in found}
    assert (ROOM[1], DAY[1], PEOPLE[1]) in orders
    assert (DAY[1], PEOPLE[1], ROOM[1]) not in orders
    assert any(len(rewrite.moves) > 1 for rewrite in found)
    assert len(orders) == len(found)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ([START, BYE], 0),
        ([START, DAY, BYE, PEOPLE], 0),
        ([START, DAY, ("Sure.", "No, on sunday, the train.", {"train-day": "sunday"})], 1),
        ([START, DAY, ("The 9:15 train?", "Fine.", {"train-people": "1"})], 2),
        ([START, DAY, ("On friday, then.", "For 3, the train.", {"train-people": "3"})], 3),
        ([START, DAY, ("Sure.", "Get 3 seats on it.", {"train-people": "3"})], 5),
        # Moved forward, they would be two people on the train.
        ([START, ROOM, ("How many?", "For 2 people.", {"hotel-people": "2"})], 6),
    ],
)
def test_rounds_that_are_not_independent_stay(begin: Begin, said: list[Said], reason: int):
    assert begin(Shuffle(), said) == Shuffle.reasons[reason]


def test_what_a_dropped_round_gave_is_gone(begin: Begin):
    (found,) = begin(Drop(), [START, DAY, BYE])
    assert [e.user for e in found.seen.exchanges] == [START[1], BYE[1]]
    assert [str(delta) for delta in found.expected.deltas] == ["train-day: friday -> none"]
    assert found.moves == (Move("drop", 1),)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ([START, BYE], 0),
        ([START, DAY], 0),
        ([START, DAY, ("No seats.", "Saturday then.", {"train-day": "saturday"})], 1),
        ([START, ("The 9:15 train?", "Fine.", {"train-people": "1"}), BYE], 3),
        # The system said it, and the user accepts.
        ([START, ("For 3 on the train?", "Yes.", {"train-people": "3"}), BYE], 3),
        # What an earlier round gave would lose a mention.
        ([START, ("Sure.", "To ely on friday.", {"train-day": "friday"}), BYE], 4),
        ([START, ("Sure.", "On sunday.", {"train-day": "sunday"}), DAY, BYE], 5),
        ([START, ("Sure.", "Sorry, friday.", {"train-day": "friday"}), BYE], 6),
        ([START, DAY, ("Booked for friday.", "Bye.", {})], 7),
        ([START, MODERATE, ("There are moderately priced ones.", "Fine.", {})], 7),
        ([START, DAY, ("Sure.", "Actually, some other day.", {})], 8),
        ([START, DAY, ("A taxi?", "Yes, that day as well.", {"taxi-day": "friday"})], 9),
        ([START, DAY, ("A hotel?", "Get it cheap.", {"hotel-pricerange": "cheap"})], 10),
        ([START, ROOM, ("How many?", "For 2 people.", {"hotel-people": "2"})], 11),
    ],
)
def test_rounds_that_others_need_are_not_dropped(begin: Begin, said: list[Said], reason: int):
    assert begin(Drop(), said) == Drop.reasons[reason]


def test_an_offer_that_stands_again_forbids_it(begin: Begin):
    said = [START, ("Is sunday fine?", "Which one?", {}), DAY, BYE]
    assert not isinstance(begin(Drop(), said), str)
    days = Ontology({"train-day": ("friday", "sunday")})
    assert begin(Drop(), said, ontology=days) == Drop.reasons[5]


PRICES = Ontology(
    {
        "hotel-pricerange": ("cheap", "expensive", "moderate"),
        "taxi-class": ("cheap", "expensive"),
        "train-destination": ("ely",),
        "train-leaveat": (),
        "train-people": ("2", "3"),
    }
)
LEAVE = ("When?", "The train at 9:15.", {"train-leaveat": "09:15"})


@pytest.mark.parametrize(
    ("said", "user"),
    [(ROOM, "Expensive please."), (LEAVE, "Make it 5pm."), (PEOPLE, "The train, two people.")],
)
def test_a_correction_that_the_tracker_misses_forbids_it(begin: Begin, said: Said, user: str):
    """The states do not show it: without the round, the other value is the right one."""
    missed = ("Fine.", user, {})
    assert begin(Drop(), [START, said, missed, BYE], ontology=PRICES) == Drop.reasons[8]
    assert not isinstance(begin(Drop(), [START, said, BYE], ontology=PRICES), str)


def test_a_value_that_the_label_gives_to_another_slot_is_no_correction(begin: Begin):
    taxi = ("Fine.", "An expensive taxi.", {"taxi-class": "expensive"})
    (found,) = begin(Drop(), [START, ROOM, taxi], ontology=PRICES)
    assert [str(delta) for delta in found.expected.deltas] == ["hotel-pricerange: cheap -> none"]


def test_a_round_with_a_correction_that_the_tracker_misses_keeps_its_place(begin: Begin):
    both = ("Sure.", "A moderate hotel, and 3 people on the train.", {"train-people": "3"})
    assert begin(Shuffle(), [START, ROOM, both], ontology=PRICES) == Shuffle.reasons[4]


def test_a_round_with_more_values_than_it_gives_stays(begin: Begin):
    """A value that other dialogues have is one here too, whatever this label says."""
    other = ("Sure.", "The train on friday, a cheap one.", {"train-day": "friday"})
    assert begin(Drop(), [START, other, ROOM]) == Drop.reasons[4]


def test_a_disagreeing_label_forbids_it(begin: Begin):
    wrong = {"train-day": "sunday"}
    assert begin(Drop(), [START, DAY, BYE], wrong) == Drop.reasons[2]
    assert not isinstance(begin(Drop(), [START, DAY, BYE], {"train-destination": "york"}), str)
