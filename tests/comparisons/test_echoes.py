"""Words of the user's that a reply repeats, slips included, and entities in the place of others."""

from __future__ import annotations

import pytest

from pytest_dstfuzz.campaign.answers import Folding
from pytest_dstfuzz.comparisons.comparison import ComparisonResult
from pytest_dstfuzz.comparisons.facts import without_echo, without_slips
from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.calls import REPLY, Outcome
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.relations.relation import OTHER_REPLY
from pytest_dstfuzz.trackers.tracker import Prediction


def said(*users: str) -> Context:
    return Context(tuple(Exchange("", text) for text in users))


def counted(was: str, typed: str, before: str, found: str, names: str | None = None) -> str:
    folding = Folding(comparison_by_name(names, ReplySettings()))
    clean, given = (Prediction(Outcome({REPLY: text})) for text in (before, found))
    asked = said(was)
    (one,) = folding.to_clean([given], [clean], clean.state, asked, seen=said(typed))
    return one.state[REPLY]


@pytest.mark.parametrize("names", [None, "exact"])
def test_a_reply_that_repeats_a_slip_is_the_one_without_it(names: str | None) -> None:
    before = "The pool closes at 10 pm."
    for typed in ("When does the pooool close?", "when does the Pooool clse"):
        found = "The pooool closes at 10 pm."
        assert counted("When does the pool close?", typed, before, found, names) == before
    wrong = "The pooool closes at 9 pm."
    assert (
        counted("When does the pool close?", "When does the pooool close?", before, wrong) == wrong
    )


def test_only_what_was_typed_for_something_else_is_undone() -> None:
    was, typed = (
        said("Please tell me a lot about it from the start"),
        said("Please tell me alot about it form the start"),
    )
    assert without_slips("Alot? Fill in the form.", was, typed) == "A lot? Fill in the from."
    # The clean reply says it as well.
    assert without_slips("Fill in the form.", was, typed, "This form.") == "Fill in the form."
    assert without_slips("A cat.", said("dog"), said("cat")) == "A cat."
    assert without_slips("Where?", said("Where is it"), said("When", "Where is it")) == "Where?"


def test_where_another_reply_is_wanted_slips_stay() -> None:
    folding = Folding(comparison_by_name("exact", ReplySettings()))
    given = Prediction(Outcome({REPLY: "It is Ely."}))
    before, wanted = Outcome({REPLY: "It is Bath."}), OTHER_REPLY
    expected = wanted.against(before)
    (one,) = folding.to_clean([given], [], before, said("to Bath"), expected, said("to Ely"))
    assert one.state == given.state


def test_an_opening_that_repeats_the_question_says_nothing() -> None:
    question = "When does my order come on Friday?"
    assert without_echo("Your order? On its way.", "Where is my order?") == "On its way."
    assert without_echo("About Friday: it comes at 3 pm.", question) == "it comes at 3 pm."
    for kept in ("No: it does not come.", "Order 7: it comes.", "My order?", "It comes on Friday."):
        assert without_echo(kept, question) == kept


@pytest.mark.parametrize(
    ("before", "found", "why"),
    [
        ("Please ask for Ada Quill.", "Please ask for Oskar Lind.", "Ada Quill / Oskar Lind"),
        ("More at /help/orders", "More at /help/hours", "/help/orders / /help/hours"),
        ("Write to a@quay.example.", "Write to b@quay.example", "a@quay.example / b@quay.example"),
        ("See https://quay.example/a.", "See https://quay.example/b", None),
        ("Ask for Ada Quill.", "Ask for her.", ""),
        ("More at /help/orders", "We open at nine.", ""),
        ("Mail a@quay.example", "Mail a@quay.example, or see /help", ""),
    ],
)
def test_entities_differ_only_where_one_stands_for_another(
    before: str, found: str, why: str | None
) -> None:
    compared = comparison_by_name("entities", ReplySettings()).compare(
        REPLY, before, found, said("?")
    )
    assert compared.same == (why == "")
    assert why is None or compared == ComparisonResult(same=not why, why=why)
