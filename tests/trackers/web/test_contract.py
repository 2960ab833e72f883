"""The JSON contract: what goes through, and what is said about what does not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Exchange
from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.trackers.adapters import as_prediction
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.validation import check_prediction
from pytest_dstfuzz.trackers.web.contract import (
    About,
    ContractError,
    answer_json,
    read_about,
    read_answer,
    read_request,
    request_json,
)

TEXTS = st.text(max_size=20)
CONTEXTS = st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4).map(
    lambda pairs: Context(tuple(Exchange(*pair) for pair in pairs))
)
SHARES = st.floats(0.0, 1.0)
PREDICTIONS = st.builds(
    Prediction,
    st.dictionaries(TEXTS, TEXTS, max_size=4).map(BeliefState),
    st.none() | st.dictionaries(TEXTS, SHARES, max_size=4),
)


@given(CONTEXTS)
def test_a_context_survives_the_trip(context: Context) -> None:
    assert read_request(json.loads(json.dumps(request_json(context)))) == context


@pytest.mark.parametrize("normalisation", ["plain", "multiwoz"])
@given(
    st.dictionaries(
        st.sampled_from(["hotel-stars", "hotel-internet", "size"]),
        st.recursive(
            st.none() | st.booleans() | st.integers(0, 9) | st.floats(0, 9) | TEXTS,
            lambda values: st.lists(values, max_size=2),
            max_leaves=3,
        ),
    )
)
def test_values_over_http_are_what_a_python_tracker_may_return(
    normalisation: str, state: dict[str, Any]
) -> None:
    """What a function returns and what the same function returns as JSON are one belief state."""
    try:
        expected = as_prediction(state, normalisation, "the tracker").state
    except TrackerError:
        with pytest.raises(
            ContractError, match="a value must be a text, a number, true, false or a"
        ):
            read_answer(json.loads(json.dumps({"state": state})))
        return
    found = read_answer(json.loads(json.dumps({"state": state})))
    assert check_prediction(found, normalisation=normalisation).state == expected


@given(PREDICTIONS)
def test_a_prediction_survives_the_trip_to_the_last_bit(prediction: Prediction) -> None:
    assert read_answer(json.loads(json.dumps(answer_json(prediction)))) == prediction


def test_distributions_become_impurities() -> None:
    answer = {"state": {"a-b": "c"}, "distributions": {"a-b": [[0.5, 0.5], [1]], "a-d": []}}
    assert read_answer(answer) == Prediction(BeliefState({"a-b": "c"}), {"a-b": 0.25})


def test_a_mapping_is_an_answer_without_probabilities() -> None:
    assert answer_json({"a-b": "c"}) == {"state": {"a-b": "c"}}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], 'the request is list []; write {"dialogue": [...]}'),
        ({"version": 2, "dialogue": []}, '"version" is int 2; this service supports version 1'),
        ({}, '"dialogue" is None; it must be a list of at least one {"system": "...", "user"'),
        ({"dialogue": []}, '"dialogue" is list []; it must be a list of at least one'),
        ({"dialogue": ["hi"]}, '"dialogue"[0] is str \'hi\'; it must be {"system": "...", "user"'),
        ({"dialogue": [{"user": "a"}, {"system": "b"}]}, '"dialogue"[1] is dict'),
        ({"dialogue": [{"user": "a", "system": None}]}, '"dialogue"[0] is dict'),
    ],
)
def test_a_request_of_another_shape(body: Any, message: str) -> None:
    with pytest.raises(ContractError) as caught:
        read_request(body)
    assert str(caught.value).startswith(message)


def test_the_first_exchange_may_leave_the_system_out() -> None:
    assert read_request({"dialogue": [{"user": "hi"}]}) == Context((Exchange("", "hi"),))


STATE = {"state": {"a-b": "c"}}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (["a-b"], 'answered with list [\'a-b\']; it must be {"state": {"domain-slot": "value"}}'),
        ({"States": {}}, "answered with dict {'States': {}} (there is a key \"States\"); it must"),
        ({"a-b": "c"}, "answered with dict {'a-b': 'c'}; it must be"),
        ({"state": ["a-b"]}, "answered with list ['a-b'] as \"state\"; it must be an object"),
        (
            {"state": {"a-b": {}}},
            'answered with dict {} as the value of "a-b"; a value must be a text',
        ),
        (
            {"state": {"a-b": [["x"]]}},
            "answered with list [['x']] as the value of \"a-b\"; a value",
        ),
        (
            {"state": {"a-b": float("1e999")}},
            'answered with float inf as the value of "a-b"; a val',
        ),
        ({"state": {"a-b": 10**200}}, "answered with int 1000000000"),
        (
            {**STATE, "impurity": {}},
            'answered with an unknown key "impurity"; did you mean "impurities"?',
        ),
        (
            {**STATE, "impurities": {}, "distributions": {}},
            'answered with both "distributions" and "impurities"',
        ),
        ({**STATE, "impurities": 1}, 'answered with int 1 as "impurities"; it must be {"domain'),
        ({**STATE, "impurities": {"a-b": 1.5}}, 'answered with float 1.5 as the impurity of "a-b"'),
        (
            {**STATE, "impurities": {"a-b": True}},
            'answered with bool True as the impurity of "a-b"',
        ),
        ({**STATE, "distributions": []}, 'answered with list [] as "distributions"; it must be'),
        (
            {**STATE, "distributions": {"a-b": [0.5, 0.5]}},
            'answered with list [0.5, 0.5] as "distributions" of "a-b"',
        ),
        (
            {**STATE, "distributions": {"a-b": [[0.9, 0.9]]}},
            'answered with list [[0.9, 0.9]] as "distributions" of "a-b"',
        ),
        (
            {**STATE, "distributions": {"a-b": [[]]}},
            'answered with list [[]] as "distributions" of "a-b"',
        ),
    ],
)
def test_an_answer_of_another_shape(body: Any, message: str) -> None:
    with pytest.raises(ContractError) as caught:
        read_answer(body)
    assert str(caught.value).startswith(message)


def test_other_keys_are_for_whoever_wants_them() -> None:
    assert read_answer({**STATE, "took_ms": 3}).state == STATE["state"]


@pytest.mark.parametrize(
    ("body", "about"),
    [
        ({"name": "n", "version": "1", "slots": ["a-b"]}, About("n", "1", ("a-b",))),
        ({"dialogues": 64}, About(dialogues=64)),
        ({"repeatable": False}, About(repeatable=False)),
        ({"repeatable": True}, About(repeatable=True)),
        ({"status": "ok"}, About()),
        ({"version": ""}, About()),
        (["hello"], About()),
    ],
)
def test_what_a_service_says_about_itself(body: Any, about: About) -> None:
    assert read_about(body) == about
    assert read_about(json.loads(json.dumps(about.to_json()))) == about


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"version": 3}, 'says that its "version" is int 3; write a text'),
        ({"name": ["x"]}, 'says that its "name" is list'),
        ({"slots": "a-b"}, 'says that its "slots" are str'),
        ({"slots": [1]}, 'says that its "slots" are list [1]; write a list of texts'),
        (
            {"dialogues": 0},
            'says that its "dialogues" are int 0; write the maximum number of dialogues',
        ),
        ({"dialogues": True}, 'says that its "dialogues" are bool True; write the maximum'),
        ({"repeatable": "no"}, "says that its \"repeatable\" is str 'no'; write false if"),
        ({"repeatable": 0}, 'says that its "repeatable" is int 0; write false if'),
        ({"dialogues": "64"}, "says that its \"dialogues\" are str '64'; write the maximum"),
    ],
)
def test_what_a_service_must_not_say(body: Any, message: str) -> None:
    with pytest.raises(ContractError) as caught:
        read_about(body)
    assert str(caught.value).startswith(message)
