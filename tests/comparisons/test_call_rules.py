"""Rules of arguments as they are given, what wrong ones are told, and instants as they are read."""

from __future__ import annotations

import operator
import time
from typing import Any

import pytest

from pytest_dstfuzz.comparisons.arguments import ArgumentTable, own_rule, rule_of
from pytest_dstfuzz.comparisons.calls import comparison_of_calls
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.calls import Tool, ToolCall, calls_outcome, canonical
from pytest_dstfuzz.dialogue.dates import instant_of
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet, Exchange, Turn
from pytest_dstfuzz.errors import UserError

ASKED = Context((Exchange("", "book it"),))
SCHEMA = {"properties": {"people": {"type": "integer"}, "extra": {"type": "object"}}}
RECORDED = calls_outcome([ToolCall("cancel", {"id": "A1"})])
DATA = DialogueSet(
    "own",
    "test",
    (Dialogue("d", (Turn(0, "", "hi", calls=RECORDED),), (Tool("book", "", canonical(SCHEMA)),)),),
)


def compare(path: str, before: str, found: str, **options: Any) -> tuple[bool, str]:
    settings = Settings.of(outcome="tool-calls", **options).reply
    compared = comparison_of_calls(DATA, settings).compare(path, before, found, ASKED)
    return compared.same, compared.why


def test_free_text_is_compared_as_replies_are() -> None:
    texts = ("We open at nine.", "We are open from 9.")
    path = "book[0].extra.note"
    assert compare(path, *texts) == (False, " -> ".join(texts))
    assert compare(path, *texts, arguments={"book.extra.note": "text"})[0]
    assert compare(path, texts[0], "We open at ten.", arguments={"*.note": "text"}) == (
        False,
        "9 / 10",
    )


def test_options_mappings_and_nested_tables_say_the_same() -> None:
    given = (
        {"book.people": "exact", "*.id": ["A1", "a-1"]},
        {"book": {"people": "exact"}, "*": {"id": ["A1", "a-1"]}},
        ["book.people=exact", '*.id=["A1", "a-1"]'],
    )
    found = {Settings.of(outcome="tool-calls", arguments=one).reply.arguments for one in given}
    assert found == {("book.people=exact", '*.id=["A1", "a-1"]')}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"book.people": "nubmer"}, "unknown rule of arguments 'nubmer'. Did you mean 'number'?"),
        ({"book.poeple": "number"}, "has an argument 'book.poeple'. Did you mean 'book.people'?"),
        ({"cancel.di": "number"}, "Did you mean 'cancel.id'?"),
        ({"book.people": ["2"]}, "needs at least two equivalent values"),
        ({"book.people": [["2", "3"], "4"]}, "mixes values and groups"),
        ({"book.people": "json:nothing"}, "'json' has no attribute 'nothing'"),
        ({"book.people": "json:__name__"}, "is of type str: give a function of two values"),
        ({"book.people": operator.eq}, 'not <built-in function eq>: name it as "module:eq"'),
        ({"book.people": 2}, "must be the name of a rule, or a list of admissible values, not 2"),
        ({"book.people": [{1, 2}]}, "may contain only JSON values"),
        (["book.people"], "is not a rule for an argument or a slot: write ARGUMENT=RULE"),
        (["=number"], "is not a rule for an argument or a slot: write ARGUMENT=RULE"),
    ],
)
def test_each_mistake_is_told(arguments: Any, message: str) -> None:
    with pytest.raises(UserError) as told:
        compare("book[0].people", "2", "3", arguments=arguments)
    assert message in str(told.value)


def test_rules_are_for_tool_calls_and_states() -> None:
    Settings.of(arguments=["*=exact"])
    with pytest.raises(
        UserError, match="--dst-arguments applies only to assistants that call tools"
    ):
        Settings.of(arguments=["*=exact"], outcome="reply")
    with pytest.raises(
        UserError, match="--dst-call-order applies only to assistants that call tools"
    ):
        Settings.of(call_order="exact")
    with pytest.raises(UserError, match="--dst-compare applies only to bots that reply"):
        Settings.of(outcome="tool-calls", compare="numbers")


