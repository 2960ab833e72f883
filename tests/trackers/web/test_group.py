"""Several dialogues in one request: what goes through, and what is said about what does not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_contract import CONTEXTS, PREDICTIONS, STATE, TEXTS

from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.printable import printable
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.web.contract import (
    ContractError,
    UnreadableAnswerError,
    answers_json,
    group_json,
    is_group,
    read_answers,
    read_group,
    request_json,
)


@given(st.lists(CONTEXTS, min_size=1, max_size=5))
def test_contexts_survive_the_trip_in_their_order(contexts: list[Context]) -> None:
    body = json.loads(json.dumps(group_json(contexts)))
    assert is_group(body)
    assert read_group(body, len(contexts)) == contexts


@given(st.lists(PREDICTIONS | TEXTS, max_size=5))
def test_answers_survive_the_trip_in_their_order(answers: list[Prediction | str]) -> None:
    said = [TrackerError(answer) if isinstance(answer, str) else answer for answer in answers]
    # What is said of a failure is fit for a terminal from the start.
    shown = [printable(answer) if isinstance(answer, str) else answer for answer in answers]
    assert read_answers(json.loads(json.dumps(answers_json(said))), len(said)) == shown


@given(CONTEXTS)
def test_a_request_for_one_is_of_the_other_form(context: Context) -> None:
    assert not is_group(request_json(context))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"version": 2, "dialogues": []}, '"version" is int 2; this service supports version 1'),
        ({"dialogues": {}}, '"dialogues" is dict {}; it must be a list of at least one dialogue'),
        ({"dialogues": []}, '"dialogues" is list []; it must be a list of at least one dialogue'),
        (
            {"dialogues": [], "dialogue": []},
            'the request has both "dialogue" and "dialogues"; send only one',
        ),
        (
            {"dialogues": [[]] * 4},
            '"dialogues" has 4 entries; this service accepts at most 3 per request',
        ),
        ({"dialogues": [[{"user": "a"}], []]}, '"dialogues"[1] is list []; it must be a list'),
        (
            {"dialogues": [[{"user": "a"}], [{"user": "b"}, "hi"]]},
            "\"dialogues\"[1][1] is str 'hi'; it must be {",
        ),
    ],
)
def test_a_request_of_another_shape(body: Any, message: str) -> None:
    with pytest.raises(ContractError) as caught:
        read_group(body, 3)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            [STATE, STATE],
            "answered with list [{'state': {'a-b': 'c'}}, {'state': {'a-b': 'c'}}] to ",
        ),
        (
            STATE,
            "answered with dict {'state': {'a-b': 'c'}} to 2 dialogues; it must be {\"answers\"",
        ),
        ({"answer": []}, "answered with dict {'answer': []} (there is a key \"answer\") to 2 dia"),
        ({"answers": {}}, "answered with dict {'answers': {}} to 2 dialogues; it"),
        ({"answers": [STATE]}, 'answered with 1 "answers" to 2 dialogues; there must be one for'),
        ({"answers": [STATE] * 3}, 'answered with 3 "answers" to 2 dialogues; there must be one'),
        (
            {"answers": [{"error": 7}, STATE]},
            'answered with int 7 as "error" of "answers"[0]; it must be a text',
        ),
    ],
)
def test_an_answer_of_another_shape(body: Any, message: str) -> None:
    with pytest.raises(ContractError) as caught:
        read_answers(body, 2)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"state": {"a-b": {}}}, 'or set it to null (in "answers"[1])'),
        (None, 'answered with None; it must be {"state"'),
    ],
)
def test_one_answer_that_cannot_be_read_costs_no_other(answer: Any, message: str) -> None:
    first, second = read_answers({"answers": [STATE, answer]}, 2)
    assert isinstance(first, Prediction)
    assert isinstance(second, UnreadableAnswerError)
    assert message in str(second)


def test_a_state_counts_whatever_else_is_said() -> None:
    (answer,) = read_answers({"answers": [{**STATE, "error": None}]}, 1)
    assert isinstance(answer, Prediction)
