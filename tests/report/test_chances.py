"""Estimated failures, and how likely texts are, where people see them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from pytest_dstfuzz.campaign.figures import EstimatedFailures
from pytest_dstfuzz.campaign.results import ConversationTurn, TurnResult
from pytest_dstfuzz.campaign.summary import Summary, summarise
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.report.github import markdown_text
from pytest_dstfuzz.report.html.page import html_text
from pytest_dstfuzz.report.json_report import RunInfo, build_report, report_turns
from pytest_dstfuzz.report.page import StyledLine
from pytest_dstfuzz.report.redact import redact_turn
from pytest_dstfuzz.report.screen import screen_lines
from pytest_dstfuzz.report.terminal import report_lines
from pytest_dstfuzz.report.view import views_of
from pytest_dstfuzz.report.weaknesses import likely_text, user_turns
from pytest_dstfuzz.totals.totals import Totals

INFO = RunInfo("multiwoz21", "test", "multiwoz", "original", 999, 7372)
NATURAL = Settings.of(model="trade", validity="natural", search="noise")


def lines(results: list[TurnResult], settings: Settings = NATURAL, **more: Any) -> list[StyledLine]:
    return report_lines(results, settings, INFO, **{"width": 200, **more})


def starting(given: list[StyledLine], start: str) -> StyledLine:
    (line,) = [line for line in given if line.text.startswith(start)]
    return line


def with_expected(results: list[TurnResult], **changed: Any) -> Summary:
    summary = summarise(results)
    assert isinstance(summary.estimated_failures, EstimatedFailures)
    return replace(summary, estimated_failures=replace(summary.estimated_failures, **changed))


def test_the_terminal_has_the_figure(sampled: list[TurnResult]) -> None:
    shown = lines(sampled)
    line = starting(shown, "estimated failures")
    # One turn of ten fails in one of its five outcomes: 2 of 1,000.
    assert line.text.startswith("estimated failures  2.0 of 1,000 user turns (95 % interval 0.")
    assert line.text.endswith("), at a slip rate of 2 % (typing,casual); effective sample size 40")
    assert line.style == "bad"
    rate = starting(shown, "failure rate").text
    assert "of the valid variants, all with slips; likely and unlikely variants count" in rate
    assert "5 variants a turn; search noise" in starting(shown, "how").text
    assert not any("locked word or" in line.text for line in shown)


def test_more_words_say_what_is_taken_out(sampled: list[TurnResult]) -> None:
    text = " ".join(line.text.strip() for line in lines(sampled, verbosity=1))
    assert (
        "of 1,000 user turns 80.0 have a slip that this run does not make, or in a locked word, "
        "and are left out. Of 1,000 others 100.0 have slips; 20.0 of these were not judged (too "
        "much edited, or no answer) and count as no failure"
    ) in text


def test_the_line_is_as_wide_as_the_terminal(sampled: list[TurnResult]) -> None:
    for width in (40, 63, 80):
        shown = lines(sampled, width=width, verbosity=1, encoding="ascii")
        assert max(len(line.text) for line in shown) <= width


def test_one_line_has_it_too(sampled: list[TurnResult]) -> None:
    (line,) = lines(sampled, verbosity=-1)
    assert ", estimated failures 2.0 of 1,000 user turns (0." in line.text


def test_a_search_without_a_density_has_no_figure(found: list[TurnResult]) -> None:
    assert user_turns(summarise(found)) is None
    report = build_report(found, NATURAL, INFO)
    assert "| estimate |" not in markdown_text(views_of(report))


def test_the_reason_stands_where_there_is_no_figure(sampled: list[TurnResult]) -> None:
    few = sampled[:8]
    line = starting(lines(few), "estimated failures")
    assert line.text == (
        "estimated failures  n/a: needs a sample of 30 variants, got 16: test more turns, or more "
        "variants of each"
    )
    assert line.style == "warning"
    assert "estimated failures" not in lines(few, verbosity=-1)[0].text
    assert "| estimate | none&#58; needs a sample of 30 variants, got 16" in markdown_text(
        views_of(build_report(few, NATURAL, INFO))
    )


def test_few_dialogues_and_no_failure(sampled: list[TurnResult]) -> None:
    held = [replace(turn, variants=sampled[1].variants, outcome="held") for turn in sampled]
    line = starting(lines(held), "estimated failures")
    assert line.text.startswith("estimated failures  0 of 1,000 user turns (95 % interval 0 to ")
    assert line.style == "good"
    one = [replace(turn, dialogue_id="same") for turn in sampled]
    text = starting(lines(one), "estimated failures").text
    assert "2.0 of 1,000 user turns (no interval: needs 6 dialogues), at" in text


def test_without_a_noise_model_nothing_is_said(results: list[TurnResult]) -> None:
    assert user_turns(summarise(results)) is None
    report = build_report(results, Settings(), INFO)
    assert "| estimate |" not in markdown_text(views_of(report))


def test_figures_are_the_same_where_texts_are_kept_back(
    sampled: list[TurnResult], found: list[TurnResult]
) -> None:
    for turns in (sampled, found):
        kept_back = summarise([redact_turn(turn) for turn in turns])
        assert kept_back.estimated_failures == summarise(turns).estimated_failures


def test_a_duplicate_counts_as_the_variant_whose_text_it_has(sampled: list[TurnResult]) -> None:
    first = sampled[0]
    held, failed, _ = first.variants
    # Not shown, the texts of both look the same.
    like = replace(held, text="i am laevnig on friday from ely", log_probability=-7.0)
    copy = replace(failed, index=2, outcome="duplicate", valid=False, changed_slots=(), cause=None)
    turns = [replace(first, variants=(like, failed, copy)), *sampled[1:]]
    for given in (turns, [redact_turn(turn) for turn in turns]):
        expected = summarise(given).estimated_failures
        assert expected is not None
        assert expected.per_1000 == pytest.approx(3.0)


def test_a_report_tells_the_figure_of_its_run(sampled: list[TurnResult]) -> None:
    assert sampled[0].noise is not None
    rare = replace(sampled[0].noise, distorted=0.000012345678, slip_rate=1e-6)
    turns = [
        replace(
            turn,
            noise=rare,
            variants=tuple(replace(one, weight=1.23456789e-6) for one in turn.variants),
        )
        for turn in sampled
    ]
    report = json.loads(json.dumps(build_report(turns, NATURAL, INFO)))
    assert report["turns"][0]["variants"][0]["weight"] == 1.23457e-6
    then, now = summarise(turns).estimated_failures, summarise(report_turns(report))
    assert then is not None
    assert now.estimated_failures is not None
    assert now.estimated_failures.per_1000 == pytest.approx(then.per_1000, rel=1e-5)
    assert "| estimate | &#60; 0.01 of 1,000 user turns with slips" in markdown_text(
        views_of(report)
    )


def test_a_sampled_violation_says_how_many_turns_it_stands_for(broken: TurnResult) -> None:
    one = broken.violations[0]
    weighed = replace(one, weight=0.038)
    assert likely_text(weighed) == "drawn by the noise model; stands for 38.0 of 1,000"
    assert likely_text(one) == ""


def in_conversations(turns: list[TurnResult]) -> list[TurnResult]:
    """Return turns that were also run in two conversations each; half of the second ones fail."""
    made = []
    for place, turn in enumerate(turns):
        change = turn.violations[0].changed_slots if turn.violations else ()
        kept = ConversationTurn(number=0, text=turn.user, outcome="vacuous")
        outcome: Any = "held" if place % 2 else "violation"
        other = ConversationTurn(
            number=1,
            text=turn.user,
            outcome=outcome,
            changed_slots=change,
            in_locked=place % 4 == 0,
        )
        made.append(replace(turn, conversations=(kept, other), conversation_calls=1))
    return made


def test_whole_conversations_stand_in_all_reports(sampled: list[TurnResult]) -> None:
    turns = in_conversations(sampled)
    report = json.loads(json.dumps(build_report(turns, NATURAL, INFO)))
    read = {turn.id: turn.conversations for turn in report_turns(report)}
    assert read == {turn.id: turn.conversations for turn in turns}
    found = report["summary"]["estimated_failures"]["conversation"]
    assert (found["per_1000"], found["broken_share"]) == (250.0, 0.25)
    assert (found["in_locked_per_1000"], found["conversations"]) == (125.0, 40)
    assert report["summary"]["conversation_calls"] == 20
    totals = Totals.of(turns)
    screen = " ".join(line.text.strip() for line in screen_lines(turns, NATURAL, INFO, totals))
    more = " ".join(line.text.strip() for line in lines(turns, verbosity=1))
    page, markdown = unescape(html_text(report)), unescape(markdown_text(views_of(report)))
    for text in (screen, more, page, markdown):
        assert re.search(r"at all turns: 250\.0 of 1,000 .* in 25 % of the conversations", text)
    assert "20 more for whole conversations" in screen
    for text in (more, page):
        assert "125.0 after a slip in a locked word, 125.0 after other slips alone" in text


def test_without_whole_conversations_reports_say_nothing_of_them(
    sampled: list[TurnResult],
) -> None:
    report = build_report(sampled, NATURAL, INFO)
    assert report["summary"]["estimated_failures"]["conversation"] is None
    totals = Totals.of(sampled)
    shown = screen_lines(sampled, NATURAL, INFO, totals)
    assert not any("conversation" in line.text for line in shown)
    assert "conversations" not in markdown_text(views_of(report))


def test_different_slip_rates_have_no_figure(sampled: list[TurnResult]) -> None:
    assert sampled[0].noise is not None
    other = replace(sampled[0].noise, slip_rate=0.05)
    mixed = [replace(sampled[0], noise=other), *sampled[1:]]
    text = starting(lines(mixed), "estimated failures").text
    assert text.endswith("n/a: tests have different noise models or slip rates")


def test_a_name_of_a_model_does_nothing_in_a_terminal(sampled: list[TurnResult]) -> None:
    totals = Totals.of(sampled)
    totals.first("").summary = with_expected(sampled, noise="\x1b[31mred")
    text = "\n".join(line.text for line in report_lines(sampled, NATURAL, INFO, totals=totals))
    assert "\x1b" not in text
    assert "<U+001B>[31mred" in text
