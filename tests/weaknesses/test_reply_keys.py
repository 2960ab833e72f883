"""Weaknesses of bots that reply: by what came in the place of the reply."""

from __future__ import annotations

from dataclasses import replace

import pytest
from violations import edit, turn, violation

from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.dialogue.outcome import reply_outcome
from pytest_dstfuzz.relations.rewrite import Move
from pytest_dstfuzz.weaknesses.keys import key_of_id, read

ASKED = "when do you open on monday"
CLEAN = "We open at nine, except on Mondays."
BEFORE = "Your parcel is on its way."


def broken(found: str) -> tuple[TurnResult, VariantResult]:
    slip = edit(ASKED, "char_replace/swap", "open", "oepn")
    variant = violation(ASKED, [slip], {"reply": (CLEAN, found)})
    clean = turn(ASKED, reply_outcome(CLEAN), variant)
    return replace(clean, system=BEFORE, outcome_kind="reply"), variant


@pytest.mark.parametrize(
    ("found", "name"),
    [
        ("Sorry, I did not understand that.", "no-answer"),
        (BEFORE, "last-answer-again"),
        ("We open at ten, except on Mondays.", "other-number"),
        ("We do not open at nine, except on Mondays.", "other-polarity"),
        ("We open at nine in Ely, except on Mondays.", "other-name"),
        ("Ask at nine at the desk, except on Mondays.", "other-answer"),
        (CLEAN, "answers-anyway"),
    ],
)
def test_what_came_names_it(found: str, name: str) -> None:
    reading = read(*broken(found))
    assert reading.key.mechanism == name
    assert reading.words == ("open",)
    assert key_of_id(reading.key.id) == reading.key


def test_relations_of_contexts_name_it_too() -> None:
    result, variant = broken("Ask at the desk.")
    agree = replace(result, relation="contexts-agree")
    assert read(agree, variant).key.mechanism == "disagrees"
    again = replace(variant, moves=(Move("again", 0),))
    assert read(result, again).key.mechanism == "restart-differs"
