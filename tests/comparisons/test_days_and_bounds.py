"""Days of the week, bounds, sides, letters of things and people with one first name."""

from __future__ import annotations

import pytest

from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange

ASKED = Context((Exchange("", "what about it"),))


def same(before: str, found: str) -> bool:
    """Say whether two replies say the same by the default, in both orders."""
    comparison = comparison_by_name(None, ReplySettings())
    both = [
        comparison.compare("reply", *pair, ASKED).same
        for pair in ((before, found), (found, before))
    ]
    assert both[0] == both[1]
    return both[0]


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("The kiln is hot on weekdays from 9 to 5.", "The kiln is hot Monday to Friday, 9 to 5."),
        ("The kiln is hot at weekends.", "The kiln is hot on Saturdays and Sundays."),
        ("The kiln is open every day from 9 to 5.", "The kiln is open daily from 9 to 5."),
        ("The kiln is open daily from ten.", "The kiln is open from ten."),
        ("The kiln is open Mon-Fri.", "The kiln is open between Monday and Friday."),
        ("The kiln is open on Monday.", "It is open on Monday. Have a nice weekend!"),
        ("A daily ticket is 5 pounds.", "A ticket for a day is £5."),
        ("You need at least 8 people.", "A minimum of 8 people is needed."),
        ("At most 8 people fit.", "There is room for up to 8 people."),
        ("The parcel has left the depot.", "Your parcel left the depot right now."),
        ("More at /help/kiln", "You find it at /help/kiln, at most a page long."),
        ("Please go to gate C.", "Gate C is the one to go to."),
        ("The glaze is made by Karin Falk.", "Karin makes the glaze."),
        ("The glaze is made by Karin Falk.", "Karin M. Falk makes the glaze."),
    ],
)
def test_other_words_for_them_are_the_same(before: str, found: str) -> None:
    assert same(before, found)


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("The kiln is hot on weekdays.", "The kiln is hot at weekends."),
        ("The kiln is hot on weekdays.", "The kiln is hot every day."),
        ("The kiln is hot on weekdays.", "The kiln is hot Monday to Thursday."),
        ("The kiln is hot Monday to Friday.", "The kiln is hot on Monday and Friday."),
        ("You need at least 8 people.", "You need at most 8 people."),
        ("More than 8 people is fine.", "Fewer than 8 people is fine."),
        ("Up to 8 people fit.", "At least 8 people fit."),
        ("Up to eleven people fit.", "At least eleven people fit."),
        ("Turn left at the old bridge.", "Turn right at the old bridge."),
        ("Your train leaves from platform B.", "Your train leaves from platform D."),
        ("Option A is the cheaper one.", "Option B is the cheaper one."),
        ("Yoga is taught by Petra Lindqvist.", "Yoga is taught by Petra Holm."),
    ],
)
def test_others_are_told_apart(before: str, found: str) -> None:
    assert not same(before, found)
