"""Weaknesses as reports show them: the JSON, the terminal, and what private dialogues leave."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.kinds.belief_states import BELIEF_STATES
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.report.json_report import SCHEMA_PATH, RunInfo, build_report
from pytest_dstfuzz.report.packing import problems
from pytest_dstfuzz.report.redact import redact_turn
from pytest_dstfuzz.report.screen import screen_lines
from pytest_dstfuzz.report.terminal import report_lines
from pytest_dstfuzz.report.weaknesses import weaknesses_json
from pytest_dstfuzz.totals.totals import Totals
from pytest_dstfuzz.weaknesses.advice import to_try
from pytest_dstfuzz.weaknesses.groups import find_weaknesses
from tests.report.conftest import EARLIER

LOST = "slip in key word, value wrong"
INFO = RunInfo("multiwoz21", "test", "multiwoz", "original", 999, 7372)


def shown(results: list[TurnResult], verbosity: int = 0) -> list[str]:
    lines = report_lines(results, Settings(), INFO, verbosity=verbosity, width=200)
    return [line.text for line in lines]


#: Changes of different mechanisms where `leaving on friday` is mistyped.
KINDS = (
    ("hotel-area", "dontcare", None),
    ("hotel-type", None, "leaivng"),
    ("train-departure", "york", "london"),
    ("hotel-stars", "4", "5"),
    ("hotel-name", "worth house", "some lodge"),
    ("hotel-name", None, "lodge name north"),
    ("hotel-type", "motel", "hostel"),
    ("hotel-type", None, "motel"),
    ("hotel-type", "train", None),
    ("hotel-parking", "yes", None),
)


def kinds(broken: TurnResult) -> list[TurnResult]:
    """Return as many turns, each with the violation and another change."""
    (violation,) = broken.violations
    found = []
    for number, (slot, before, after) in enumerate(KINDS):
        changed = replace(violation.changed_slots[0], slot=slot, before=before, after=after)
        turn = replace(broken, id=f"t{number}", dialogue_id=f"d{number}")
        found.append(replace(turn, variants=(replace(violation, changed_slots=(changed,)),)))
    return found


def test_the_entry_of_a_weakness(results: list[TurnResult]) -> None:
    (entry,) = build_report(results, Settings(), INFO)["weaknesses"]
    assert entry == {
        "id": "slip-in-key-word-value-wrong",
        "description": LOST,
        "to_try": to_try(LOST, BELIEF_STATES),
        "count": 1,
        "turns": 1,
        "estimated_failures": None,
        "accepted": None,
        "mended": None,
        "words": ["leaving"],
        "slots": ["train-day"],
        "example": {
            "id": "multiwoz21-test-SNG0073-t1-v1",
            "turn": "multiwoz21-test-SNG0073-t1",
            "variant": 1,
            "said": "i am [-leaving-]{+leaivng+} on friday from ely",
            "changed": ["train-day: friday -> none"],
        },
        "members": ["multiwoz21-test-SNG0073-t1-v1"],
    }


def test_the_terminal_begins_with_them(results: list[TurnResult]) -> None:
    lines = shown(results)
    assert lines[:4] == [
        "1 weakness, by the turns that they break",
        f"   1. {LOST} (1 turn, 1 violation)",
        "        i am [-leaving-]{+leaivng+} on friday from ely",
        "        train-day: friday -> none",
    ]
    verbose = shown(results, verbosity=1)
    assert "        words: leaving; slots: train-day" in verbose
    assert "        slip-in-key-word-value-wrong" in verbose
    assert any(line.startswith("        to try: rule: match") for line in verbose)


def test_ten_are_shown_unless_all_are_asked_for(broken: TurnResult) -> None:
    turns = [broken, *kinds(broken)]
    assert len(find_weaknesses(turns)) == len(turns) == 11
    lines = shown(turns)
    assert lines[0] == "11 weaknesses, by the turns that they break; the first 10, -v shows all"
    assert [line[:7] for line in lines if re.match(r" +\d+\. ", line)][-1].startswith("  10.")
    assert shown(turns, verbosity=1)[0] == "11 weaknesses, by the turns that they break"
    assert shown(turns, verbosity=-1)[0].startswith("dstfuzz: 11 weaknesses, ")


def test_no_weakness_no_word(results: list[TurnResult]) -> None:
    held = [result for result in results if not result.violations]
    assert shown(held)[0].startswith("tested")
    assert build_report(held, Settings(), INFO)["weaknesses"] == []


def test_an_earlier_turn_that_is_to_blame_is_shown(broken: TurnResult) -> None:
    one = replace(broken.violations[0], cause="context")
    (entry,) = weaknesses_json(find_weaknesses([replace(broken, variants=(one,))]))
    assert "(turn 0: hello i need a [-train-]{+ttrain+})" in entry["example"]["said"]


def test_private_dialogues_are_grouped_by_what_was_said_and_do_not_show_it(
    broken: TurnResult,
) -> None:
    (violation,) = broken.violations
    copied = replace(violation.changed_slots[0], slot="train-departure", after="leaivng")
    other = replace(
        violation,
        index=5,
        edits=(Edit("word_drop", "any", 0, 2, "i ", ""),),
        text=broken.user[2:],
    )
    variants = (replace(violation, changed_slots=(copied,)), other)
    results = [replace(broken, variants=variants)]
    found = find_weaknesses(results)
    hidden = Totals.of(results, redact=redact_turn).weaknesses
    assert [one.id for one in hidden] == [one.id for one in found]
    assert "misspelt-value-copied" in [one.id for one in hidden]
    told = json.dumps(weaknesses_json(hidden))
    for word in ("leaving", "leaivng", "friday", "ely"):
        assert word not in told
        assert word in json.dumps(weaknesses_json(found))
    assert [one.example.id for one in hidden] == [one.example.id for one in found]


@pytest.mark.parametrize("change", [None, "x"])
def test_ids_do_not_hold_what_was_said(broken: TurnResult, change: str | None) -> None:
    (violation,) = broken.violations
    changed = replace(violation.changed_slots[0], after=change)
    (found,) = find_weaknesses(
        [replace(broken, variants=(replace(violation, changed_slots=(changed,)),))]
    )
    assert "friday" not in found.id + found.description + found.to_try


@pytest.mark.parametrize(("others", "shown"), [(3, True), (4, False)])
def test_the_screen_names_a_corrector_that_mends_a_quarter(
    broken: TurnResult, others: int, shown: bool
) -> None:
    (slip,) = broken.violations
    # Words cannot be restored if they are gone.
    gone = replace(
        slip,
        text="i am on friday from ely",
        edits=(Edit("word_drop", "any", 5, 13, "leaving ", ""),),
        context=(EARLIER,),
        context_edits=(),
    )
    results = [
        replace(broken, id=f"t{n}", dialogue_id=f"d{n}", variants=(gone if n else slip,))
        for n in range(others + 1)
    ]
    totals = Totals(words="")
    for one in results:
        totals.add(one)
    text = " ".join(line.text for line in screen_lines(results, Settings(), INFO, totals))
    told = f"restores 1 of {others + 1} violations and alters 0 of {others + 1} clean turns"
    assert (told in " ".join(text.split())) == shown
    report = build_report(results, Settings(), INFO, totals=totals)
    assert report["spelling_corrector"] == {
        "mended": 1, "violations": others + 1, "altered": 0, "turns": others + 1,
    }  # fmt: skip
    assert problems(report, json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))) == []
