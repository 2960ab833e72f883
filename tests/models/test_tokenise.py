"""The one text form of TRADE: known cases, and that it is a fixed point."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.models.tokenise import tokenise
from pytest_dstfuzz.models.trade.vocabulary import SYSTEM_MARK, USER_MARK, history_words

# Text as typed, the same as the TRADE layout writes it, the common form.
SAME = [
    ("I 'm fond of a guesthouse with cats .", "i am fond of a guest house with cats .",
     "i am fond of a guesthouse with cats ."),
    ("I don't love parking", "i do not love parking", "i do not love parking"),
    ("We wo n't , we ca n't !", "we will not , we cannot !", "we will not , we can not !"),
    ("That 's all , thanks", "that s all , thanks", "thats all , thanks"),
    ("Saint Mary's church", "saint mary s church", "saint marys church"),
    ("moderately priced restaurants", "moderate -ly priced restaurant -s",
     "moderately priced restaurants"),
    ("leave at 5:30pm .", "leave at 17:30 .", "leave at 17:30 ."),
    ("leave at 9:05", "leave at 09:05", "leave at 09:05"),
    ("a table for two at four o'clock", "a table for 2 at 04:00", "a table for 2 at 04:00"),
    ("arrive by 10.15", "arrive by 10:15", "arrive by 10:15"),
    ("a three-star place", "a 3 star place", "a 3 star place"),
    ("free wi-fi ?", "free wi fi ?", "free wifi ?"),
    ("Good - bye !", "goodbye !", "goodbye !"),
    ("the one ( TR0330 )", "the 1 tr0330", "the 1 tr0330"),
]  # fmt: skip

KNOWN = [
    ("", ""),
    ("   \t\n ", ""),
    ("at 5 people", "at 5 people"),
    ("12:30 a.m. please", "00:30 please"),
    ("12 pm", "12:00"),
    ("£4 , 1,200 people", "£ 4 , 1200 people"),
    ("hotel\U0001f3e8!!!", "hotel\U0001f3e8 !"),
    ("CAFÉ", "café"),
    ("cаfe", "cаfe"),  # A Cyrillic a stays what it is.
    ("שלום hotel", "שלום hotel"),
    ("<sys> <usr> <pad>", "< sys > < usr > < pad >"),
]


@pytest.mark.parametrize(("typed", "layout", "form"), SAME)
def test_typed_text_and_trade_layout_come_to_one_form(typed: str, layout: str, form: str) -> None:
    assert " ".join(tokenise(typed)) == form
    assert " ".join(tokenise(layout)) == form


@pytest.mark.parametrize(("text", "form"), KNOWN)
def test_known_forms(text: str, form: str) -> None:
    assert " ".join(tokenise(text)) == form


@given(st.text(max_size=60))
def test_any_text_is_accepted_and_has_no_blank_words(text: str) -> None:
    assert all(word and not word.isspace() for word in tokenise(text))


PIECES = (
    "i 'm do n't that 's 5 :30 pm 5:30 at one two o'clock guest house -ly - . , ? wi fi & £ 1,200 s"
    " can not bed and breakfast any where good bye mary's 12.15 a.m. a m é"
)


@given(st.lists(st.sampled_from(PIECES.split(" ")), max_size=12), st.sampled_from(["", " ", "  "]))
def test_the_form_is_a_fixed_point(pieces: list[str], blank: str) -> None:
    once = tokenise(blank.join(pieces))
    assert tokenise(" ".join(once)) == once


def test_history_marks_speakers_and_keeps_the_newest_words() -> None:
    context = Context((Exchange("", "Hi"), Exchange("Hello !", "A hotel")))
    words = (USER_MARK, "hi", SYSTEM_MARK, "hello", "!", USER_MARK, "a", "hotel")
    assert history_words(context, 100) == words
    assert history_words(context, 3) == words[-3:]


def test_typed_marks_are_not_speaker_marks() -> None:
    words = history_words(Context((Exchange("", "<sys> hotel"),)), 10)
    assert SYSTEM_MARK not in words
