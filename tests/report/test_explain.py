"""The text of a failed turn."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rewritten import twice

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.relations.relation import Move
from pytest_dstfuzz.report.explain import (
    explain,
    move_texts,
    repeat_command,
    shown_rounds,
    simplicity,
)

EXPECTED = """\
1 of 2 valid variants changes the belief state at turn 1 of dialogue SNG0073

  system:    which day?
  user:      i am leaving on friday from ely
  state:     train-day = friday, train-departure = ely

  Variant 1
    edits:   i am [-leaving-]{+leaivng+} on friday from ely
    seen as: i am leaivng on friday from ely
      char_replace/swap: "vi" -> "iv" at 8
    turn 0:  hello i need a [-train-]{+ttrain+}
    changed: train-day: friday -> none
    cause:   the edits of this turn
    rates:   words 0.000, characters 0.011

  seed 7, natural profile, hybrid attack, random search, metamorphic relation
  repeat with: pytest 'tests/test_x.py::test_state[a]' --dst-seed=7 --dst-variant=1"""


def test_a_violation(broken: TurnResult) -> None:
    command = "pytest 'tests/test_x.py::test_state[a]' --dst-seed=7"
    assert explain(broken, Settings.of(seed=7), command=command, verbose=True) == EXPECTED


def test_a_run_of_one_variant_is_repeated_with_one_number() -> None:
    command = repeat_command("pytest --dst-variant=1 --dst-seed=3", "a-t1", 2)
    assert command == "pytest --dst-seed=3 --dst-variant=2 -k '[a-t1]'"


def test_without_command(broken: TurnResult) -> None:
    text = explain(broken, Settings(), command=None)
    assert "repeat with" not in text


def test_the_first_turn_has_no_system_line(broken: TurnResult) -> None:
    assert "system:    (nothing yet)" in explain(
        replace(broken, system=""), Settings(), command=None, verbose=True
    )


def test_an_error_of_a_variant(results: list[TurnResult]) -> None:
    text = explain(results[0], Settings(), command=None, verbose=True)
    assert text.startswith("The tracker failed on 1 of 3 valid variants at turn 0 of")
    assert "error:   ValueError: no" in text


def test_an_error_on_the_clean_turn(broken: TurnResult) -> None:
    failed = replace(broken, variants=(), outcome="error", reason="Boom: x", clean_state=None)
    text = explain(failed, Settings(), command=None)
    assert text.startswith("The tracker failed on turn 1 of dialogue SNG0073: Boom: x")
    assert "state:" not in text


@pytest.mark.parametrize(("reason", "end"), [("", "skipped"), ("budget", "skipped (budget)")])
def test_a_turn_without_violation(broken: TurnResult, reason: str, end: str) -> None:
    quiet = replace(broken, variants=(), outcome="skipped", reason=reason)
    first = explain(quiet, Settings(), command=None).splitlines()[0]
    assert first == f"No violation at turn 1 of dialogue SNG0073: {end}"


def test_plainest_first_and_the_rest_counted(broken: TurnResult) -> None:
    one = broken.violations[0]
    context = replace(one, index=3, cause="context")
    many = replace(broken, variants=(context, *(replace(one, index=i) for i in range(10, 16))))
    text = explain(many, Settings(), command=None, verbose=True)
    assert text.index("Variant 10") < text.index("Variant 14")
    assert "Variant 3\n" not in text
    assert "... and 2 more variants: the JSON report has them" in text
    assert simplicity(one) < simplicity(context)


def test_changes_that_were_there_before_are_marked(broken: TurnResult) -> None:
    one = broken.violations[0]
    change = one.changed_slots[0]
    both = replace(one, changed_slots=(change, replace(change, slot="train-x", carried=True)))
    text = explain(replace(broken, variants=(both,)), Settings(), command=None, verbose=True)
    assert "    changed: train-day: friday -> none\n" in text
    assert "          +: train-x: friday -> none  (carried: had changed at an earlier turn)" in text


def test_a_giant_utterance_stays_readable(broken: TurnResult) -> None:
    one = broken.violations[0]
    tail = " and so on" * 1000
    giant = replace(one, text=one.text + tail)
    text = explain(
        replace(broken, user=broken.user + tail, variants=(giant,)), Settings(), command=None
    )
    assert len(text) < 2500
    assert max(map(len, text.splitlines())) <= 100
    assert "[-leaving-]{+leaivng+}" in text


def test_a_joined_round_is_named_and_marked():
    one = twice(0)
    moves = (Move("join", 0, 1),)
    joined = replace(one, moves=moves, exchanges=one.exchanges)
    assert list(move_texts(joined)) == ["round 1 and round 2 are said in one"]
    assert [shown.mark for shown in shown_rounds(joined)] == ["joined", ""]
