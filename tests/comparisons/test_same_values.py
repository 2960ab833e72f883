"""Which spellings of an argument are one value without any rule, and which never are."""

from collections.abc import Callable
from typing import Any

import pytest

from pytest_dstfuzz.comparisons import arguments
from pytest_dstfuzz.comparisons.arguments import (
    RULES,
    UNKNOWN,
    ArgumentKind,
    ArgumentTable,
    Same,
    SlotComparison,
    found_is_subset,
    found_is_superset,
    same_auto,
    same_number,
    same_unordered,
    same_value,
)
from pytest_dstfuzz.comparisons.calls import ToolCallComparison
from pytest_dstfuzz.comparisons.facts import SameNumbers
from pytest_dstfuzz.dialogue.calls import Tool, ToolCall, calls_outcome, canonical
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange

STRING, INTEGER, NUMBER = (ArgumentKind(name) for name in ("string", "integer", "number"))
TIME = ArgumentKind("string", "time")
CONTEXT = Context((Exchange("", "I want a table."),))
SCHEMA = {
    "limit": {"type": "integer", "default": 10},
    "pets": {"type": "boolean", "default": False},
    "at": {"type": "string", "default": "09:00"},
    "tags": {"type": "array", "items": {"type": "string"}, "default": ["a", "b"]},
    "name": {"type": "string"},
}


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("joe’s bar", "Joe's bar", STRING),
        ("“all”", '"all"', UNKNOWN),
        ("5–10", "5-10", STRING),
        ("5—10", "5-10", UNKNOWN),
        ("−5", -5, INTEGER),
        ("−5", "-5", UNKNOWN),
        ("e\u2011mail", "e-mail", STRING),
        ("new\u00a0york", "New York", STRING),
        ("cafe\u0301", "café", STRING),
        ("2024‑03‑05", "2024-03-05", STRING),
        (1.0, 1, UNKNOWN),
        (1.0, "1", UNKNOWN),
        ("1.0", "1", UNKNOWN),
        ("1.0", 1, INTEGER),
        ("1,200.0", 1200, NUMBER),
        (3.1, "3.10", UNKNOWN),
        ("9:00", "09:00", STRING),
        ("9:00", "09:00", UNKNOWN),
        ("9:00 am", "09:00", STRING),
        ("9:00 pm", "21:00", STRING),
        ("9:00", "09:00:00", TIME),
    ],
)
def test_one_value_in_two_spellings(one: Any, other: Any, kind: ArgumentKind):
    assert same_auto(one, other, kind)
    assert same_auto(other, one, kind)


@pytest.mark.parametrize("kind", [UNKNOWN, STRING, INTEGER, NUMBER, TIME], ids=str)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("19:00", "7:00"),
        ("9:00", "21:00"),
        ("9:00", "9:00 pm"),
        ("-5", "5"),
        ("−5", "5"),
        (-5, 5),
        ("1,5", "15"),
        ("1.5", "15"),
        ("10", "1.0"),
        (10, 1.0),
        ("café", "cafe"),
        ("5-10", "510"),
        ("e-mail", "email"),
        ("o'neil", "oneil"),
        ("none", ""),
        ("none", None),
    ],
)
def test_near_misses_are_two_values(one: Any, other: Any, kind: ArgumentKind):
    assert not same_auto(one, other, kind)


ROUNDED = [(0.1 + 0.2, 0.3), (1.1 * 1.1 * 100, 121), (0.07 * 100, 7.0), (1.1 - 1.0, 0.1)]


@pytest.mark.parametrize("same", [same_auto, same_number])
@pytest.mark.parametrize(("one", "other"), ROUNDED)
def test_floats_may_be_rounded(one: float, other: float, same: Same):
    assert same(one, other, NUMBER)
    assert same(other, one, UNKNOWN)


@pytest.mark.parametrize("other", ["102", 102])
def test_an_exponent_is_no_digit(other: Any):
    assert not same_number("10²", other, NUMBER)
    assert not same_number(other, "10²", NUMBER)


AMOUNTS = [
    (99999999999.99, 99999999999.98),
    (9999999999999.99, 9999999999999.98),
    ("99999999999.99", "99999999999.98"),
    ("99,999,999,999.99", 99999999999.98),
]


@pytest.mark.parametrize(("one", "other"), AMOUNTS)
def test_the_last_of_15_digits_counts(one: Any, other: Any):
    assert not same_number(one, other, NUMBER)
    assert not same_auto(one, other, NUMBER)
    assert not same_value([one], [other], NUMBER)
    slots = SlotComparison(ArgumentTable([("hotel-price", RULES["number"])]))
    assert not slots.compare("hotel-price", str(one), str(other), CONTEXT).same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("12,345,678,901,234,567", "12,345,678,901,234,568"),
        ("£12345678901234567", "£12345678901234568"),
        (f"£{'9' * 400}", f"£{'8' * 400}"),
        ("£99,999,999,999.99", "£99,999,999,999.98"),
    ],
)
def test_every_digit_of_an_amount_in_a_reply_counts(one: str, other: str):
    numbers = SameNumbers()
    assert not numbers.compare("", f"It costs {one}.", f"It costs {other}.", CONTEXT).same
    assert numbers.compare("", f"It costs {one}.", f"You pay {one}.", CONTEXT).same


