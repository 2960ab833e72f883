"""Weaknesses of bots that reply: by what came in the place of the reply."""

from __future__ import annotations

from dataclasses import replace

import pytest
from violations import edit, turn, violation

from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.dialogue.calls import reply_outcome
from pytest_dstfuzz.relations.relation import Move
from pytest_dstfuzz.weaknesses.groups import key_of_id, read

ASKED = "when do you open on monday"
CLEAN = "We open at nine, except on Mondays."
BEFORE = "Your parcel is on its way."


def broken(found: str, clean: str = CLEAN) -> tuple[TurnResult, VariantResult]:
    slip = edit(ASKED, "char_replace/swap", "open", "oepn")
    variant = violation(ASKED, [slip], {"reply": (clean, found)})
    result = turn(ASKED, reply_outcome(clean), variant)
    return replace(result, system=BEFORE, outcome_kind="reply"), variant


@pytest.mark.parametrize(
    ("found", "name"),
    [
        ("Sorry, I did not understand that.", "fallback instead of answer"),
        (BEFORE, "earlier reply repeated"),
        ("We open at ten, except on Mondays.", "number in reply changed"),
        ("We do not open at nine, except on Mondays.", "yes and no reversed"),
        ("Ask at nine at the desk, except on Mondays.", "different reply"),
        (CLEAN, "changed question, same reply"),
    ],
)
def test_what_came_names_it(found: str, name: str) -> None:
    reading = read(*broken(found))
    assert reading.key.mechanism == name
    assert reading.words == ("open",)
    assert key_of_id(reading.key.id) == reading.key


@pytest.mark.parametrize(
    ("clean", "found", "name"),
    [
        (
            "The deposit is 100 euros.",
            "A city bike! For how long would you like it?",
            "question instead of answer",
        ),
        ("The deposit is 100 euros.", "A city bike, good choice.", "different reply"),
        (
            "The deposit is 100 euros.",
            "The deposit is 90 euros. All right?",
            "number in reply changed",
        ),
        ("The deposit is 100 euros.", "A good choice. Anything else?", "different reply"),
        ("For how long?", "Which bike would you like?", "different reply"),
        ("Two days cost 24 euros.", "Two days, noted.", "different reply"),
        ("We are in Ely.", "We are in Bath.", "name in reply changed"),
        ("We are at nine streets.", "We are in Bath.", "different reply"),
        ("Sorry, I do not know.", "Yes, you may.", "different reply"),
    ],
)
def test_only_what_both_have_becomes_another(clean: str, found: str, name: str) -> None:
    assert read(*broken(found, clean)).key.mechanism == name


def test_relations_of_contexts_name_it_too() -> None:
    result, variant = broken("Ask at the desk.")
    agree = replace(result, relation="contexts-agree")
    assert read(agree, variant).key.mechanism == "equivalent context, different reply"
    again = replace(variant, moves=(Move("again", 0),))
    assert read(result, again).key.mechanism == "same dialogue, different answer"
