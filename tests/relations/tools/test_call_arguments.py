"""Relations on slots, on the arguments of tool calls; and all that speak of tool calls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from booking import BOOK, TALKS, dialogue, right

from pytest_dstfuzz import Campaign, Settings, TurnResult
from pytest_dstfuzz.dialogue.calls import ToolCall
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.relations.registry import RELATIONS, relation_by_name
from pytest_dstfuzz.testing import check_relation

FOLLOW = ("value-swap", "removal", "antonym", "random-input", "repair", "turn-back")
SHIPPED = [relation_by_name(name) for name in RELATIONS.shipped]


def results(assistant: object, data: DialogueSet, relation: str, **more: Any) -> list[TurnResult]:
    chosen = {"variants": 8, "repeatable": True, **more}
    settings = Settings.of(outcome="tool-calls", turns="all", **chosen)
    return list(Campaign(assistant, data, settings, relation=relation))


def expected(found: list[TurnResult]) -> dict[str, set[str]]:
    """Return what each rewrite expects, by the utterance."""
    return {
        variant.text: {str(delta) for delta in variant.expected}
        for result in found
        for variant in result.variants
    }


@pytest.mark.parametrize("name", FOLLOW)
def test_a_right_assistant_follows_and_one_that_is_stuck_is_found(name: str) -> None:
    check_relation(name, TALKS, outcome="tool-calls").assert_passed()
    found = results(right, TALKS, name)
    assert {one.outcome for one in found} <= {"held", "inapplicable"}
    assert any(one.outcome == "held" for one in found)
    stuck = results(stuck_caller, TALKS, name)
    failures = {v.failure for one in stuck for v in one.violations}
    assert failures == {"stuck"}


def stuck_caller(_: object, __: object) -> object:
    """Call the same, whatever is said."""
    return [
        ToolCall("book_table", {"people": 2, "day": "friday", "area": "north", "terrace": True})
    ]


def test_what_is_expected_may_be_put_in_other_words_under_a_test_as_well() -> None:
    def loud(*asked: object) -> object:
        return [
            ToolCall(
                call.name,
                {k: v.upper() if isinstance(v, str) else v for k, v in call.arguments.items()},
            )
            for call in right(*asked)
        ]

    found = results(loud, TALKS, "value-swap", repeatable=None, error_rate=0.05)
    assert {variant.outcome for one in found for variant in one.variants} == {"held"}


def test_deltas_are_exact_and_keep_the_type() -> None:
    made = expected(results(right, TALKS, "value-swap"))
    table = "I would like to book a table for {} people on friday in the north please ."
    assert made[table.format(4)] == {"book_table[0].people: 2 -> 4"}
    assert made["please book a table for 4 people on friday with a terrace"] == {
        "book_table[0].day: sunday -> friday"
    }


def test_without_what_a_tool_needs_it_is_not_called() -> None:
    made = expected(results(right, TALKS, "removal"))
    assert made["I would like to book a table for 2 people on friday please ."] == {
        "book_table[0].area: north -> anything but north, or no call"
    }
    assert made["we need a taxi to the old station as soon as you can"] == {
        "call_taxi[0]: call 1 -> none",
        "call_taxi[0].people: 3 -> none",
    }


def test_a_value_that_was_recorded_before_is_not_taken_away() -> None:
    usual = ToolCall("book_table", {"people": 2, "day": "friday"})
    again = ToolCall("book_table", {"people": 4, "day": "friday"})
    known = dialogue(
        "known",
        ("please book what I always have", usual),
        ("and book us a second table for 4 people on friday please", again),
    )
    made = expected(results(right, replace(TALKS, dialogues=(known,)), "removal"))
    assert list(made) == ["and book us a second table on friday please"]


def test_texts_have_the_spelling_of_the_data_and_the_comparison_says_what_is_expected() -> None:
    def dialogue_of(name: str, city: str) -> Any:
        call = ToolCall("find", {"city": city})
        tool = BOOK._replace(name="find", parameters='{"properties": {"city": {"type": "string"}}}')
        said = f"please find me something nice in {city} , if you can"
        return dialogue(name, (said, call), tools=(tool,))

    data = replace(TALKS, dialogues=(dialogue_of("a", "Oak Bay"), dialogue_of("b", "Elm Hill")))

    def lower(messages: list[dict[str, Any]], _: object) -> object:
        city = messages[-1]["content"].partition(" in ")[2].partition(" ,")[0]
        return [ToolCall("find", {"city": city if city == "Oak Bay" else city.lower()})]

    found = results(lower, data, "value-swap")
    assert expected(found)["please find me something nice in Elm Hill , if you can"] == {
        "find[0].city: Oak Bay -> Elm Hill"
    }
    assert [one.outcome for one in found] == ["held", "held"]


@pytest.mark.parametrize(
    "name", [one.name for one in SHIPPED if "tool-calls" in one.on and one.name not in FOLLOW]
)
def test_every_relation_that_speaks_of_tool_calls_runs_on_them(name: str) -> None:
    try:
        check_relation(name, TALKS, outcome="tool-calls").assert_passed()
        found = results(right, TALKS, name, variants=3)
    except UserError as error:
        assert "does not apply to" in str(error)  # noqa: PT017 - of some the data say nothing
    else:
        assert all(one.outcome != "error" for one in found)
        said = [one for one in found if one.outcome != "inapplicable"]
        assert all(one.variants for one in said)
        silent = {"negation", "masked-replacement", "indirect-question"}
        assert said or name in {*silent, "restate", "split", "join", "follow-up"}


@pytest.mark.parametrize("name", [one.name for one in SHIPPED if "tool-calls" not in one.on])
def test_relations_that_do_not_are_refused_by_name(name: str) -> None:
    with pytest.raises(UserError, match=f"'{name}' tests .*, not tool calls: use one of meta"):
        results(right, TALKS, name)
