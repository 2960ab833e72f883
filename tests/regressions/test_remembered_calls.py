"""Remembered violations of assistants: with what was recorded, asked again, promoted to tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.comparisons.calls import comparison_of_calls
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.calls import History, Tool, ToolCall, calls_outcome
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet, Turn, diff_states
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.regressions.promote import write_promoted
from pytest_dstfuzz.regressions.regression import Regression
from pytest_dstfuzz.trackers.tracker import Prediction

TAXI = Tool("call_taxi", "Order a taxi.", '{"type":"object","properties":{}}')
TABLE = ToolCall("book_table", {"people": 2, "area": "north"})
SYSTEM = '{"role": "system", "content": "Be brief."}'
DONE = '{"role": "tool", "tool_call_id": "a", "content": "ok"}'
TALK = Dialogue(
    "d1",
    (
        Turn(0, "", "a taxi please", recorded=(SYSTEM,)),
        Turn(1, "Done.", "and a table for two", recorded=(DONE,)),
    ),
    (TAXI, Tool("book_table")),
)
ANY = comparison_of_calls(DialogueSet("talks", "test", (TALK,)), ReplySettings())


def broken(
    clean: Sequence[ToolCall],
    found: Sequence[ToolCall],
    history: History = "recorded",
    **more: Any,
) -> Regression:
    before, after = calls_outcome(clean), calls_outcome(found)
    variant = VariantResult(
        index=0,
        text="and a table for tow",
        context=("a taxi please",),
        edits=(Edit("char_replace", "swap", 17, 19, "wo", "ow"),),
        edit_w=0.0,
        edit_c=0.1,
        valid=True,
        reason="",
        state=after,
        changed_slots=diff_states(before, after),
        cause="turn",
        outcome="violation",
        **more,
    )
    turn = TurnResult(
        id="talks-test-d1-t1",
        dialogue_id="d1",
        turn_index=1,
        system="Done.",
        user="and a table for two",
        clean_state=before,
        outcome="violation",
        variants=(variant,),
        outcome_kind="tool-calls",
    )
    return Regression.of(turn, variant, TALK, "metamorphic", compare=ANY.name, history=history)


KEPT = broken([TABLE], [ToolCall("book_table", {"people": 4, "area": "north"})])


def test_it_is_kept_with_tools_and_recorded_messages() -> None:
    line = json.loads(json.dumps(KEPT.to_json()))
    assert Regression.from_json(line) == KEPT
    assert line["outcome"] == "tool-calls"
    assert line["transcript"]["tools"][0] == {
        "name": "call_taxi",
        "description": "Order a taxi.",
        "parameters": {"type": "object", "properties": {}},
    }
    assert line["transcript"]["recorded"][1] == [json.loads(DONE)]
    assert KEPT.clean.transcript == KEPT.seen.transcript
    assert KEPT.clean.transcript is not None
    other = replace(KEPT, transcript=replace(KEPT.clean.transcript, tools=()))
    assert other.id != KEPT.id
    assert KEPT.lines_of(KEPT.changed) == ['book_table(area="north", people=2 -> 4)']
    assert KEPT.lines_of(KEPT.changed, lambda _: "x") == ['book_table(area="x", people="x" -> "x")']


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"tools": [{}]}, "transcript: tools\\[0\\]: lacks 'name'"),
        ({"recorded": [["hello"]]}, "transcript: recorded"),
        ({"names": {"a": 1}}, "transcript: names"),
    ],
)
def test_a_damaged_line_says_where(damage: dict[str, Any], message: str) -> None:
    line = KEPT.to_json()
    with pytest.raises(ValueError, match=message):
        Regression.from_json({**line, "transcript": {**line["transcript"], **damage}})


def replayed(kept: Regression, before: Sequence[ToolCall], after: Sequence[ToolCall]) -> str:
    answers = {
        context: Prediction(calls_outcome(calls))
        for context, calls in ((kept.clean, before), (kept.seen, after))
    }
    return kept.replayed(answers, comparison=ANY)[0]


OTHER = ToolCall("call_taxi", {"start": "here"})


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ([TABLE], [TABLE], "fixed"),
        # Which call of the message it is, and how a value is written, says nothing.
        (
            [OTHER, TABLE],
            [ToolCall("book_table", {"people": "2", "area": "North"}), OTHER],
            "fixed",
        ),
        ([TABLE], [ToolCall("book_table", {"people": 3, "area": "north"})], "broken"),
        ([TABLE], [], "broken"),
        ([], [], "unclear"),
    ],
)
def test_calls_that_say_the_same_are_the_same(
    before: list[ToolCall], after: list[ToolCall], outcome: str
) -> None:
    assert replayed(KEPT, before, after) == outcome


def test_other_tools_that_were_given_are_given_again() -> None:
    recorded = KEPT.clean.transcript
    assert recorded is not None
    given = replace(recorded, tools=recorded.tools[::-1], names=(("taxi", "call_taxi"),))
    kept = broken([TABLE], [], transcript=given)
    assert (kept.clean.transcript, kept.seen.transcript) == (recorded, given)
    assert Regression.from_json(json.loads(json.dumps(kept.to_json()))) == kept
    assert replayed(kept, [TABLE], []) == "broken"
    assert "transcript=given" in write_promoted(kept)


def table_for(two: str) -> Any:
    """Return an assistant that reads one spelling of a number, and needs what was recorded."""

    def answer(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any] | str:
        assert [tool["function"]["name"] for tool in tools] == ["call_taxi", "book_table"]
        assert [one["role"] for one in messages] == ["system", "user", "tool", "user"]
        people = 2 if messages[-1]["content"].endswith(two) else "2 or 4"
        arguments = json.dumps({"people": people, "area": "north"})
        call = {"id": "a", "function": {"name": "book_table", "arguments": arguments}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    return answer


def test_a_promoted_test_asks_for_the_calls() -> None:
    kept = replace(KEPT, compare="calls:any,book_table.people=exact,ghost.n=number")
    code = write_promoted(kept)
    assert "        arguments=['book_table.people=exact'],\n" in code
    names: dict[str, Any] = {}
    exec(compile(code, "promoted", "exec"), names)  # noqa: S102 - what was written is a test
    (test,) = (thing for name, thing in names.items() if name.startswith("test_tool_calls_"))
    test(table_for(""))
    with pytest.raises(AssertionError, match="the tool calls are not as expected:\nbook_table"):
        test(table_for("two"))


def test_rules_of_a_promoted_test_are_those_of_the_run() -> None:
    rules = 'calls:exact,book_table.*=["a, b=", "c"],*.id=ignore'
    code = write_promoted(replace(KEPT, compare=rules))
    assert 'call_order="exact"' in code
    assert "ignore" not in code  # No tool has such an argument.
    assert 'book_table.*=["a, b=", "c"]' in code.replace("\\", "")


def test_one_of_a_rollout_says_so_and_is_no_plain_test() -> None:
    rolled = broken([TABLE], [], history="own")
    line = json.loads(json.dumps(rolled.to_json()))
    assert line["history"] == "own"
    assert Regression.from_json(line) == rolled
    recorded = broken([TABLE], [])
    assert "history" not in recorded.to_json()
    assert recorded.id != rolled.id
    told = f"{rolled.id} was found with the system's own messages.*--dst-replay={rolled.id} "
    with pytest.raises(UserError, match=f"{told}--dst-history=own"):
        write_promoted(rolled)
