"""JSON in and out: what comes back, and what is said of what does not fit."""

from __future__ import annotations

import doctest
import json
from dataclasses import dataclass

import pytest

from pytest_dstfuzz import json_data
from pytest_dstfuzz.dialogue.dialogues import BeliefState
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.json_data import each_key_once, from_json, parse_json, to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One."""

    name: str
    state: BeliefState | None = None
    size: int


@dataclass(frozen=True, slots=True)
class Whole:
    """Several."""

    parts: tuple[Part, ...]


WHOLE = Whole((Part(name="a", state=BeliefState({"b": "c"}), size=1), Part(name="d", size=2)))


def test_there_and_back() -> None:
    text = json.dumps(to_json(WHOLE))
    assert text == (
        '{"parts": [{"name": "a", "state": {"b": "c"}, "size": 1}, '
        '{"name": "d", "state": null, "size": 2}]}'
    )
    assert from_json(Whole, json.loads(text)) == WHOLE
    # A key of a later version.
    assert from_json(Part, {"name": "d", "size": 2, "new": 1}) == WHOLE.parts[1]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "[] instead of an object"),
        ({}, "lacks 'parts'"),
        ({"parts": [{"name": "a"}]}, "parts[0]: lacks 'size'"),
        ({"parts": [{"name": 3, "size": 1}]}, "parts[0].name: 3 instead of a text"),
        ({"parts": [{"name": "a", "size": True}]}, "parts[0].size: True instead of a whole number"),
        (
            {"parts": [{"name": "a", "size": 1, "state": {"b": 1}}]},
            "a whole number instead of a text",
        ),
    ],
)
def test_what_does_not_fit(data: object, message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        from_json(Whole, data)
    assert message in str(caught.value)


def test_the_examples() -> None:
    found = doctest.testmod(json_data)
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": 1, "b": {"a": 2, "a": 3}}'])
def test_no_key_with_two_values(text: str) -> None:
    hook = each_key_once(lambda key: ValueError(f"{key} twice"))
    with pytest.raises(ValueError, match="a twice"):
        json.loads(text, object_pairs_hook=hook)
    with pytest.raises(DataError, match="has two values for the key 'a': leave one out"):
        parse_json(text)


def test_one_value_twice_is_no_contradiction() -> None:
    assert parse_json('{"a": 1, "a": 1}') == {"a": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not valid JSON, perhaps cut off"),
        ("[" * 100_000, "is nested too deeply"),
        ("[NaN]", "contains NaN"),
        ("[-Infinity]", "contains -Infinity"),
        ("[1e999]", "contains 1e999"),
        ("9" * 5000, "has a number of 5,000 digits"),
    ],
)
def test_what_is_no_json(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_json(text)


def test_a_number_that_is_too_long_is_called_so() -> None:
    for text in (f"[{'9' * 5001}]", f'{{"a": -{"1" * 5001}}}'):
        with pytest.raises(DataError, match=r"has a number of 5,001 digits.*in quotes") as caught:
            parse_json(text)
        assert "cut off" not in str(caught.value)
        assert "sys." not in str(caught.value)
    with pytest.raises(DataError, match="cut off"):
        parse_json(f'["{"9" * 5001}"')
    assert len(parse_json(f'["{"9" * 5001}"]')[0]) == 5001
