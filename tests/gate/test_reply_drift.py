"""Clean replies of two builds: what says the same has not changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from gate_cases import Contents, build, judged_figure, saved, totals_of

from pytest_dstfuzz.campaign.figures import tally_results
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.comparisons.comparison import Comparison, ComparisonResult
from pytest_dstfuzz.comparisons.registry import DEFAULT, comparison_by_name
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.calls import reply_outcome
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, Exchange
from pytest_dstfuzz.gate.baseline import (
    Baseline,
    Session,
    campaign_identity,
    changes,
    make_baseline,
)
from pytest_dstfuzz.gate.judge import judge
from pytest_dstfuzz.gate.pairing import judge_drift, pair_up
from pytest_dstfuzz.gate.verdict import Gates, right_answers
from pytest_dstfuzz.kinds.replies import REPLIES
from pytest_dstfuzz.totals.troubles import AnswersTally

NUMBERS = comparison_by_name("numbers", Settings().reply)
FACTS = comparison_by_name(DEFAULT, Settings().reply)


def one_answer(turns: Iterable[TurnResult]) -> str:
    return tally_results(AnswersTally(), turns).text


def replied(*texts: str, right: str | None = None) -> dict[str, list[TurnResult]]:
    groups = build(*("h" for _ in texts))
    label = None if right is None else reply_outcome(right)
    return {
        "only": [
            replace(
                turn,
                clean_state=reply_outcome(text),
                label=label,
                outcome_kind="reply",
                right=None if right is None else right.split()[-1] == text.split()[-1],
            )
            for turn, text in zip(groups["only"], texts, strict=True)
        ]
    }


def test_a_reply_in_other_words_is_no_drift() -> None:
    old = replied("It opens at 9", "It costs 30", "Line 7")
    new = replied("We open at 9", "It costs 31", "Take line 7")
    pairing = pair_up(saved(old), new, Contents(new), NUMBERS)
    drift = pairing.clean.drift()
    assert [pair.after for pair in drift.moved] == [{"reply": "It costs 31"}]
    assert len(pair_up(saved(old), new, Contents(new)).clean.drift().changed) == 3


def test_what_is_kept_back_is_compared_by_equality() -> None:
    old, new = replied("It opens at 9", "Line 7"), replied("We open at 9", "Line 7")
    hidden = make_baseline(old, {}, "mybot", Contents(old), hidden=True)
    drift = pair_up(hidden, new, Contents(new), NUMBERS).clean.drift()
    assert len(drift.changed) == 1
    assert "(--dst-redact), so they are compared only by equality" in reason(hidden, new)


def test_a_comparison_that_a_fixture_gives_is_told_apart_from_that_of_the_options() -> None:
    old, new = replied("It opens at 9", "Line 7"), replied("It opens at 10", "Line 7")
    told = "compared by numbers, as the options say, and not by same, as a test does"
    assert told in reason(saved(old), new, "numbers", "same")
    assert "as a test does" not in reason(saved(old), new, "numbers")


def reason(before: Baseline, now: dict[str, list[TurnResult]], *compared: str) -> str:
    """Return what a gate says of the clean replies."""
    session = Session(
        groups=now,
        totals=totals_of(now),
        campaign=before.campaign,
        contents=Contents(now),
        seed=0,
        comparison=NUMBERS,
        compared=frozenset(compared),
    )
    found = judge(session, Gates(), before)
    return next(one.reason for one in found.findings if one.gate == "max-clean-drift")


def test_recorded_replies_without_an_answer_excuse_nothing() -> None:
    """Such a reply may be the bot's own wording, which an option names."""
    handed = "A colleague takes over."
    old, new = replied("At 8", right=handed), replied(handed, right=handed)
    plain, own = (
        pair_up(saved(old), new, Contents(new), NUMBERS, fallback).clean.drift()
        for fallback in ((), ("colleague takes",))
    )
    assert (plain.excused, own.excused) == (True, False)


