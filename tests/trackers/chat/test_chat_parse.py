"""From a chat model's words to a belief state, or to the reason why there is none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.dialogue.normalise import normalise_state
from pytest_dstfuzz.trackers.chat.tracker import NoStateError, parse_answer

_words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
_states = st.dictionaries(_words, _words | st.none() | st.booleans() | st.integers(), max_size=4)
#: Prose without brackets: what a model says around its answer.
_prose = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="{}[]"), max_size=30)


@given(
    _states, _prose, _prose, st.sampled_from(["{}", "```json\n{}\n```", "```\n{}```", "\n {} \n"])
)
def test_a_state_is_found_however_it_is_wrapped(
    state: dict[str, object], before: str, after: str, form: str
) -> None:
    text = before + form.replace("{}", json.dumps(state, indent=1)) + after
    assert parse_answer(text, "plain") == normalise_state(state, "plain")


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ('{"hotel-area": "north", "hotel-stars": null}', {"hotel-area": "north"}),
        ('{"hotel-stars": 4, "hotel-parking": true}', {"hotel-stars": "4", "hotel-parking": "yes"}),
        ('{"hotel-area": "do not care"}', {"hotel-area": "dontcare"}),
        ("{}", {}),
        ('Slots {area} and [x] are set: {"hotel-area": "north"}', {"hotel-area": "north"}),
        ('{"hotel-area": "a {b}"} and once more {"hotel-area": "a {b}"}', {"hotel-area": "a {b}"}),
        (
            '<think>{"hotel-area": "east"}? No.</think>\n{"hotel-area": "north"}',
            {"hotel-area": "north"},
        ),
        ('{"hotel-area": "north", "hotel-area": "north"}', {"hotel-area": "north"}),
    ],
)
def test_what_an_answer_may_look_like(text: str, state: dict[str, str]) -> None:
    assert parse_answer(text, "multiwoz") == state


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no JSON object"),
        ("The area is north.", "no JSON object"),
        ("null", "no JSON object"),
        ('"hotel-area"', "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ('{"hotel-area": "north"', "cut off or not valid JSON"),
        ("{'hotel-area': 'north'}", "cut off or not valid JSON"),
        # What is inside of half an object is no state.
        ('{"state": {"hotel-area": "north"}, "x', "cut off or not valid JSON"),
        ('{"hotel-area": "north"} or {"hotel-area": "east"}', "2 different JSON objects"),
        ('[{"slot": "hotel-area", "value": "north"}]', "a list of objects"),
        ('{"hotel": {"area": "north"}}', "the value of 'hotel' is an object"),
        ('{"hotel-area": [["north"]]}', "the value of 'hotel-area' is a list"),
        ('{"hotel-area": "north", "hotel-area": "east"}', "two values for 'hotel-area'"),
        ('{"hotel-stars": NaN}', "NaN, which is not valid JSON"),
        ("{" * 5000, "cut off or not valid JSON"),
    ],
)
def test_what_is_no_state_is_not_guessed_at(text: str, reason: str) -> None:
    with pytest.raises(NoStateError, match=reason):
        parse_answer(text, "plain")


@given(
    st.text(st.characters(exclude_categories=["Cs"]))
    | _states.map(json.dumps).map(lambda t: t[:-1])
)
def test_any_text_gives_a_state_or_a_reason(text: str) -> None:
    try:
        parse_answer(text, "plain")
    except NoStateError:
        return
