"""Each relation by itself: two sides that nothing adds up, and how a failed rewrite reads."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import summarise
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.report.explain import explain
from pytest_dstfuzz.report.github import markdown_text
from pytest_dstfuzz.report.html.page import html_text
from pytest_dstfuzz.report.json_report import SCHEMA_PATH, RunInfo, build_report, report_turns
from pytest_dstfuzz.report.packing import problems
from pytest_dstfuzz.report.page import TerminalPage
from pytest_dstfuzz.report.redact import redact_turn
from pytest_dstfuzz.report.terminal import report_lines
from pytest_dstfuzz.report.view import views_of
from pytest_dstfuzz.report.weaknesses import show_weaknesses
from pytest_dstfuzz.totals.totals import Totals
from pytest_dstfuzz.weaknesses.groups import find_weaknesses
from tests.report.rewritten import FACTS, swap, turn, twice

INFO = RunInfo("travel", "test", "plain", "jsonl", 12, 12, relations=FACTS)
SETTINGS = Settings.of(model="bot", relation="metamorphic,value-swap,duplicate", seed=3)


@pytest.fixture
def mixed(results: list[TurnResult]) -> list[TurnResult]:
    """Three turns under metamorphic, eight under value-swap, two dialogues under duplicate."""
    why = "the slot already had the value"
    swapped = [
        turn(swap(0, destination="ely"), swap(1), dialogue=f"d{number}") for number in range(5)
    ]
    wrong = turn(swap(0, destination="ely", day="sunday"), dialogue="d5")
    apart = [turn(dialogue=f"d{number}", reason=why) for number in (6, 7)]
    rounds = [
        turn(twice(0, **found), dialogue=name, relation="duplicate", side="should-not-change")
        for name, found in (("d0", {}), ("d1", {"day": "sunday"}))
    ]
    return [*rounds, *swapped, wrong, *apart, *results]


def lines(results: list[TurnResult], settings: Settings = SETTINGS, **how: Any) -> list[str]:
    shown = report_lines(results, settings, INFO, **how)
    return [line.text for line in shown]


def row(text: list[str], name: str) -> list[str]:
    """Return the figures of a relation in the table of its side."""
    (found,) = [line.split() for line in text if line.startswith(f"  {name} ")]
    return found[1:]


def test_sections_are_in_the_order_of_the_names(mixed: list[TurnResult]) -> None:
    assert [one.name for one in Totals.of(mixed).sections("value-swap,gold")] == [
        *("value-swap", "duplicate", "metamorphic")
    ]
    swapped = Totals.of(mixed, FACTS).first("value-swap")
    assert (swapped.applicable, swapped.inapplicable) == (6, {"the slot already had the value": 2})
    assert swapped.failures == {"changed": 0, "stuck": 5, "partial": 0, "other": 1}
    assert swapped.over_stability == 5 / 11
    assert swapped.summary.failure_rate == 6 / 11
    (plain,) = Totals.of(one for one in mixed if one.relation == "metamorphic").sections("")
    assert plain.over_stability is None


def test_the_two_sides_stand_side_by_side(mixed: list[TurnResult]) -> None:
    text = lines(mixed, width=110)
    sensitive = next(n for n, line in enumerate(text) if line.startswith("over-sensitive"))
    stable = next(n for n, line in enumerate(text) if line.startswith("over-stable"))
    assert [line.split()[0] for line in text[sensitive + 1 : stable - 1]] == [
        *("relation", "metamorphic", "duplicate")
    ]
    assert [line.split()[0] for line in text[stable + 1 : stable + 3]] == ["relation", "value-swap"]
    assert row(text, "value-swap")[:8] == ["6", "11", "5", "5", "0", "1", "54.55", "%"]
    # The tracker failed under metamorphic, so that errors have a column on that side.
    assert row(text, "duplicate")[:7] == ["2", "2", "1", "1", "0", "50.00", "%"]
    assert "value-swap (should change): the slot takes the new value" in text
    assert "inapplicable  2 x the slot already had the value" in text
    assert "rewrites      11 = 5 held + 5 stuck + 1 other" in text
    assert any(line.startswith("over-stable   45.45 % of the rewrites left the") for line in text)


@pytest.fixture
def failed() -> list[TurnResult]:
    """Eight turns of value-swap at which the tracker failed on each rewrite."""
    why = "ValueError: not"
    broken = replace(swap(0), outcome="error", reason=why, failure=None, changed_slots=())
    return [turn(broken, dialogue=f"d{number}", outcome="error") for number in range(8)]


def test_what_got_no_answer_has_no_rate_and_did_not_hold(failed: list[TurnResult]) -> None:
    settings = Settings.of(model="bot", relation="value-swap")
    text = lines(failed, settings, width=110)
    assert text[text.index("value-swap (should change): the slot takes the new value") :][:5] == [
        "value-swap (should change): the slot takes the new value",
        "applicable    8 of 8 turns; tested in 8 dialogues",
        "rewrites      8 = 0 held + 8 errors",
        "failure rate  n/a: the tracker failed on every rewrite, so nothing could be judged",
        "",
    ]
    assert row(text, "value-swap") == ["8", "8", "0", "0", "0", "0", "8", "n/a", "n/a"]
    assert lines(failed, settings, verbosity=-1) == [
        "dstfuzz: value-swap: 0 violations in 0 of 8 turns; failure rate n/a, stuck n/a; 8 errors"
    ]
    summary = summarise(failed)
    assert summary.failure_rate_interval is summary.turn_failure_rate_interval is None
    report = build_report(failed, settings, INFO)
    assert report["relations"][0]["over_stability_interval"] is None
    page, short = html_text(report), markdown_text(views_of(report))
    assert "| relation | applicable | rewrites | held | stuck | partial | other | errors |" in short
    assert "| value-swap | 8 of 8 turns | 8 | 0 | 0 | 0 | 0 | 8 | n/a | n/a |" in short
    for shown in (page, html.unescape(short)):
        assert "could not be judged: the tracker failed each time" in shown
    assert '<th scope="col" class="number">errors</th>' in page


def test_the_headline_names_each_relation_under_which_the_tracker_failed(
    failed: list[TurnResult],
) -> None:
    held = turn(twice(0), relation="duplicate", side="should-not-change")
    settings = Settings.of(model="bot", relation="duplicate,value-swap")
    short = markdown_text(views_of(build_report([held, *failed], settings, INFO)))
    first = "0 of 2 relations are broken, and 8 variants got no answer"
    assert first in short.splitlines()[0]
    assert "| relation | value-swap&#58; the tracker failed each time |" in short
    assert "| relation | duplicate&#58; 0 violations in 0 of 1 dialogue |" in short


def test_what_a_budget_left_out_is_said_by_relation(mixed: list[TurnResult]) -> None:
    why = "the budget of 8 seconds is used up"
    skipped = [turn(dialogue=f"e{n}", outcome="skipped", reason=why) for n in (0, 1)]
    for number, one in enumerate(skipped):
        skipped[number] = replace(one, clean_state=None)
    info = replace(INFO, ended=why)
    quiet, text = (
        [
            line.text
            for line in report_lines(
                [*mixed, *skipped],
                SETTINGS,
                info,
                width=300,
                verbosity=verbosity,
            )
        ]
        for verbosity in (-1, 0)
    )
    assert (
        "stuck 45.45 %; applied to 6 of 8 turns; main reason for the others (2): the slot"
        in quiet[1]
    )
    assert quiet[1].endswith("; 2 turns not tested")
    assert quiet[-2:] == [
        f"dstfuzz: not tested: 2 turns of 2 dialogues: {why}",
        (
            "dstfuzz: not tested: by relation value-swap 2; relations run in the given order, "
            "so name the most important ones first"
        ),
    ]
    assert f"not tested    2 turns of 2 dialogues: {why}" in text
    assert any(line.startswith("not tested    by relation value-swap 2; ") for line in text)
    assert any("6 of 8 turns (not tested: 2 turns); tested in" in line for line in text)
    # One searched relation has it in its line.
    settings = Settings.of(model="bot")
    plain = [one for one in mixed if one.relation == "metamorphic"]
    (line,) = report_lines(plain, settings, info, verbosity=-1)
    assert line.text.endswith(f" ({why})")


def test_words_beside_what_the_user_adds_are_no_words_of_a_weakness() -> None:
    added = replace(swap(0), edits=(Edit("turn-back", "same-turn", 28, 28, "", ". Actually, ely"),))
    added = replace(added, text="a train to norwich on friday. Actually, ely")
    assert find_weaknesses([turn(added)])[0].words == ()
    assert find_weaknesses([turn(swap(0))])[0].words == ("norwich",)


def test_nothing_adds_up_both_sides(mixed: list[TurnResult]) -> None:
    """Neither the page nor the JSON has a figure over relations of both sides."""
    runs = [one.summary for one in Totals.of(mixed).sections("")]
    rows = ("valid", "violations", "generated")
    report = build_report(mixed, SETTINGS, INFO)
    shown = " ".join(lines(mixed, width=110))
    for name in rows:
        added = sum(getattr(one, name) for one in runs)
        assert added not in [each["summary"][name] for each in report["relations"]]
        assert report["summary"][name] != added
    mean = sum(one.failure_rate or 0 for one in runs) / len(runs)
    blended = sum(one.violations for one in runs) / sum(one.valid for one in runs)
    for rate in (mean, blended):
        assert f"{100 * rate:.2f} %" not in shown
        assert f"{rate:.4f}" not in json.dumps({**report, "turns": [], "settings": {}})


def test_a_side_without_a_relation_says_so(mixed: list[TurnResult]) -> None:
    swapped = [one for one in mixed if one.relation == "value-swap"]
    text = lines(swapped, Settings.of(model="bot", relation="value-swap"))
    place = next(n for n, line in enumerate(text) if line.startswith("over-sensitive"))
    assert text[place + 1].startswith("  not tested: no relation of this side was named")


@pytest.mark.parametrize("width", [40, 80, 100])
def test_no_line_is_too_long(mixed: list[TurnResult], width: int) -> None:
    assert all(len(line) <= width for line in lines(mixed, width=width))


def test_quiet_is_a_line_each(mixed: list[TurnResult]) -> None:
    assert len(lines(mixed, verbosity=-1)) == 3
    assert lines(mixed, verbosity=-1)[1] == (
        "dstfuzz: value-swap: 6 violations in 6 of 6 turns; failure rate 54.55 % (13.4 to "
        "91.3 %), stuck 45.45 %; applied to 6 of 8 turns; main reason for the others (2): the "
        "slot already had the value"
    )


def test_one_searched_relation_reads_as_ever(results: list[TurnResult]) -> None:
    given = (results, Settings.of(model="bot"), INFO)
    assert report_lines(*given) == report_lines(*given)


def test_the_json_has_each_relation(mixed: list[TurnResult]) -> None:
    report = build_report(mixed, SETTINGS, INFO)
    assert [one["name"] for one in report["relations"]] == [
        "metamorphic",
        "value-swap",
        "duplicate",
    ]
    assert report["summary"] == report["relations"][0]["summary"]
    assert report["ledger"] == report["relations"][0]["ledger"]
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    assert problems(json.loads(json.dumps(report)), schema) == []
    swapped = report["relations"][1]
    assert (swapped["side"], swapped["unit"], swapped["edits"]) == ("should-change", "turn", "own")
    assert report["relations"][2]["unit"] == "dialogue"
    again = {one.id + one.relation: one for one in report_turns(report)}
    assert (
        again["travel-test-d5-t0value-swap"].variants[0].expected == mixed[7].variants[0].expected
    )
    assert again["travel-test-d1-t0duplicate"].variants[0].moves == mixed[1].variants[0].moves


def test_weaknesses_that_nobody_knows_the_frequency_of_have_a_list_of_their_own(
    mixed: list[TurnResult],
) -> None:
    first, *others = find_weaknesses(mixed)
    page = TerminalPage(200)
    show_weaknesses(page, [replace(first, expected=2.0), *others], verbose=False)
    kinds = (
        "1 weakness, by estimated failures and broken turns",
        "3 weaknesses from edits with an unknown frequency among users, by the turns",
    )
    text = [line.text for line in page.lines]
    heads = [line for line in text if line.startswith(kinds)]
    assert [line.startswith(kind) for line, kind in zip(heads, kinds, strict=True)] == [True, True]
    assert [line[:6] for line in text if line[:6].strip() in ("1.", "2.")] == [
        *("   1. ", "   1. ", "   2. ")
    ]
    # Without such figures there is one order for all.
    assert lines(mixed)[0].startswith("4 weaknesses, by the turns that they break")


def test_a_rewrite_that_is_not_followed(mixed: list[TurnResult]) -> None:
    settings = Settings.of(relation="value-swap", seed=3)
    text = explain(mixed[2], settings, command="pytest -k it", verbose=True)
    page = Path(__file__).parents[2] / "docs" / "guides" / "report.md"
    assert text.partition("\n\n  seed 3")[0] in page.read_text(encoding="utf-8")
    assert text.splitlines() == [
        "1 of 2 rewrites is not followed at turn 0 of dialogue d0 (value-swap)",
        "",
        "  system:    (nothing yet)",
        "  user:      a train to norwich on friday",
        "  state:     train-day = friday, train-destination = norwich",
        "",
        "  Variant 1: train-destination: norwich -> ely",
        "    user:    a train to [-norwich-]{+ely+} on friday",
        "    slot               before   expected  found",
        "    train-destination  norwich  ely       norwich  stuck",
        "    train-day          friday   friday    friday",
        "",
        "  seed 3, clean context, value-swap relation",
        "  repeat with: pytest -k it --dst-variant=1",
    ]


def test_a_bystander_that_moved_is_marked(mixed: list[TurnResult]) -> None:
    text = explain(mixed[7], Settings.of(relation="value-swap"), command=None, verbose=True)
    assert "    train-day          friday   friday    sunday  changed" in text
    assert "    train-destination  norwich  ely       ely" in text


def test_rounds_that_moved_are_shown(mixed: list[TurnResult]) -> None:
    text = explain(
        mixed[1], Settings.of(relation="duplicate"), command=None, verbose=True
    ).splitlines()
    assert text[0] == "1 of 1 rewrite changes the belief state at turn 0 of dialogue d1 (duplicate)"
    place = text.index("    the tracker saw")
    assert text[place - 1 : place + 3] == [
        "  Variant 0: round 0 said twice",
        "    the tracker saw",
        *2 * ["      user:  a train to norwich on friday"],
    ]


def test_what_was_said_is_kept_back(mixed: list[TurnResult]) -> None:
    for one in mixed:
        shown = json.dumps(replace(redact_turn(one), id="", dialogue_id="").to_json())
        assert not any(word in shown for word in ("norwich", "ely", "friday", "sunday", "round"))
    text = explain(
        redact_turn(mixed[2]), Settings.of(relation="value-swap"), command=None, verbose=True
    )
    assert "    train-destination  xxxxxxx  yyy       xxxxxxx  stuck" in text
