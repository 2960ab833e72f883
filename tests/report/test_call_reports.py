"""Tool calls in reports: as code, with the argument marked that changed."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.campaign.figures import tally_results
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.campaign.summary import YieldsTally
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.calls import ToolCall, calls_outcome
from pytest_dstfuzz.dialogue.dialogues import Admissible, Difference, diff_states
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.report.answers import call_changes, call_lines, changes_of, show_calls
from pytest_dstfuzz.report.explain import change_lines, explain
from pytest_dstfuzz.report.github import markdown_text, violation_commands
from pytest_dstfuzz.report.html.page import html_text, page_data
from pytest_dstfuzz.report.json_report import SCHEMA_PATH, RunInfo, build_report, report_turns
from pytest_dstfuzz.report.packing import problems
from pytest_dstfuzz.report.redact import redact_turn
from pytest_dstfuzz.report.terminal import report_lines
from pytest_dstfuzz.report.view import views_of
from pytest_dstfuzz.totals.tallies import heat_map

ASKED = "a table for two in the north please"
SEEN = "a table for tow in the north please"
SETTINGS = Settings.of(model="my_bot:answer", outcome="tool-calls", seed=7)
INFO = RunInfo("talks", "test", "plain", "messages", 1, 1)
TABLE = ToolCall("book_table", {"people": 2, "area": "north"})
TAXI = ToolCall("call_taxi", {"start": "here"})
TOOLS = ("book_table", "call_taxi")


def answered(
    clean: Sequence[ToolCall], found: Sequence[ToolCall], expected: Admissible | None = None
) -> TurnResult:
    """A turn whose only variant got other calls."""
    before, after = calls_outcome(clean), calls_outcome(found)
    changes = tuple(replace(one, expected=expected) for one in diff_states(before, after))
    variant = VariantResult(
        index=0,
        text=SEEN,
        context=(),
        edits=(Edit("char_replace", "swap", 12, 15, "two", "tow"),),
        edit_w=0.0,
        edit_c=0.01,
        valid=True,
        reason="",
        outcome="violation",
        state=after,
        changed_slots=changes,
        cause="turn",
    )
    return TurnResult(
        id="talks-test-d1-t0",
        dialogue_id="d1",
        turn_index=0,
        system="",
        user=ASKED,
        label=before,
        clean_state=before,
        outcome="violation",
        outcome_kind="tool-calls",
        tools=TOOLS,
        variants=(variant,),
    )


def lines(clean: Sequence[ToolCall], found: Sequence[ToolCall]) -> list[str]:
    turn = answered(clean, found)
    return call_lines(turn, turn.variants[0].changed_slots)


def table(**more: Any) -> ToolCall:
    return ToolCall("book_table", {**TABLE.arguments, **more})


@pytest.mark.parametrize(
    ("clean", "found", "told"),
    [
        ([TABLE], [table(people=4)], ['book_table(area="north", people=2 -> 4)']),
        ([TABLE], [table(people="2")], ['book_table(area="north", people=2 -> "2")']),
        ([TABLE], [table(day=None)], ['book_table(area="north", day=none -> null, people=2)']),
        ([TABLE], [], ['no call; expected book_table(people=2, area="north")']),
        ([TABLE, TAXI], [TAXI], ['not called: book_table(people=2, area="north")']),
        ([TAXI], [TAXI, TABLE], ['called, too: book_table(people=2, area="north")']),
        ([], [TAXI], ['called although nothing was called before: call_taxi(start="here")']),
        ([TABLE], [TAXI], ['book_table(people=2, area="north") -> call_taxi(start="here")']),
        (
            [TAXI],
            [ToolCall("taxi_call", {})],
            ['call_taxi(start="here") -> taxi_call() (no such tool)'],
        ),
        (
            [TABLE, TAXI],
            [table(people=3), ToolCall("call_taxi", {"start": "there"})],
            ['book_table(area="north", people=2 -> 3)', 'call_taxi(start="here" -> "there")'],
        ),
        (
            [TABLE, table(area="south")],
            [TABLE, table(area="east")],
            ['book_table(area="south" -> "east", people=2)'],
        ),
        (
            [ToolCall("book_table", {"guest": {"name": "Ann", "vegan": True}})],
            [ToolCall("book_table", {"guest": {"name": "Ann", "vegan": False}})],
            ['book_table(guest.name="Ann", guest.vegan=true -> false)'],
        ),
        (
            [ToolCall("book_table", {"tags": ["a", "b"]})],
            [ToolCall("book_table", {})],
            ['book_table(tags=["a", "b"] -> none)'],
        ),
        (
            [ToolCall("book_table", {"tags": ["a", "b"]})],
            [ToolCall("book_table", {"tags": ["a"]})],
            ['book_table(tags=["a", "b"] -> ["a"])'],
        ),
        (
            [ToolCall("book_table", {"guests": [{"name": "Ann"}, {"name": "Bo"}]})],
            [ToolCall("book_table", {"guests": [{"name": "Ann"}, {"name": "Cy"}]})],
            ['book_table(guests[0].name="Ann", guests[1].name="Bo" -> "Cy")'],
        ),
    ],
)
def test_what_became_of_calls(
    clean: list[ToolCall], found: list[ToolCall], told: list[str]
) -> None:
    # Arguments of calls that were kept as paths are sorted by name.
    told = [one.replace('people=2, area="north"', 'area="north", people=2') for one in told]
    assert lines(clean, found) == told


def test_a_call_that_another_one_goes_before_says_so() -> None:
    assert lines([TABLE, TAXI], [TAXI, TABLE]) == [
        'book_table(area="north", people=2) (call 2 of the message, was call 1)',
        'call_taxi(start="here") (call 1 of the message, was call 2)',
    ]


def test_what_was_expected_is_told_beside_the_call() -> None:
    stuck = Difference("book_table[0].people", "2", "2", expected=Admissible(("4",)))
    turn = answered([TABLE], [TABLE])
    assert change_lines([stuck], turn) == [
        'book_table(area="north", people=2 -> 2) (expected 4)',
    ]
    other = Difference("book_table[0].people", "2", "3", expected=Admissible(("4",)))
    assert change_lines([other], turn) == ['book_table(area="north", people=2 -> 3) (expected 4)']


def test_long_calls_are_short_on_a_line_and_whole_on_a_page() -> None:
    many = {f"a{number:02}": "word " * 40 for number in range(9)}
    turn = answered([ToolCall("book_table", many)], [ToolCall("book_table", {**many, "b": 1})])
    (line,) = change_lines(turn.variants[0].changed_slots, turn)
    assert len(line) < 500
    assert line.endswith("b=none -> 1, ...)")
    (shown,) = call_changes(turn, turn.variants[0].changed_slots, page=True)
    assert shown.text.count("word") == 9 * 40


def test_changes_alone_tell_of_the_arguments_that_changed() -> None:
    changes = [Difference("book_table[0].people", "2", "4")]
    assert [one.text for one in changes_of(None, changes)] == ["book_table(people=2 -> 4, ...)"]


PATHS = st.builds("".join, st.lists(st.sampled_from("ab.[01]"), max_size=8)) | st.text(max_size=6)


@given(st.dictionaries(PATHS, st.text(max_size=3)), st.dictionaries(PATHS, st.text(max_size=3)))
def test_whatever_paths_there_are_something_is_told(
    clean: dict[str, str], found: dict[str, str]
) -> None:
    changes = list(diff_states(clean, found))
    told = changes_of(clean, changes)
    assert all(one.text for one in told)
    assert bool(told) == any(one.path.in_call for one in changes)


def test_a_failure_shows_calls_as_code() -> None:
    text = explain(answered([TABLE], [table(people=4)]), SETTINGS, command=None, verbose=True)
    assert text.startswith("1 of 1 valid variants changes the tool calls at turn 0 of dialogue d1")
    assert '  called:    book_table(area="north", people=2)\n' in text
    assert '    changed: book_table(area="north", people=2 -> 4)\n' in text
    assert "called:    nothing" in explain(
        answered([], [TAXI]), SETTINGS, command=None, verbose=True
    )
    assert show_calls({}) == "nothing"


@pytest.fixture(scope="module")
def turn() -> TurnResult:
    return answered([TABLE, TAXI], [table(people=4, area="<b>x</b>")])


@pytest.fixture(scope="module")
def report(turn: TurnResult) -> dict[str, Any]:
    return build_report([turn], SETTINGS, INFO)


def test_the_report_has_all_of_it_by_path(turn: TurnResult, report: dict[str, Any]) -> None:
    assert report["outcome"]["kind"] == "tool-calls"
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    assert problems(report, schema) == []
    (told,) = report["turns"]
    assert told["clean_state"]["call_taxi[0]"] == "call 2"
    assert told["tools"] == [*TOOLS]
    assert report_turns(report) == (turn,)
    assert set(report["ledger"]["slots"]) == {
        *("book_table", "book_table.area", "book_table.people"),
        *("call_taxi", "call_taxi.start"),
    }


def test_rates_are_by_tool_and_argument_whichever_call_it_is(turn: TurnResult) -> None:
    twice = answered([TABLE, table(area="south")], [TABLE, table(area="east")])
    assert tally_results(YieldsTally(), [twice]).slots["book_table.area"].violations == 1
    assert tally_results(YieldsTally(), [turn, twice]).domains["book_table"].violations == 2
    found = heat_map(tally_results(YieldsTally(), [turn]), turn.kind)
    assert found.domains == ("book_table", "call_taxi")
    assert [name for name, _ in found.rows] == ["", "area", "people", "start"]
    assert found.slot("book_table", "area") == "book_table.area"
    assert found.slot("book_table", "") == "book_table"


def test_pages_mark_the_argument_and_escape_everything(
    turn: TurnResult, report: dict[str, Any]
) -> None:
    pytest.importorskip("jinja2")
    page = html_text(report)
    assert "<b>x</b>" not in page
    assert "people=<del>" in page.replace("\n", "")
    (violation,) = page_data([turn])["violations"]
    (what, spans, notes), (other, gone, _) = violation["calls"]
    assert (what, notes, other) == ("", (), "not called:")
    assert spans[1:3] == [('"north"', '"<b>x</b>"'), ", people="]
    assert gone == [('call_taxi(start="here")', "")]
    assert violation["tools"] == ["book_table", "call_taxi"]


def test_no_report_of_calls_speaks_of_states_or_slots(
    turn: TurnResult, report: dict[str, Any]
) -> None:
    pytest.importorskip("jinja2")
    page = html_text(report).partition("<body>")[2].partition('<script type="application')[0]
    page = re.sub("<[^>]*>", " ", page.partition("<h3>Settings</h3>")[0])
    shown = report_lines([turn], SETTINGS, INFO, verbosity=1)
    commands = violation_commands([turn], SETTINGS.gate, "utf-8")
    for text in (
        *("\n".join(line.text for line in shown), markdown_text(views_of(report)), page),
        *("\n".join(commands), explain(turn, SETTINGS, command="pytest")),
    ):
        for word in ("belief", "ontology", "tracker", "accuracy", "domain", "the bot"):
            assert word not in text.lower(), (word, text)
        assert "people" in text


def test_redacted_calls_keep_their_shape_and_nothing_that_was_said(turn: TurnResult) -> None:
    hidden = redact_turn(turn)
    assert change_lines(hidden.variants[0].changed_slots, hidden) == [
        'book_table(area="xxxxx" -> "xxxxxxxx", people="x" -> "x")',
        'not called: call_taxi(start="xxxx")',
    ]
    assert "north" not in repr(hidden)
    assert hidden.clean_state is not None
    assert hidden.clean_state["call_taxi[0]"] == "call 2"
