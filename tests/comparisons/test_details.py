"""Replies of which one only says more than the other."""

from __future__ import annotations

import pytest

from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange


def asked(question: str) -> Context:
    return Context((Exchange("", question),))


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("A child pays 6 euros.", "An adult pays 12 euros, a child pays 6 euros."),
        ("We open at 9.", "We open at 9, and at 10 on Sundays."),
        ("Your parcel is on its way.", "Your parcel is on its way and arrives on Monday."),
        ("The garden is open from 9 to 5.", "The garden is open daily from 9 to 5, in May to 7."),
    ],
)
def test_a_reply_that_only_adds_is_no_contradiction(before: str, found: str) -> None:
    default = comparison_by_name(None, ReplySettings())
    for pair in ((before, found), (found, before)):
        result = default.compare("reply", *pair, asked("Your prices and hours?"))
        assert (result.same, result.unsure) == (True, True)
    assert (
        not comparison_by_name("numbers", ReplySettings())
        .compare("reply", before, found, asked("Your prices and hours?"))
        .same
    )


@pytest.mark.parametrize(
    ("before", "found", "question"),
    [
        ("Booked a table.", "Booked a table for 4.", "A table for four people, please."),
        ("We open at 9 on Sunday.", "We open at 10 on Sunday.", "When do you open?"),
        ("The gym opens at 9.", "The sauna opens at 9 and closes at 11.", "When do you open?"),
        ("We ship to islands.", "We do not ship to islands before 3 May.", "Do you ship?"),
        ("Breakfast is included.", "Breakfast is included for 12 euros.", "Is it included?"),
        ("The table is made of oak.", "The table is made of glass.", "What is it made of?"),
    ],
)
def test_other_differences_stay(before: str, found: str, question: str) -> None:
    default = comparison_by_name(None, ReplySettings())
    for pair in ((before, found), (found, before)):
        assert not default.compare("reply", *pair, asked(question)).same