@pytest.mark.parametrize(("one", "other"), [("1.0", "1"), ("007", "7"), ("3.10", "3.1")])
def test_texts_of_digits_stay_texts_if_the_schema_says_so(one: str, other: str):
    assert not same_auto(one, other, STRING)


def test_two_texts_may_be_versions():
    assert not same_auto("3.10", "3.1", UNKNOWN)
    assert same_auto("3.10", "3.1", NUMBER)


def agree(before: dict[str, Any], found: dict[str, Any], **options: Any) -> bool:
    tool = Tool("book", "", canonical({"properties": SCHEMA}))
    comparison = ToolCallComparison("any", ArgumentTable((), [tool]), **options)
    one, other = (calls_outcome([ToolCall("book", given)]) for given in (before, found))
    return bool(comparison.align(one, other) == one)


@pytest.mark.parametrize(
    "given",
    [
        {"limit": 10},
        {"limit": "10"},
        {"limit": 10.0},
        {"limit": "ten"},
        {"limit": None},
        {"pets": "false"},
        {"at": "9:00"},
        {"tags": ["a", "b"]},
        {"limit": "10", "at": "9:00 am"},
    ],
)
def test_a_default_may_be_left_out_or_sent(given: dict[str, Any]):
    assert agree({"name": "x"}, {"name": "x", **given})
    assert agree({"name": "x", **given}, {"name": "x"})


def test_a_default_may_be_all_that_an_object_has():
    page = {"properties": {"number": {"type": "integer", "default": 1}}}
    tool = Tool("list", "", canonical({"properties": {"page": page, "of": {"type": "array"}}}))
    comparison = ToolCallComparison("any", ArgumentTable((), [tool]))

    def agree(one: Any, other: Any) -> bool:
        before, found = (calls_outcome([ToolCall("list", given)]) for given in (one, other))
        return bool(comparison.align(before, found) == before)

    for one, other in (({"number": 1}, {}), ({"number": "1"}, {}), ({"number": None}, {})):
        assert agree({"page": one}, {"page": other})
        assert agree({"page": other}, {"page": one})
    for one, other in (({"number": 2}, {}), ({"size": 1}, {}), ({"number": 1}, {"size": 1})):
        assert not agree({"page": one}, {"page": other})
        assert not agree({"page": other}, {"page": one})
    assert not agree({"of": [None]}, {"of": {}})
    assert not agree({"of": []}, {"of": {}})


@pytest.mark.parametrize(
    "given",
    [
        *({"limit": 11}, {"limit": "1"}, {"limit": -10}, {"pets": "true"}, {"at": "21:00"}),
        *({"tags": ["a"]}, {"tags": []}, {"name": ""}),
    ],
)
def test_another_value_is_no_default(given: dict[str, Any]):
    assert not agree({}, given)
    assert not agree(given, {})


def reordered(spell: Callable[[int], object], respell: Callable[[int], object]) -> Any:
    """Return two lists of many elements, with the second in reverse order."""
    return [spell(n) for n in range(LENGTH)], [respell(n) for n in reversed(range(LENGTH))]


LENGTH = 10_000
LONG_LISTS = {
    "equal": reordered(lambda n: f"w{n}", lambda n: f"w{n}"),
    "case": reordered(lambda n: f"word w{n}", lambda n: f"Word W{n}."),
    "numbers": reordered(lambda n: n, lambda n: f"{n}.0"),
    "times": reordered(
        lambda n: f"{n % 9 + 1}:{n % 60:02} am", lambda n: f"0{n % 9 + 1}:{n % 60:02}"
    ),
    "objects": reordered(lambda n: {"a": f"b{n}", "n": n}, lambda n: {"n": float(n), "a": f"B{n}"}),
    "repeated": reordered(lambda _: "x", lambda _: "X"),
}


@pytest.mark.parametrize("name", LONG_LISTS)
def test_reordered_lists_of_many_elements_take_linear_time(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = LONG_LISTS[name]
    asked = 0

    def counted(mine: object, its: object, kind: ArgumentKind = UNKNOWN) -> bool:
        nonlocal asked
        asked += 1
        return same_value(mine, its, kind)

    monkeypatch.setattr(arguments, "same_value", counted)
    assert same_unordered(one, other)
    assert found_is_subset(one, other[1:])
    assert found_is_superset(one[1:], other)
    assert asked < 30 * LENGTH
    assert not same_unordered(one, [*other[1:], "another"])
    assert not found_is_subset(one, [*other[1:], "another"])


def test_elements_of_unusual_spellings_are_compared_pair_by_pair() -> None:
    assert same_unordered(["2", "two", 2], ["two", 2, "2"], INTEGER)
    assert same_unordered(["three", "two"], [2, 3], INTEGER)
    assert not same_unordered(["three", "two", "two"], [2, 3, 3], INTEGER)
