"""Replies that deny, exchange or misspell a fact with the words of the other reply."""

from __future__ import annotations

import pytest

from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange

ASKED = Context((Exchange("", "What can you tell me about this?"),))


def same(before: str, found: str) -> bool:
    """Return whether the default comparison accepts two replies, in either order."""
    comparison = comparison_by_name(None, ReplySettings())
    pairs = ((before, found), (found, before))
    told = {comparison.compare("reply", *pair, ASKED).same for pair in pairs}
    assert len(told) == 1
    return told.pop()


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("We can do that for you.", "We can't do that for you."),
        ("We can do that for you.", "Sorry, we are unable to do that for you."),
        ("I will do that.", "I will not do that."),
        ("I did it this morning.", "I did not do it."),
        ("Please do that.", "Please do not do that."),
        ("Please do so before Monday.", "Please don't do so before Monday."),
        ("I agree.", "I disagree."),
        ("We accept it.", "We reject it."),
        ("They accept the offer.", "They decline the offer."),
        ("You are eligible.", "You are ineligible."),
        ("The ramp is accessible.", "The ramp is inaccessible."),
        ("Breakfast is free of charge.", "There is a charge for breakfast."),
        ("It is larger than 50.", "It is smaller than 50."),
        ("From Ely to Norwich.", "From Norwich to Ely."),
        ("The bus runs from King's Lynn to Ely.", "The bus runs from Ely to King's Lynn."),
        ("3 adults and 2 children.", "2 adults and 3 children."),
        ("Booked: two adults and three children.", "Booked: three adults and two children."),
        ("Version 3.1 is needed.", "Version 3.10 is needed."),
        ("It starts on 05/03/2024.", "It starts on 03/05/2024."),
    ],
)
def test_a_denied_or_exchanged_fact_is_another_reply(before: str, found: str) -> None:
    assert not same(before, found)


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("We can't do that online. Our staff can do it.", "We can't do that. Our staff can do it."),
        ("We can do that for you.", "Yes, we can do this for you."),
        (
            "I cannot do that for you, so please call us.",
            "I cannot change it, so please call us and we will do that for you.",
        ),
        ("Trains leave at 9 and 11 from platform 2.", "Trains leave at 11 and 9 from platform 2."),
        ("It leaves at 5 and arrives at 7 today.", "It arrives at 7 and leaves at 5 today."),
        ("Please do not do that.", "Please don't do that."),
        ("We do not accept cheques.", "We cannot accept cheques."),
        ("3 adults and 2 children.", "2 children and 3 adults."),
        ("Booked: 3 adults and 2 children.", "Booked: three adults and two children."),
        ("We have 3 rooms with 2 beds.", "There are 2 beds in each of the 3 rooms."),
        ("It costs 3.1 pounds.", "It costs 3.10 pounds."),
        ("Version 3.10 is needed.", "You need version 3.10."),
        ("It starts on 05/03/2024.", "It starts on 5 March 2024."),
        ("It starts on 05/03/2024.", "The start is on 05/03/2024."),
        ("The bus from Ely to Norwich is late.", "Your bus from Ely to Norwich is late."),
        ("You can cancel for free.", "You can cancel free of charge."),
        ("There is no charge for gift wrapping.", "Gift wrapping is free of charge."),
    ],
)
def test_other_words_for_the_same_fact_are_the_same_reply(before: str, found: str) -> None:
    assert same(before, found)


def test_hours_of_a_day_are_no_ends_of_a_way() -> None:
    entities = comparison_by_name("entities", ReplySettings())
    words = ("It is open from dawn to dusk.", "It is closed from dusk to dawn.")
    assert entities.compare("reply", *words, ASKED).same