@pytest.mark.parametrize(
    ("before", "after", "excused"), [("At 8", "At 9", True), ("At 9", "At 8", False)]
)
def test_labels_excuse_replies_that_came_to_say_the_same(
    before: str, after: str, excused: bool
) -> None:
    old, new = replied(before, right="Until 9"), replied(after, right="Until 9")
    drift = pair_up(saved(old), new, Contents(new), NUMBERS).clean.drift()
    assert (len(drift.changed), drift.excused) == (1, excused)
    assert (drift.right_before, drift.right_after) == (not excused, excused)
    reason = judge_drift(drift, 1.0).reason
    assert "changed at 1 of 1 turns; right replies on the 1 turn with recorded answers" in reason


def test_a_label_that_allows_both_replies_excuses_no_drift() -> None:
    old, new = (
        replied(f"It costs {price} pounds", right="It costs 5 or 50 pounds") for price in (5, 50)
    )
    drift = pair_up(saved(old), new, Contents(new), FACTS).clean.drift()
    assert (len(drift.changed), drift.excused, drift.share) == (1, False, 1.0)


@pytest.mark.parametrize("relation", ["", " relation=politeness"])
@pytest.mark.parametrize(("own", "verdict"), [("other#1", "inconclusive"), ("", "pass")])
def test_a_text_that_a_test_compares_otherwise_is_not_known_to_be_the_same(
    own: str, verdict: str, relation: str
) -> None:
    names = [f"tests[] compare={own or NUMBERS.identity}{relation}"]
    if relation:  # The first relation compares as the run does.
        names.insert(0, f"tests[] compare={NUMBERS.identity}")
    old, new = (
        {name: replied(text)["only"] for name in names}
        for text in ("It opens at 9", "We open at 9")
    )
    drift = pair_up(saved(old), new, Contents(new), NUMBERS).clean.drift()
    assert not drift.changed
    assert judge_drift(drift, 0.0).verdict == verdict


class ByFirstMessage(Comparison):
    """Takes all answers for equal, unless the dialogue began with a greeting."""

    name = "by-first-message"

    def compare(self, path: str, before: str, found: str, asked: Context) -> ComparisonResult:
        del path
        return ComparisonResult(before == found or asked.exchanges[0].user != "hi")


@pytest.mark.parametrize(("first", "changed"), [("hi", 1), ("bye", 0)])
def test_a_comparison_knows_the_whole_context_of_a_clean_answer(first: str, changed: int) -> None:
    old, new = replied("It opens at 9"), replied("It opens at 10")
    whole = Context((Exchange("", first), Exchange("Yes?", "hello")))
    found = pair_up(saved(old), new, Contents(new), ByFirstMessage(), (), lambda *_: whole)
    assert len(found.clean.drift().changed) == changed


def test_labels_excuse_nothing_if_a_test_has_its_own_patterns_of_fallbacks() -> None:
    excused = []
    for own in ("", " fallback=colleague"):
        handed = "A colleague takes over."
        old, new = (
            {f"tests[]{own} compare={NUMBERS.identity}": replied(text, right=handed)["only"]}
            for text in ("At 8", handed)
        )
        excused.append(pair_up(saved(old), new, Contents(new), NUMBERS).clean.drift().excused)
    assert excused == [True, False]


def test_limits_of_right_replies_speak_of_recorded_answers() -> None:
    found = judged_figure("min-accuracy", 0.5, right_answers(1, 4, REPLIES))
    assert found.reason == (
        "the share of right replies of the clean questions 25.00 % (1 of 4 turns with "
        "recorded answers) is under the limit of 50.00 %"
    )
    assert judged_figure("min-accuracy", 0.5, right_answers(0, 0, REPLIES)).reason == (
        "there is no share of right replies: no tested turn has a recorded answer"
    )


def test_runs_with_other_comparisons_are_other_campaigns() -> None:
    data = DialogueSet("shop", "test", ())
    settings = Settings.of(outcome="reply")
    words = {"lexicon": "", "policy": "", "noise": ""}
    replies = campaign_identity(settings, data, **words, compared=[NUMBERS.identity])
    other = comparison_by_name("exact", settings.reply)
    exact = campaign_identity(settings, data, **words, compared=[other.identity])
    states = campaign_identity(Settings(), data, **words)
    assert "compare" not in states
    assert changes(replies, exact) == ["compare: numbers in the baseline, exact now"]
    assert any("outcome" in change for change in changes(states, replies))


def test_a_bot_with_one_reply_to_everything_is_told() -> None:
    turns = replied(*["I cannot help."] * 30)["only"]
    assert "are the same reply;" in one_answer(turns)
