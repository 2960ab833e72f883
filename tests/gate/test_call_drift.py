"""Gates of assistants: clean calls of two builds, rates by tool, and those who call nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gate_cases import Contents, build, judged_figure, saved, totals_of

from pytest_dstfuzz.campaign.answers import UNSTABLE
from pytest_dstfuzz.campaign.figures import tally_results
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import summarise
from pytest_dstfuzz.comparisons.calls import comparison_of_calls
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.calls import ToolCall, calls_outcome
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.gate.baseline import digest_of, make_baseline
from pytest_dstfuzz.gate.judge import judge_answers
from pytest_dstfuzz.gate.pairing import judge_drift, pair_up
from pytest_dstfuzz.gate.verdict import right_answers
from pytest_dstfuzz.kinds.tool_calls import TOOL_CALLS
from pytest_dstfuzz.totals.troubles import AnswersTally, TroublesTally

ANY = comparison_of_calls(DialogueSet("talks", "test", ()), ReplySettings())
Calls = list[ToolCall]


def one_answer(turns: Iterable[TurnResult]) -> str:
    return tally_results(AnswersTally(), turns).text


def table(people: object, **more: object) -> ToolCall:
    return ToolCall("book_table", {"people": people, **more})


TAXI = ToolCall("call_taxi", {"start": "here"})


def called(*messages: Calls, right: Calls | None = None) -> dict[str, list[TurnResult]]:
    groups = build(*("h" for _ in messages))
    return {
        "only": [
            replace(
                turn,
                clean_state=calls_outcome(calls),
                label=None if right is None else calls_outcome(right),
                outcome_kind="tool-calls",
            )
            for turn, calls in zip(groups["only"], messages, strict=True)
        ]
    }


def test_the_same_calls_in_another_order_or_spelling_are_no_drift() -> None:
    old = called([table(2), TAXI], [table(2, area="north")], [table(3)])
    new = called([TAXI, table(2)], [table("2", area="North")], [table(4)])
    drift = pair_up(saved(old), new, Contents(new), ANY).clean.drift()
    assert len(drift.changed) == 1
    reason = judge_drift(drift, 0.0).reason
    assert "arguments changed book_table.people (1)" in reason
    assert "slot" not in reason


def test_labels_speak_of_recorded_calls() -> None:
    old, new = called([table(2)], right=[table(3)]), called([table(3)], right=[table(3)])
    drift = pair_up(saved(old), new, Contents(new), ANY).clean.drift()
    reason = judge_drift(drift, 1.0).reason
    assert "right calls on the 1 turn with recorded calls" in reason
    assert judged_figure("min-accuracy", 0.5, right_answers(1, 4, TOOL_CALLS)).reason.startswith(
        "the share of right messages of the clean turns 25.00 % (1 of 4 turns with recorded"
    )


def test_an_argument_that_is_right_in_another_spelling_may_not_change() -> None:
    """Another argument of the call is wrong in both builds."""
    right = [table("4", notes="a quiet place")]
    met = [TAXI]

    def excused(before: object, after: object, note: str = "small") -> bool:
        old = called([table(before, notes="small")], met, right=right)
        new = called([table(after, notes=note)], met, right=right)
        for run in (old, new):
            run["only"][1] = replace(run["only"][1], label=calls_outcome(met))
        return pair_up(saved(old), new, Contents(new), ANY).clean.drift().excused

    assert not excused(4, 5)
    assert excused(5, 4)
    assert excused("4", 4, "a quiet place")


def test_digests_of_recorded_calls_excuse_nothing() -> None:
    right = [table("4")]
    old, new = called([table(4)], [TAXI], right=right), called([table(5)], [TAXI], right=right)
    hidden = make_baseline(old, {}, "mybot", Contents(old), hidden=True)
    for run in (old, new):
        run["only"][1] = replace(run["only"][1], label=calls_outcome([TAXI]))
    assert not pair_up(hidden, new, Contents(new), ANY).clean.drift().excused


def test_what_is_kept_back_is_no_argument() -> None:
    old = called([table("a secret")])
    assert "secret" not in repr(make_baseline(old, {}, "bot", Contents(old), hidden=True))


def test_who_never_calls_anything_is_never_green() -> None:
    silent = called(*[[]] * 4, right=[table(2)])
    (finding,) = judge_answers(totals_of(silent))
    assert finding.verdict == "regression"
    assert finding.reason == (
        "at all 4 turns with recorded calls the assistant calls nothing, so nothing was tested: "
        "check that it gets the tools"
    )
    assert one_answer(called([], [], [], [TAXI], right=[table(2)])["only"]) == ""
    assert one_answer(called(*[[]] * 4, right=[])["only"]) == ""
    first, *others = called([], [], [], right=[])["only"]
    once = [replace(first, label=calls_outcome([TAXI])), *others]
    assert one_answer(once).startswith("at 1 turn with recorded calls the assistant calls nothing")
    assert one_answer(once[:2]) == ""
    # Without anything recorded it takes more turns to tell.
    assert one_answer(called(*[[]] * 19)["only"]) == ""
    assert one_answer(called(*[[]] * 20)["only"]) == (
        "the clean answers to all 20 turns are empty; an assistant that understands nothing cannot "
        "be broken, so nothing was tested"
    )


def test_calls_that_differ_each_time_are_told() -> None:
    turns = [
        replace(turn, outcome="untested", reason=UNSTABLE, variants=())
        for turn in called([TAXI], [TAXI])["only"]
    ]
    assert (
        "the assistant's calls for the same messages"
        in tally_results(TroublesTally(), turns).unstable_text
    )


def test_variants_that_differ_in_the_tools_alone_are_told_apart() -> None:
    (turn,) = build("v")["only"]
    variant = replace(turn.variants[0], edits=())
    one, other = (replace(variant, about=text) for text in ("one more tool", "another order"))
    assert len({digest_of(one), digest_of(other), digest_of(variant)}) == 3


def test_summaries_count_arguments_by_tool() -> None:
    found = summarise(called([table(2)], [table(2)], right=[table(2)])["only"])
    assert (found.clean_right, found.clean_labelled) == (2, 2)