def test_what_is_not_known_may_have_rules() -> None:
    # Of an object a schema says nothing, and where there are no tools everything may be.
    assert compare("book[0].extra.seats[0]", "2", "3", arguments={"book.extra.seats": "ignore"})[0]
    settings = Settings.of(outcome="tool-calls", arguments={"any.thing": "ignore"}).reply
    comparison_of_calls(DialogueSet("none", "test", ()), settings)


def test_an_own_function_must_answer_yes_or_no() -> None:
    undecided = own_rule(lambda before, found: None, "undecided")  # noqa: ARG005 - two values
    with pytest.raises(UserError, match="'undecided' returned None: it must return True"):
        undecided.same(1, 2, rule_of("auto"))  # type: ignore[arg-type]  # which it does not look at
    broken = own_rule(lambda before, found: before[found], "broken")
    with pytest.raises(UserError, match="'broken' raised TypeError"):
        broken.same(1, 2, rule_of("auto"))  # type: ignore[arg-type]  # likewise


def test_the_identity_follows_schemas_rules_and_sources() -> None:
    def identity(data: DialogueSet, **options: Any) -> str:
        settings = Settings.of(outcome="tool-calls", **options).reply
        return comparison_of_calls(data, settings).identity

    empty = DialogueSet("none", "test", ())
    found = [
        identity(DATA),
        identity(empty),
        identity(empty, call_order="exact"),
        identity(empty, arguments={"x.y": "text"}),
        identity(empty, arguments={"x.y": "operator:eq"}),
    ]
    assert len(set(found)) == len(found)
    assert identity(DATA) == found[0]


@pytest.mark.parametrize(
    "same",
    [
        ("2024-03-05", "5.3.2024", "March 5th, 2024", "Tuesday, 5 March 2024", "2024-03-05T00:00"),
        ("2024-03-05T18:00Z", "20240305T180000Z", "2024-03-05 13:00-05:00", "1709661600"),
        ("18:00", "6pm", "6 p.m.", "6:00 PM", "18:00:00"),
        ("12:00", "noon", "12 pm"),
        ("00:00", "midnight", "24:00", "12am"),
        ("6 pm on 5 March", "5th of March at 18:00"),
        ("06:00-05:00", "11:00Z"),
        ("13/05/2024", "2024-05-13", "5/13/2024"),
    ],
)
def test_an_instant_has_many_spellings(same: tuple[str, ...]) -> None:
    assert len({instant_of(text) for text in same}) == 1
    assert instant_of(same[0]) is not None


@pytest.mark.parametrize(
    "text",
    [
        *("", "2", "1800", "tomorrow", "05/03/2024", "2024-02-31", "25:00", "13 pm", "²", "at six"),
        *("9999-12-31T24:00", "0001-01-01T00:00+05:00", "March 2024"),
    ],
)
def test_what_names_no_instant(text: str) -> None:
    assert instant_of(text) is None


def test_a_date_without_a_year_or_a_zone_is_another_than_with_one() -> None:
    texts = ("5 March", "2024-03-05", "2024-03-05T00:00Z", "00:00", "00:00Z")
    assert len({instant_of(text) for text in texts}) == len(texts)
    assert instant_of(True) is None
    assert instant_of(float("nan")) is None


def test_a_schema_that_refers_to_itself_is_described_once() -> None:
    names = ("and", "or", "not", "left", "right", "if", "then", "else")
    node: dict[str, Any] = {
        "type": "object",
        "properties": {name: {"$ref": "#/$defs/n"} for name in names},
    }
    node["properties"]["value"] = {"type": "number"}
    others = {f"m{number}": {"$ref": f"#/$defs/{number}"} for number in range(12)}
    mutual = {str(number): {"type": "object", "properties": others} for number in range(12)}
    for given in (
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": node}},
        {"type": "object", "properties": others, "$defs": mutual},
    ):
        start = time.process_time()
        table = ArgumentTable(tools=(Tool("find", "", canonical(given)),))
        assert "find.a.value" in table.slots or "find.m0.m1" in table.slots
        assert time.process_time() - start < 10
