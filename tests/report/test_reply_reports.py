"""Replies in reports: what was said, what came in its place, and why that is another one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.campaign.answers import UNSTABLE
from pytest_dstfuzz.campaign.figures import tally_results
from pytest_dstfuzz.campaign.results import Spread, TurnResult, VariantResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.calls import reply_outcome
from pytest_dstfuzz.dialogue.dialogues import Admissible, Difference
from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.report.answers import differences, reply_pairs
from pytest_dstfuzz.report.explain import change_lines, explain
from pytest_dstfuzz.report.figures import spread_texts
from pytest_dstfuzz.report.github import markdown_text
from pytest_dstfuzz.report.html.page import html_text
from pytest_dstfuzz.report.json_report import RunInfo, build_report
from pytest_dstfuzz.report.redact import redact_turn
from pytest_dstfuzz.report.terminal import report_lines
from pytest_dstfuzz.report.view import views_of
from pytest_dstfuzz.totals.tallies import SpreadTally

ASKED = "when will it be here"
CLEAN = "It will be with you on Tuesday."
OTHER = "It will be with you on Friday."
SORRY = "Sorry, what do you mean?"
SETTINGS = Settings.of(model="my_bot:reply", outcome="reply", seed=7)
INFO = RunInfo("chats", "test", "plain", "jsonl", 1, 1, compared="numbers,polarity")
EXPECTED = """\
1 of 1 valid variants changes the reply at turn 0 of dialogue chat

  system:    (nothing yet)
  user:      when will it be here
  replied:   It will be with you on Tuesday.

  Variant 0
    edits:   [-when-]{+wehn+} will it be here
    seen as: wehn will it be here
      char_replace/swap: "he" -> "eh" at 1
    replied: It will be with you on [-Tuesday.-]{+Friday.+}
    differs: Tuesday / Friday
    cause:   the edits of this turn
    rates:   words 0.000, characters 0.010

  seed 7, natural profile, hybrid attack, random search, metamorphic relation"""


def answered(found: str, why: str = "", distance: float | None = None) -> TurnResult:
    """A turn whose only variant got another reply."""
    change = Difference("reply", CLEAN, found, distance=distance, why=why)
    variant = VariantResult(
        index=0,
        text="wehn will it be here",
        context=(),
        edits=(Edit("char_replace", "swap", 1, 3, "he", "eh"),),
        edit_w=0.0,
        edit_c=0.01,
        valid=True,
        reason="",
        outcome="violation",
        state=reply_outcome(found),
        changed_slots=(change,),
        cause="turn",
    )
    return TurnResult(
        id="chats-test-chat-t0",
        dialogue_id="chat",
        turn_index=0,
        system="",
        user=ASKED,
        label=reply_outcome("Tuesday."),
        clean_state=reply_outcome(CLEAN),
        outcome="violation",
        outcome_kind="reply",
        right=True,
        variants=(variant,),
    )


def test_a_failure_shows_both_replies_and_why_they_differ() -> None:
    found = explain(answered(OTHER, "Tuesday / Friday"), SETTINGS, command=None, verbose=True)
    assert found == EXPECTED


def test_replies_with_little_in_common_are_shown_as_they_are() -> None:
    text = explain(answered(SORRY), SETTINGS, command=None, verbose=True)
    assert f"    replied: {SORRY}\n    cause:" in text
    assert change_lines(answered(SORRY).variants[0].changed_slots, answered(SORRY)) == [
        f"before:  {CLEAN}",
        f"replied: {SORRY}",
    ]


def test_a_distance_stands_beside_that_of_its_own_replies() -> None:
    turn = answered(SORRY, "0.83 apart, 0.42 allowed", 0.83)
    own = replace(turn, own=Spread(3, 1, 0.07, 0.05))
    text = explain(own, SETTINGS, command=None, verbose=True)
    assert "apart:   0.83 apart, 0.42 allowed; replies to the clean turn lie within 0.07" in text


def test_what_stayed_where_it_should_not_is_the_same_again() -> None:
    other = Admissible((CLEAN,), anything_but=True)
    stuck = Difference("reply", CLEAN, CLEAN, expected=other)
    assert change_lines((stuck,), answered(CLEAN)) == [f"replied: the same again: {CLEAN}"]


def test_a_failure_of_the_bot_is_one_of_the_bot() -> None:
    reason = "KeyError: 'deposit' (odd.py:13)"
    never_asked = replace(answered(OTHER).variants[0], outcome="error", reason=reason, cause=None)
    failed = replace(
        answered(OTHER), variants=(never_asked,), clean_state=None, outcome="error", reason=reason
    )
    text = explain(failed, SETTINGS, command="pytest")
    assert text.startswith(
        f"The bot fails on the unedited question, turn 0 of dialogue chat: {reason}\n"
    )
    assert "ariant" not in text


def test_many_clean_replies_that_are_no_answer_are_told() -> None:
    turns = [
        replace(answered(OTHER), id=f"t{number}", clean_state=reply_outcome(text))
        for number, text in enumerate([SORRY] * 3 + [CLEAN] * 6 + ["Ask the desk."])
    ]

    def printed(turns: list[TurnResult], settings: Settings = SETTINGS) -> str:
        page = report_lines(turns, settings, INFO, verbosity=0)
        return " ".join(" ".join(line.text for line in page).split())

    note = "note 3 of 10 clean replies are no answer: wrong data or endpoint?"
    assert note in printed(turns)
    assert "are no answer" not in printed(turns[1:])
    own = Settings.of(model="my_bot:reply", outcome="reply", fallback=("^ask the desk",))
    assert "3 of 9 clean replies are no answer" in printed(turns[1:], own)


def test_no_report_of_replies_speaks_of_states_or_slots() -> None:
    turn = answered(OTHER, "Tuesday / Friday")
    report = build_report([turn], SETTINGS, INFO)
    assert report["outcome"] == {"kind": "reply", "compared": "numbers,polarity"}
    pytest.importorskip("jinja2")
    lines = report_lines([turn], SETTINGS, INFO, verbosity=1)
    page = html_text(report).partition("<body>")[2].partition('<script type="application')[0]
    # Settings are listed by their names, which are those of all options.
    page = page.partition("<h3>Settings</h3>")[0]
    texts = ["\n".join(line.text for line in lines), markdown_text(views_of(report)), page]
    for text in texts:
        for word in ("belief", "slot", "ontology", "tracker", "accuracy"):
            assert word not in text.lower(), (word, text)
        assert "Friday." in text
    assert "right replies 100.00 % of the clean replies agree with the recorded ones" in texts[0]


def test_pages_have_both_replies_side_by_side() -> None:
    turn = answered(OTHER, "Tuesday / Friday")
    ((before, after, why),) = reply_pairs(turn, turn.variants[0].changed_slots)
    assert before == ["It will be with you on ", ("Tuesday.", "")]
    assert after == ["It will be with you on ", ("", "Friday.")]
    assert why == ["differs: Tuesday / Friday"]


def test_redacted_replies_are_not_read() -> None:
    hidden = redact_turn(answered(OTHER, "Tuesday / Friday"))
    assert "Tuesday" not in repr(hidden)
    assert "Friday" not in repr(hidden)
    alike = redact_turn(answered(CLEAN.replace("Tuesday", "Mondays")))
    assert "same again" not in explain(alike, SETTINGS, command=None, verbose=True)


def spread(*turns: TurnResult) -> list[tuple[float, ...]]:
    return tally_results(SpreadTally(), turns).rows()


def test_its_own_spread_is_told_before_violations_are() -> None:
    turns = [
        replace(answered(CLEAN), id=f"t{number}", own=Spread(3, kinds, far, far), reason=reason)
        for number, (kinds, far, reason) in enumerate(
            [(1, 0.1, ""), (1, 0.2, ""), (2, 0.6, ""), (3, 1.0, UNSTABLE)]
        )
    ]
    texts = [
        text
        for text, _ in spread_texts(
            spread(*turns, turns[0]), "numbers,words<=0.5", SETTINGS.tracker
        )
    ]
    assert texts[0].startswith(
        "4 clean turns, each asked 3 times or more: all replies agree for 2, and differ for 1; 1"
    )
    assert "median 0.40, at most 1.00 in 95 % of the turns (0.5 allowed)" in texts[1]
    assert "in 50.00 % of the turns: with threshold=1" in texts[2]
    plain = [replace(turn, own=Spread(3, 1)) for turn in turns]
    assert len(list(spread_texts(spread(*plain), "exact", SETTINGS.tracker))) == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"repeatable": True}, "--dst-repeatable"),
        ({"error_rate": "no"}, "--dst-error-rate=no"),
        ({}, "the bot declares"),
    ],
)
def test_a_spread_that_is_not_measured_names_its_reason(
    options: dict[str, Any], reason: str
) -> None:
    own = Settings.of(model="my_bot:reply", outcome="reply", **options).tracker
    ((text, _),) = spread_texts(spread(answered(CLEAN)), "exact", own)
    reasons = ("--dst-repeatable", "--dst-error-rate=no", "the bot declares")
    assert [one for one in reasons if one in text] == [reason]


WORDS = st.lists(st.sampled_from(["it", "opens", "at", "nine.", "ten.", "\n", "no"]), max_size=12)


@given(WORDS, WORDS)
def test_differences_lead_from_one_reply_to_the_other(one: list[str], other: list[str]) -> None:
    before, after = " ".join(one), " ".join(other)
    edits = differences(before, after)
    assert not edits or apply_edits(before, edits) == after
    assert differences(before, before) == ()
