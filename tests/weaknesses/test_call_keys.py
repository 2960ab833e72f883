"""Weaknesses of assistants: by what became of a call, or of an argument."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from violations import edit, turn, violation

from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.dialogue.calls import ToolCall, calls_outcome
from pytest_dstfuzz.dialogue.dialogues import Admissible, Difference, diff_states
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.weaknesses.advice import to_try
from pytest_dstfuzz.weaknesses.groups import (
    Key,
    find_weaknesses,
    key_of_id,
    read,
)
from pytest_dstfuzz.weaknesses.mechanisms import CALLS, FAILURES, OTHER

ASKED = "a table at the old mill for two people at seven"
KNOWN = {"people": 2, "place": "old mill", "time": "19:00", "area": "north"}
TABLE = ToolCall("book_table", KNOWN)
TAXI = ToolCall("call_taxi", {"start": "old mill"})
TOOLS = ("book_table", "call_taxi", "cancel")


def broken(
    clean: Sequence[ToolCall], found: Sequence[ToolCall]
) -> tuple[TurnResult, VariantResult]:
    slip = edit(ASKED, "char_replace/swap", "people", "poeple")
    was, now = calls_outcome(clean), calls_outcome(found)
    changes = diff_states(was, now)
    variant = replace(violation(ASKED, [slip], {}), changed_slots=changes)
    result = replace(turn(ASKED, was, variant), outcome_kind="tool-calls", tools=TOOLS)
    return result, variant


def table(**other: Any) -> ToolCall:
    return ToolCall("book_table", {k: v for k, v in {**KNOWN, **other}.items() if v is not None})


@pytest.mark.parametrize(
    ("clean", "found", "name", "slot"),
    [
        ([TABLE], [], "call dropped", "book_table"),
        ([TABLE, TAXI], [TABLE], "one of several calls dropped", "call_taxi"),
        ([TABLE], [ToolCall("cancel")], "different tool called", "book_table"),
        ([TABLE], [ToolCall("book_tabel")], "unknown tool called", "book_tabel"),
        ([], [TAXI], "call added", "call_taxi"),
        ([TABLE, TAXI], [TAXI, TABLE], "order of calls changed", "book_table"),
        ([TABLE], [table(people=None)], "number or time dropped", "book_table.people"),
        ([TABLE], [table(area=None)], "argument dropped", "book_table.area"),
        ([TABLE], [table(place="old mill poeple")], "misspelt argument copied", "book_table.place"),
        ([TABLE], [table(note="poeple")], "misspelt argument copied", "book_table.note"),
        ([TABLE], [table(people=4)], "number or time changed", "book_table.people"),
        ([TABLE], [table(people="2")], "argument type changed", "book_table.people"),
        ([TABLE], [table(area="old mill")], "arguments mixed up", "book_table.area"),
        (
            [TABLE],
            [table(place="the old mill")],
            "argument shortened or extended",
            "book_table.place",
        ),
        ([TABLE], [table(area="south")], "argument value changed", "book_table.area"),
        ([TABLE], [table(pets=False)], "argument added", "book_table.pets"),
        # The more telling one names it.
        (
            [TABLE],
            [table(area="south", people=None)],
            "number or time dropped",
            "book_table.people",
        ),
    ],
)
def test_what_became_of_a_call_names_it(
    clean: list[ToolCall], found: list[ToolCall], name: str, slot: str
) -> None:
    reading = read(*broken(clean, found))
    assert (reading.key, reading.slot) == (Key(name, slot), slot)
    assert reading.words == ("people",)
    assert key_of_id(reading.key.id) == reading.key


def test_a_change_that_did_not_follow_is_told_in_words_of_calls() -> None:
    result, variant = broken([TABLE], [TABLE])
    stuck = Difference("book_table[0].people", "2", "2", expected=Admissible(("4",)))
    variant = replace(variant, changed_slots=(stuck,), failure="stuck")
    result = replace(result, variants=(variant,), relation="value-swap", side="should-change")
    (weakness,) = find_weaknesses([result])
    assert weakness.key.mechanism == "new value ignored"
    assert weakness.description == "new value ignored: book_table.people"
    assert weakness.to_try.endswith("schema: list the allowed values of the argument")
    assert weakness.slots == ("book_table.people",)


def test_the_same_fault_of_two_tools_is_two_weaknesses() -> None:
    found = [read(*broken([call], [])).key.id for call in (TABLE, TAXI)]
    assert len({*found}) == 2
    assert "book_table" in found[0]
    assert "call_taxi" in found[1]


@pytest.mark.parametrize("name", ["number of guests", "größe", "a.b-c", "-v", "50%"])
def test_an_id_is_one_word_of_a_shell_whatever_the_names_of_arguments(name: str) -> None:
    key = read(*broken([table(**{name: 4})], [table(**{name: 6})])).key
    assert key.at == f"book_table.{name}"
    assert shlex.quote(key.id) == key.id
    assert key_of_id(key.id) == key


@pytest.mark.parametrize("name", [*CALLS, *FAILURES, OTHER])
def test_advice_against_a_mechanism_of_calls_is_in_words_of_calls(name: str) -> None:
    advice = to_try(name, KINDS["tool-calls"])
    assert advice
    assert not {"slot", "slots", "tracker", "rule:"} & {*advice.split()}
