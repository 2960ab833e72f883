"""Weaknesses as reports show them: the JSON, the terminal, and what private dialogues leave."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import summarise
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.perturb.types import Edit
from pytest_dstfuzz.report.json_report import RunInfo, build_report
from pytest_dstfuzz.report.terminal import terminal_lines
from pytest_dstfuzz.report.weaknesses import weaknesses_json, without_texts
from pytest_dstfuzz.weaknesses.groups import find_weaknesses

LOST = "a word is mistyped, and the tracker loses a value that the utterance speaks of"
INFO = RunInfo("multiwoz21", "test", "multiwoz", "original", 999, 7372)


def shown(results: list[TurnResult], verbosity: int = 0) -> list[str]:
    lines = terminal_lines(
        summarise(results), results, Settings(), INFO, verbosity=verbosity, width=200
    )
    return [line.text for line in lines]


def kinds(broken: TurnResult, *operators: str) -> list[TurnResult]:
    """Return as many turns, each with the violation under an edit of another operator."""
    (violation,) = broken.violations
    found = []
    for number, operator in enumerate(operators):
        transformation, _, name = operator.partition("/")
        (edit,) = violation.edits
        edits = (replace(edit, transformation=transformation, operator=name),)
        turn = replace(broken, id=f"t{number}", dialogue_id=f"d{number}")
        found.append(replace(turn, variants=(replace(violation, edits=edits),)))
    return found


def test_the_entry_of_a_weakness(results: list[TurnResult]) -> None:
    (entry,) = build_report(results, summarise(results), Settings(), INFO)["weaknesses"]
    assert entry == {
        "id": "typo-text-lost-3bdef9",
        "description": LOST,
        "to_try": "train with typing errors in these words, or correct spelling in the input",
        "count": 1,
        "turns": 1,
        "expected_failures": None,
        "failing_mass": None,
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
    assert "        typo-text-lost-3bdef9" in verbose
    assert any(line.startswith("        to try: train with typing errors") for line in verbose)


def test_ten_are_shown_unless_all_are_asked_for(broken: TurnResult) -> None:
    operators = ("char_drop/any", "char_drop/full_stop", "char_replace/case", "word_drop/any")
    operators += ("word_insert/repeat", "word_insert/filler", "word_replace/synonym")
    operators += ("word_replace/texting",)
    several = kinds(broken, *operators)
    more = []
    (violation,) = broken.violations
    (changed,) = violation.changed_slots
    values = {"hotel-parking": "yes", "train-leaveat": "12:15", "hotel-area": "dontcare"}
    for slot, value in values.items():
        changes = (replace(changed, slot=slot, before=value),)
        turn = replace(broken, id=slot, dialogue_id=slot)
        more.append(replace(turn, variants=(replace(violation, changed_slots=changes),)))
    found = find_weaknesses([*several, *more])
    assert len(found) == len(operators) + len(more) == 11
    lines = shown([*several, *more])
    assert lines[0] == "11 weaknesses, by the turns that they break; the first 10, -v shows all"
    assert [line[:7] for line in lines if re.match(r" +\d+\. ", line)][-1] == "  10. a"
    assert shown([*several, *more], verbosity=1)[0] == "11 weaknesses, by the turns that they break"
    assert shown([*several, *more], verbosity=-1)[0].startswith("dstfuzz: 11 weaknesses, ")


def test_no_weakness_no_word(results: list[TurnResult]) -> None:
    held = [result for result in results if not result.violations]
    assert shown(held)[0].startswith("tested")
    assert build_report(held, summarise(held), Settings(), INFO)["weaknesses"] == []


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
    hidden = without_texts(found)
    assert [one.id for one in hidden] == [one.id for one in found]
    assert "copied-f2500d" in [one.id for one in hidden]
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
