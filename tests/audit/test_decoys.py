"""Decoys change what the slots mean, and nothing else tells them apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_dstfuzz.audit.decoys import KINDS, DecoyMaker, KnownTurns
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.dialogue.dialogues import BeliefState


def made(turns: tuple[TurnResult, ...], number: int, kind: str, **changes: object) -> str | None:
    turn = replace(turns[number], **changes)
    variant = turn.variants[0]
    if "user" in changes:
        variant = replace(variant, text=str(changes["user"]))
    decoy = DecoyMaker(KnownTurns([*turns, turn])).make(turn, variant, kind)
    return decoy.text if decoy else None


def test_another_value(turns: tuple[TurnResult, ...]) -> None:
    text = made(turns, 0, "value")
    assert text is not None
    assert text != turns[0].variants[0].text
    assert "cambridge to ely on monday" not in text
    assert text.endswith(" !")


def test_case_is_kept(turns: tuple[TurnResult, ...]) -> None:
    text = made(turns, 0, "value", user="A Train From Cambridge To Ely Please")
    assert text is not None
    changed = set(text.split()) - {"A", "Train", "From", "To", "Please"}
    assert all(word.istitle() for word in changed)


def test_exchange(turns: tuple[TurnResult, ...]) -> None:
    assert made(turns, 0, "exchange") == "i need a train from ely to cambridge on monday !"
    assert made(turns, 1, "exchange") is None


def test_negations_come_and_go(turns: tuple[TurnResult, ...]) -> None:
    assert made(turns, 0, "negation_added", user="i need a train to ely") == (
        "i do not need a train to ely"
    )
    assert made(turns, 1, "negation_added") == "i would not like to leave after 10:10 !"
    assert made(turns, 0, "negation_added", user="we are looking for a train to ely") == (
        "we are not looking for a train to ely"
    )
    assert made(turns, 3, "negation_removed") == "i do want to arrive before 10:11 !"
    assert made(turns, 0, "negation_removed") is None
    assert made(turns, 0, "negation_removed", user="i don't care, ely") is None
    assert made(turns, 0, "negation_removed", user="not now. is it in ely?") is None
    assert made(turns, 0, "negation_added", user="i need nothing") is None
    assert made(turns, 0, "negation_added", user="i would like not to go to ely") is None


def test_a_negation_stays_where_anything_will_do(turns: tuple[TurnResult, ...]) -> None:
    state = BeliefState({"train-day": "dontcare", "train-destination": "ely"})
    user = "i do not want to go to ely"
    changes = {"user": user, "clean_state": state, "label": state}
    assert made(turns, 0, "negation_removed", **changes) is None
    assert made(turns, 0, "negation_removed", user=user) == "i do want to go to ely"


def test_features_are_named_by_their_slot(turns: tuple[TurnResult, ...]) -> None:
    state = BeliefState({"hotel-parking": "no", "hotel-area": "north"})
    changes = {"user": "we don't need parking", "clean_state": state, "label": None}
    assert made(turns, 0, "negation_removed", **changes) == "we do need parking"
    assert made(turns, 0, "negation_removed", user="we don't need parking") is None


def test_dropped_with_its_cue(turns: tuple[TurnResult, ...]) -> None:
    user = "book us any train from cambridge to ely on monday !"
    assert made(turns, 0, "dropped", user=user) == "book us any train from cambridge to ely !"
    # Too little would be left, or the system has said it.
    assert made(turns, 0, "dropped", user="from ely to norwich") is None
    assert made(turns, 0, "dropped", system="monday to ely from cambridge?") is None


def test_old_news_and_unknown_pasts_give_no_decoy(turns: tuple[TurnResult, ...]) -> None:
    assert made(turns, 1, "value", user="yes, from cambridge") is None
    assert made(turns, 0, "value", turn_index=5) is None
    assert made(turns, 0, "value", user="hello") is None
    assert made(turns, 0, "value", clean_state=None, label=None) is None


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_finds_occasions(turns: tuple[TurnResult, ...], kind: str) -> None:
    maker = DecoyMaker(KnownTurns(turns))
    decoys = [maker.make(turn, variant, kind) for turn in turns for variant in turn.variants]
    found = [decoy for decoy in decoys if decoy is not None]
    assert len(found) >= 10
    assert all(decoy.text != decoy.variant.text and decoy.what for decoy in found)
