"""Results of relations that edit by themselves, made by hand."""

from __future__ import annotations

from typing import Any

from pytest_dstfuzz.campaign.results import SeenRound, TurnResult, VariantResult
from pytest_dstfuzz.dialogue.dialogues import Admissible, BeliefState, Difference
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.relations.relation import Delta, Move
from pytest_dstfuzz.totals.totals import RelationFacts

USER = "a train to norwich on friday"
CLEAN = BeliefState({"train-day": "friday", "train-destination": "norwich"})
NEW = Admissible(("ely",))
DELTA = Delta("train-destination", "norwich", NEW)
FACTS = {
    "value-swap": RelationFacts("the slot takes the new value", edits="own"),
    "duplicate": RelationFacts("the state stays as it is", unit="dialogue", edits="own"),
}


def swap(index: int, **found: str) -> VariantResult:
    """A rewrite to ely, answered with ``found`` in place of the clean values."""
    state = BeliefState({"train-day": "friday", "train-destination": "norwich"} | _slots(found))
    missed = []
    for slot in sorted({*CLEAN, *state}):
        expected = NEW if slot == DELTA.slot else None
        right = state.get(slot) in NEW if expected else state.get(slot) == CLEAN.get(slot)
        if not right:
            missed.append(Difference(slot, CLEAN.get(slot), state.get(slot), expected=expected))
    failure: Any = None
    if missed:
        failure = "stuck" if state == CLEAN else "other"
    return VariantResult(
        index=index,
        text="a train to ely on friday",
        context=(),
        edits=(Edit("value-swap", "value", 11, 18, "norwich", "ely"),),
        edit_w=1 / 6,
        edit_c=0.0,
        valid=True,
        reason="",
        outcome="violation" if missed else "held",
        cause="turn" if missed else None,
        state=state,
        changed_slots=tuple(missed),
        failure=failure,
        about="train-destination: norwich -> ely",
        expected=(DELTA,),
    )


def twice(index: int, **found: str) -> VariantResult:
    """The round said twice."""
    state = BeliefState(dict(CLEAN) | _slots(found))
    missed = tuple(
        Difference(slot, CLEAN[slot], state[slot]) for slot in CLEAN if state[slot] != CLEAN[slot]
    )
    return VariantResult(
        index=index,
        text=USER,
        context=(USER,),
        edits=(),
        edit_w=0.0,
        edit_c=0.0,
        valid=True,
        reason="",
        outcome="violation" if missed else "held",
        cause="context" if missed else None,
        state=state,
        changed_slots=missed,
        failure="changed" if missed else None,
        about="round 0 said twice",
        moves=(Move("repeat", 0, 0),),
        exchanges=(SeenRound("", USER), SeenRound("", USER)),
    )


def turn(*variants: VariantResult, dialogue: str = "d0", **more: Any) -> TurnResult:
    """A turn under value-swap."""
    broken = any(variant.outcome == "violation" for variant in variants)
    given: dict[str, Any] = {
        "outcome": ("violation" if broken else "held") if variants else "inapplicable",
        "relation": "value-swap",
        "side": "should-change",
        **more,
    }
    return TurnResult(
        id=f"travel-test-{dialogue}-t0",
        dialogue_id=dialogue,
        turn_index=0,
        system="",
        user=USER,
        clean_state=CLEAN,
        variants=variants,
        calls=1 + len(variants),
        **given,
    )


def _slots(found: dict[str, str]) -> dict[str, str]:
    return {f"train-{name}": value for name, value in found.items()}
