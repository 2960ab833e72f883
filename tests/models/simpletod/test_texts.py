"""Beliefs as text: what is written can be read, and what cannot be read changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.dialogue.normalise import SLOTS
from pytest_dstfuzz.models.simpletod.texts import (
    END_OF_BELIEF,
    SEPARATOR,
    BeliefParser,
    belief_words,
    context_words,
    value_words,
)

PARSER = BeliefParser(SLOTS)
VALUES = st.text("abcdefgh123:' ", min_size=1, max_size=20).filter(value_words)


def parts_of(text: str) -> list[list[str]]:
    """Part a belief as the tracker parts what was generated."""
    return [part.split() for part in text.split(SEPARATOR)]


@given(st.dictionaries(st.sampled_from(SLOTS), VALUES, min_size=1))
def test_a_belief_that_was_written_is_read(state: dict[str, str]) -> None:
    *words, end = belief_words(state)
    assert end == END_OF_BELIEF
    parsed = PARSER.parse(parts_of(" ".join(words)), ended=True)
    assert parsed.values == {slot: " ".join(value_words(value)) for slot, value in state.items()}
    assert parsed.malformed == ()
    assert [parsed.parts[slot] for slot in sorted(state)] == list(range(len(state)))


@given(st.lists(st.lists(st.text(max_size=8)), max_size=8), st.booleans())
def test_any_text_is_read_and_nothing_gets_lost(parts: list[list[str]], ended: bool) -> None:
    parsed = PARSER.parse(parts, ended=ended)
    assert len(parsed.malformed) + len(parsed.values) <= len(parts)
    assert set(parsed.values) <= set(SLOTS)
    for slot, value in parsed.values.items():
        assert value
        assert " ".join(parts[parsed.parts[slot]]).endswith(value)


@pytest.mark.parametrize(
    ("text", "values", "malformed"),
    [
        ("hotel area north , hotel", {"hotel-area": "north"}, ("hotel",)),
        ("hotel book day", {}, ("hotel book day",)),
        ("hotel book day monday", {"hotel-book day": "monday"}, ()),
        ("hotl area north , train day monday", {"train-day": "monday"}, ("hotl area north",)),
        # Said twice alike is said once; said differently, nobody knows.
        ("hotel stars 4 , hotel stars 4", {"hotel-stars": "4"}, ()),
        ("hotel stars 4 , hotel stars 5", {"hotel-stars": "4"}, ("hotel stars 5",)),
        ("hotel area north , , hotel stars 4", {"hotel-area": "north", "hotel-stars": "4"}, ("",)),
    ],
)
def test_what_is_malformed_is_kept_and_changes_nothing(
    text: str, values: dict[str, str], malformed: tuple[str, ...]
) -> None:
    parsed = PARSER.parse(parts_of(text), ended=True)
    assert parsed.values == values
    assert parsed.malformed == malformed


def test_a_part_that_was_cut_short_is_not_believed() -> None:
    parts = parts_of("hotel area north , hotel name acorn guest")
    assert PARSER.parse(parts, ended=False).values == {"hotel-area": "north"}
    assert PARSER.parse(parts, ended=False).malformed == ("hotel name acorn guest",)
    assert PARSER.parse(parts, ended=True).values["hotel-name"] == "acorn guest"


def test_a_context_marks_its_speakers() -> None:
    context = Context((Exchange("", "Hi, 9:15 please"), Exchange("Where TO?", "")))
    common = " ".join(context_words(context, common=True))
    assert common == "<|user|> hi , 09:15 please <|system|> where to ? <|user|>"
    plain = " ".join(context_words(context, common=False))
    assert plain == "<|user|> hi, 9:15 please <|system|> where to? <|user|>"
