"""What each comparison of facts takes for the same, and what it says of the rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.comparisons.comparison import EXACT, ComparisonResult
from pytest_dstfuzz.comparisons.facts import SameNumbers, names
from pytest_dstfuzz.comparisons.polarity import is_fallback
from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange

ASKED = Context((Exchange("", "what else"),))
SHIPPED = ("exact", "numbers", "polarity", "names", "ids", "numbers,polarity,names")


def compared(
    name: str, before: str, found: str, settings: ReplySettings | None = None
) -> ComparisonResult:
    comparison = comparison_by_name(name, settings or ReplySettings())
    there, back = (
        comparison.compare("reply", *texts, ASKED) for texts in ((before, found), (found, before))
    )
    assert there.same == back.same
    return there


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("1,200", "1200"),
        ("Seventeen thousand five hundred", "17,500"),
        ("a table for two at half past 8", "Table for 2, 8:30 pm"),
        ("first", "1st"),
        ("quarter to nine", "8:45"),
        ("at 20:30", "8:30 in the evening"),
        ("at 8.30", "half past eight"),
        ("noon", "12 pm"),
        ("08:15", "8:15 am"),
        ("£20", "20 pounds"),
        ("€3,50", "3.50 euros"),
        ("$20k", "20,000 dollars"),
        ("12 May", "May 12th, 2020"),
        ("12/05/2020", "12 May 2020"),
        ("2020-05-12", "12 May"),
        ("an hour and a half", "90 minutes"),
        ("half an hour", "30 min"),
        ("24 hours", "1 day"),
        ("800 m", "0.8 km"),
        ("20%", "20 percent"),
        ("One room", "a room"),
        ("two-bedroom flat", "2-bedroom flat"),
        ("call 01223 358 966", "call 01223358966"),
        ("flight BA 123", "flight BA123"),
        ("1. Tea\n2. Milk", "Tea and milk"),
        ("As said [3] on https://example.org/7", "As said"),
        ("It may rain", "It rains"),
        ("Mon-Fri", "Monday to Friday"),
        ("one second", "a second"),
        ("in July 1969", "in 1969"),
        ("stay for 3 days", "stay for 3"),
    ],
)
def test_numbers_are_the_same_however_they_are_written(before: str, found: str) -> None:
    assert compared("numbers", before, found) == ComparisonResult(same=True)


@pytest.mark.parametrize(
    ("before", "found", "why"),
    [
        ("in 1969", "in 1970", "1969 / 1970"),
        ("£20", "$20", "£20 / $20"),
        ("8 pm", "8am", "8 pm / 8am"),
        ("12 May", "12 June", "12 May / 12 June"),
        ("2 rooms", "a room", "2 / -"),
        ("Monday", "Tuesday", "Monday / Tuesday"),
        ("AB12CD", "AB12CE", "AB12CD / AB12CE"),
        ("5 minutes", "5 hours", "5 minutes / 5 hours"),
        ("1 hour", "1 day", "1 hour / 1 day"),
        ("-5°C", "5°C", "-5°C / 5°C"),
        ("minus 5 degrees", "5 degrees", "-5 degrees / 5 degrees"),
        ("minus five euros", "five euros", "-5 euros / 5 euros"),
        ("-£5", "£5", "-£5 / £5"),
        ("the second floor", "the third floor", "2nd / 3rd"),
        ("noon", "midnight", "noon / midnight"),
        ("3 4 5 6 7 x", "x", "3, 4, 5 and 2 more / -"),
    ],
)
def test_other_numbers_are_told(before: str, found: str, why: str) -> None:
    assert compared("numbers", before, found) == ComparisonResult(same=False, why=why)


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("No, it closes at five.", "It closes at five."),
        ("There is no charge.", "It is free."),
        ("Tickets aren't needed.", "You don't need a ticket."),
        ("It is closed.", "It is not open."),
        ("Sold out, sorry.", "There are none available."),
        ("If it does not arrive, call us.", "Call us if it is late."),
        ("No problem, it is booked.", "It is booked."),
        ("We don't serve lunch, but we are open.", "We are open, but we do not serve lunch."),
        ("Sorry, I don't know.", "What do you mean?"),
        ("I wasn't able to set the alarm.", "The alarm could not be created."),
        ("I could not book the table.", "Sorry, the booking failed."),
        ("We are not open.", "It is not true that we are open."),
        ("We do not ship to Norway.", "We no longer ship to Norway."),
        ("It stays open no longer than an hour.", "It stays open for an hour."),
        ("We do not ship books.", "We have stopped shipping books."),
        ("The pool is not heated.", "It is an unheated pool."),
        ("I understand you want a room.", "You want a room."),
        ("You can send it back within 30 days.", "Within 30 days, and after 30 days never."),
    ],
)
def test_who_denies_the_same_agrees(before: str, found: str) -> None:
    assert compared("polarity", before, found) == ComparisonResult(same=True)


@pytest.mark.parametrize(
    ("before", "found", "why"),
    [
        ("Yes, we do.", "No, we don't.", "yes / no"),
        ("We have a pool.", "We do not have a pool.", "pool / not pool"),
        ("Pets are welcome.", "Pets are not allowed.", "allow / not allow"),
        ("The pool is open.", "The pool is closed.", "open / not open"),
        ("It is at ten.", "I don't know.", "an answer / no answer"),
        ("I found your order.", "I could not find your order.", "find / not find"),
        ("We are open.", "It isn't true that we are open.", "open / not open"),
        ("We are open.", "It is wrong that we are open.", "open / not open"),
        ("We ship today.", "We no longer ship today.", "ship / not ship"),
        ("We ship today.", "We stopped shipping today.", "ship / not ship"),
        ("We ship today.", "We refuse to ship today.", "ship / not ship"),
        ("The pool is heated.", "The pool is unheated.", "heat / not heat"),
        ("Take it once a day.", "Take it twice a day.", "once / twice"),
        ("Return it within 30 days.", "Return it after a month.", "inperiod / postperiod"),
    ],
)
def test_a_contradiction_is_told(before: str, found: str, why: str) -> None:
    assert compared("polarity", before, found) == ComparisonResult(same=False, why=why)


def test_who_gives_up_is_known_and_a_suite_adds_to_it() -> None:
    assert is_fallback("Sorry, could you rephrase that?")
    assert not is_fallback("Sorry, I could not get that ticket.")
    assert not is_fallback("Sorry, we do not have any rooms left.")
    assert not is_fallback("I don't know when you would like to travel. Which day is it?")
    own = ReplySettings(fallback=("ask reception",))
    assert compared("polarity", "Ask reception.", "At noon.", own).why == "no answer / an answer"
    assert compared("polarity", "Ask reception.", "At noon.").same


def test_names_are_runs_of_capitals_and_quotes() -> None:
    assert names("Great news from Ely! We go to King's Cross.") == (("Ely",), ("King's", "Cross"))
    assert (
        compared("names", "Take the bus to Ely.", "Take the bus to Norwich.").why == "Ely / Norwich"
    )
    assert compared("names", "It was Marie Curie.", "Curie, it was.").same
    assert compared("names", "Read “the long way” first.", "First read “a short road”.").why == (
        "the long way / a short road"
    )


def test_cited_ids_are_a_set() -> None:
    assert compared("ids", "So [3], see [7].", "So [7][3].").same
    assert compared("ids", "So [3].", "So [3][7].").why == "[3] / [3][7]"
    own = ReplySettings(cited=r"DOC-\d+")
    assert compared("ids", "DOC-1 [2]", "DOC-1 [3]", own).same
    assert not compared("ids", "DOC-1", "DOC-2", own).same


def test_equality_of_states_is_exact_and_that_of_replies_looks_past_blanks() -> None:
    assert (EXACT.exact, EXACT.identity) == (True, "equal")
    assert compared("exact", " It  is\nopen.", "It is open. ").same
    assert compared("exact", "caf\u00e9", "cafe\u0301").same
    assert not compared("exact", "Open.", "open.").same


@pytest.mark.parametrize("name", SHIPPED)
@given(texts=st.tuples(st.text(max_size=60), st.text(max_size=60)))
def test_every_text_is_compared_alike_in_both_orders(name: str, texts: tuple[str, str]) -> None:
    assert compared(name, texts[0], texts[0]) == ComparisonResult(same=True)
    assert compared(name, *texts) == compared(name, *texts)


def test_a_reference_may_have_any_number_of_digits() -> None:
    long, numbers = "code A" + "1" * 6000, comparison_by_name("numbers", ReplySettings())
    assert not numbers.compare("reply", long, "12", ASKED).same


@pytest.mark.parametrize(
    ("before", "found", "same"),
    [
        (
            "Yes, for your own album, but no tripod, please.",
            "Yes, for your own album, with a tripod, too.",
            False,
        ),
        ("Yes, bring a tripod if you like.", "Yes, you may bring a tripod.", True),
        ("Yes, free of charge, no need to book.", "Yes, it is free, just walk in.", True),
    ],
)
def test_replies_that_begin_with_yes_may_deny_each_other(
    before: str, found: str, same: bool
) -> None:
    assert compared("polarity", before, found).same is same


@pytest.mark.parametrize("text", ["9" * 400, "9" * 400 + " rooms", "one hundred " * 2200])
def test_a_number_that_is_too_large_is_compared_as_it_is(text: str) -> None:
    asked = Context((Exchange("", "How many rooms are there?"),))
    same = SameNumbers()
    assert same.compare("reply", text, text, asked).same
    assert not same.compare("reply", text, "We have 8:30 and 7.", asked).same
