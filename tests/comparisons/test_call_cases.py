"""Which changes of tool calls count, case by case: order, types, instants, nesting, values."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.campaign.answers import Folding
from pytest_dstfuzz.comparisons.arguments import ArgumentTable, rule_of
from pytest_dstfuzz.comparisons.calls import ToolCallComparison
from pytest_dstfuzz.dialogue.calls import Outcome, Tool, ToolCall, calls_outcome, canonical
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.trackers.tracker import Prediction

ASKED = Context((Exchange("", "book it for two"),))
#: Of a tool `book`, beside what any argument may be.
SCHEMA = {
    "properties": {
        "people": {"type": "integer"},
        "name": {"type": "string"},
        "code": {"type": "string"},
        "at": {"type": "string", "format": "date-time"},
        "day": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        "pets": {"type": "boolean", "default": False},
        "guest": {"$ref": "#/$defs/Guest"},
    },
    "$defs": {"Guest": {"type": "object", "properties": {"age": {"type": ["integer", "null"]}}}},
}


class Case(NamedTuple):
    """Two messages, and what of the second is told to be different."""

    about: str
    before: list[ToolCall]
    found: list[ToolCall]
    #: Path -> before and after.
    changed: Mapping[str, tuple[str | None, str | None]] = MappingProxyType({})
    rules: Mapping[str, Any] = MappingProxyType({})
    order: str = "any"


def one(**arguments: Any) -> list[ToolCall]:
    return [ToolCall("book", arguments)]


def several(*named: str) -> list[ToolCall]:
    """Return calls with one argument: ``"find a"`` is ``find(x="a")``."""
    return [ToolCall(name.split()[0], {"x": name.split()[1]}) for name in named]


def x(before: str | None, after: str | None) -> dict[str, tuple[str | None, str | None]]:
    return {"book[0].x": (before, after)}


GUESTS = [{"name": "Ann", "age": 3}, {"name": "Bob", "age": 4}]
CASES = [
    # Types and spellings, where nobody said anything.
    Case("equal", one(x=2), one(x=2)),
    Case("another value", one(x=2), one(x=4), x("2", "4")),
    Case("a number as a text", one(x=2), one(x="2")),
    Case("the same number", one(x=2), one(x="2.0")),
    Case("an id with a zero", one(x="007"), one(x="7"), x("007", '"7"')),
    Case(
        "a version is a text by its schema",
        one(code="2.0"),
        one(code="2"),
        {"book[0].code": ('"2.0"', '"2"')},
    ),
    Case("words are a number by the schema", one(people=2), one(people="two")),
    Case("true is no 1", one(x=True), one(x=1), x("true", "1")),
    Case("true as a text", one(x=True), one(x="True")),
    Case("case and blanks", one(x="The Ritz"), one(x=" the  ritz.")),
    Case(
        "a word more", one(x="The Ritz"), one(x="The Ritz Hotel"), x("The Ritz", "The Ritz Hotel")
    ),
    Case("null is left out", one(x="a", y=None), one(x="a")),
    Case("the default is left out", one(x="a"), one(x="a", pets=False)),
    Case("no default", one(x="a"), one(x="a", pets=True), {"book[0].pets": (None, "true")}),
    Case("an argument is gone", one(x="a", y="b"), one(x="a"), {"book[0].y": ("b", None)}),
    # Instants of time.
    Case("zones", one(x="2024-03-05T18:00:00Z"), one(x="2024-03-05T19:00:00+01:00")),
    Case(
        "an hour later",
        one(x="2024-03-05T18:00Z"),
        one(x="2024-03-05T18:00+01:00"),
        x("2024-03-05T18:00Z", "2024-03-05T18:00+01:00"),
    ),
    Case(
        "a zone alone",
        one(x="2024-03-05T18:00"),
        one(x="2024-03-05T18:00Z"),
        x("2024-03-05T18:00", "2024-03-05T18:00Z"),
    ),
    Case("spelled out, by the schema", one(at="2024-03-05T18:00"), one(at="5 March 2024, 6pm")),
    Case("a date that may be null", one(day="2024-03-05"), one(day="March 5th, 2024")),
    Case("spelled out, by a rule", one(x="18:30"), one(x="6:30 p.m."), rules={"book.x": "instant"}),
    Case(
        "seconds since 1970",
        one(x=1709661600),
        one(x="2024-03-05T18:00Z"),
        rules={"*.x": "instant"},
    ),
    Case(
        "no instant", one(x="tomorrow"), one(x="today"), x("tomorrow", "today"), {"*.x": "instant"}
    ),
    # Order of calls.
    Case("another order", several("find a", "book b"), several("book b", "find a")),
    Case("of one tool", several("book a", "book b"), several("book b", "book a")),
    Case(
        "order counts",
        several("find a", "book b"),
        several("book b", "find a"),
        {"find[0]": ("call 1", "call 2"), "book[0]": ("call 2", "call 1")},
        order="exact",
    ),
    Case(
        "order counts in a tool",
        several("book a", "book b"),
        several("book b", "book a"),
        {"book[0]": ("call 1", "call 2"), "book[1]": ("call 2", "call 1")},
        order="exact",
    ),
    Case(
        "one is gone, the others are in order",
        several("find a", "see b", "book c"),
        several("find a", "book c"),
        {"see[0]": ("call 2", None), "see[0].x": ("b", None)},
        order="exact",
    ),
    Case(
        "one of two is gone",
        several("book a", "book b"),
        several("book b"),
        {"book[0]": ("call 1", None), "book[0].x": ("a", None)},
    ),
    Case(
        "a new one",
        several("book b"),
        several("book a", "book b"),
        {"book[1]": (None, "call 2"), "book[1].x": (None, "a")},
    ),
    Case(
        "another tool",
        several("book a"),
        several("find a"),
        {
            "book[0]": ("call 1", None),
            "book[0].x": ("a", None),
            "find[0]": (None, "call 2"),
            "find[0].x": (None, "a"),
        },
    ),
    Case("no calls", one(x=1), [], {"book[0]": ("call 1", None), "book[0].x": ("1", None)}),
    Case(
        "a tool that does not count",
        several("book a", "log b"),
        several("log c", "log d", "book a"),
        rules={"log": "ignore"},
        order="exact",
    ),
    # Nested arguments.
    Case(
        "deep within",
        one(guest={"age": 3}),
        one(guest={"age": "4"}),
        {"book[0].guest.age": ("3", '"4"')},
    ),
    Case("a schema deep within", one(guest={"age": 3}), one(guest={"age": "three"})),
    Case(
        "in a list",
        one(x=GUESTS),
        one(x=[GUESTS[0], {"name": "bob", "age": 5}]),
        {"book[0].x[1].age": ("4", "5")},
    ),
    Case("an element more", one(x=["a"]), one(x=["a", "b"]), {"book[0].x[1]": (None, "b")}),
    Case(
        "a rule deep within",
        one(x=GUESTS),
        one(x=[{**GUESTS[0], "age": 9}, GUESTS[1]]),
        rules={"book.x.age": "ignore"},
    ),
    # Rules.
    Case("exactly", one(x=2), one(x="2"), x("2", '"2"'), {"book.x": "exact"}),
    Case(
        "exactly in a list",
        one(x=["A"]),
        one(x=["a"]),
        {"book[0].x[0]": ("A", "a")},
        {"book.*": "exact"},
    ),
    Case("a number", one(name="1,200"), one(name="1200"), rules={"book.name": "number"}),
    Case("case", one(x="02"), one(x="2"), x("02", '"2"'), {"*.x": "case"}),
    Case("ignored, and gone", one(x=1, y=2), one(x=1), rules={"*.y": "ignore"}),
    Case("unordered", one(x=["a", "b"]), one(x=["B", "a"]), rules={"book.x": "unordered"}),
    Case(
        "not twice",
        one(x=["a", "b"]),
        one(x=["a", "a"]),
        {"book[0].x[1]": ("b", "a")},
        {"*.x": "unordered"},
    ),
    Case("a part of it", one(x=["a", "b"]), one(x=["b"]), rules={"book.x": "subset"}),
    Case(
        "no part of it",
        one(x=["a", "b"]),
        one(x=["a", "c"]),
        {"book[0].x[1]": ("b", "c")},
        {"book.x": "subset"},
    ),
    Case("more than it", one(x=["a"]), one(x=["b", "a"]), rules={"book.x": "superset"}),
    Case(
        "less than it",
        one(x=["a", "b"]),
        one(x=["a"]),
        {"book[0].x[1]": ("b", None)},
        {"book.x": "superset"},
    ),
    Case("admissible", one(x="NYC"), one(x="new york"), rules={"book.x": ["NYC", "New York"]}),
    Case(
        "admissible in groups",
        one(x="LA"),
        one(x="NYC"),
        x("LA", "NYC"),
        {"book.x": [["NYC", "New York"], ["LA", "Los Angeles"]]},
    ),
    Case("a function", one(x=[1, 2]), one(x=[3]), rules={"book.x": "operator:ne"}),
    Case(
        "the name goes before the pattern",
        one(x="A"),
        one(x="a"),
        x("A", "a"),
        {"book.x": "exact", "*": "case"},
    ),
]


def folding(case: Case) -> Folding:
    rules = [(pattern, rule_of(rule)) for pattern, rule in case.rules.items()]
    tools = [Tool("book", "", canonical(SCHEMA))]
    return Folding(ToolCallComparison(case.order, ArgumentTable(rules, tools)))


@pytest.mark.parametrize("case", CASES, ids=[case.about for case in CASES])
def test_what_counts_as_a_change(case: Case) -> None:
    by, (before, found) = folding(case), (calls_outcome(case.before), calls_outcome(case.found))
    (counted,) = by.to_clean([Prediction(found)], [Prediction(before)], before, ASKED)
    changes = {
        path: (before.get(path), counted.state.get(path))
        for path in sorted({*before, *counted.state})
        if before.get(path) != counted.state.get(path)
    }
    assert changes == dict(case.changed)
    assert by.agree(before, found, ASKED) == (not case.changed)
    # So votes count them as one as well.
    first, second = by.alike([Prediction(before), Prediction(found)], ASKED)
    assert (first == second) == (not case.changed)


def test_there_are_forty_cases() -> None:
    assert len(CASES) >= 40
    assert len({case.about for case in CASES}) == len(CASES)


calls = st.builds(
    ToolCall,
    st.sampled_from(["book", "find"]),
    st.dictionaries(
        st.sampled_from(["x", "y.z"]),
        st.recursive(
            st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "a", "A.", "2"]),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner)
            ),
            max_leaves=4,
        ),
    ),
)


@given(
    st.lists(calls, max_size=4),
    st.randoms(use_true_random=False),
    st.sampled_from(["any", "exact"]),
)
def test_a_message_agrees_with_itself_and_in_any_order_with_a_shuffled_one(
    message: list[ToolCall], random: Any, order: str
) -> None:
    by, outcome = Folding(ToolCallComparison(order)), calls_outcome(message)
    assert by.comparison.align(outcome, outcome) == outcome
    random.shuffle(message)
    assert order == "exact" or by.agree(outcome, calls_outcome(message), ASKED)


@given(st.lists(calls, max_size=3), st.lists(calls, max_size=3))
def test_what_is_aligned_stays_so_and_two_agree_both_ways(
    one: list[ToolCall], other: list[ToolCall]
) -> None:
    by, before, found = Folding(ToolCallComparison()), calls_outcome(one), calls_outcome(other)
    aligned = by.comparison.align(before, found)
    assert by.comparison.align(before, aligned) == aligned
    assert by.agree(before, found, ASKED) == by.agree(found, before, ASKED)
    assert isinstance(aligned, Outcome)
