"""Results made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_dstfuzz.campaign.results import (
    ContextEdits,
    TurnNoise,
    TurnResult,
    VariantResult,
)
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Difference
from pytest_dstfuzz.perturb.words import Edit

SOURCE = "i am leaving on friday from ely"
EARLIER = "hello i need a train"
_NOISE = TurnNoise("typing,casual", 0.02, distorted=0.1, locked=0.08, sampled=True)
CLEAN = BeliefState({"train-day": "friday", "train-departure": "ely"})


def held(index: int) -> VariantResult:
    edit = Edit("word_insert", "filler", 2, 2, "", "uh ")
    text = "i uh am leaving on friday from ely"
    return VariantResult(
        index=index,
        text=text,
        context=(EARLIER,),
        edits=(edit,),
        edit_w=1 / 8,
        edit_c=0.0,
        valid=True,
        reason="",
        outcome="held",
        state=CLEAN,
    )


def violation(index: int, carried: bool = False) -> VariantResult:
    edit = Edit("char_replace", "swap", 8, 10, "vi", "iv")
    context = Edit("char_insert", "repeat", 15, 15, "", "t")
    return VariantResult(
        index=index,
        text="i am leaivng on friday from ely",
        context=("hello i need a ttrain",),
        edits=(edit,),
        edit_w=0.0,
        edit_c=0.010753,
        valid=True,
        reason="",
        outcome="violation",
        state=BeliefState({"train-departure": "ely"}),
        changed_slots=(Difference("train-day", "friday", None, carried),),
        context_edits=(ContextEdits(0, (context,)),),
        cause="turn",
    )


def vetoed(index: int) -> VariantResult:
    edit = Edit("word_drop", "any", 28, 31, "ely", "")
    return VariantResult(
        index=index,
        text="i am leaving on friday from ",
        context=(),
        edits=(edit,),
        edit_w=0.14,
        edit_c=0.0,
        valid=False,
        reason="value",
        outcome="vetoed",
    )


def error(index: int) -> VariantResult:
    edit = Edit("char_drop", "any", 0, 1, "i", "")
    return VariantResult(
        index=index,
        text=SOURCE[1:],
        context=(EARLIER,),
        edits=(edit,),
        edit_w=0.0,
        edit_c=0.01,
        valid=True,
        reason="ValueError: no",
        outcome="error",
    )


def turn(
    *variants: VariantResult, dialogue: str = "SNG0073", index: int = 1, outcome: str = "violation"
) -> TurnResult:
    return TurnResult(
        id=f"multiwoz21-test-{dialogue}-t{index}",
        dialogue_id=dialogue,
        turn_index=index,
        system="which day?",
        user=SOURCE,
        clean_state=CLEAN,
        outcome=outcome,  # type: ignore[arg-type]
        variants=variants,
        label=CLEAN,
        calls=3,
    )


@pytest.fixture
def broken() -> TurnResult:
    """A turn with one violation, one held, one vetoed variant."""
    return turn(held(0), violation(1), vetoed(2))


@pytest.fixture
def results(broken: TurnResult) -> list[TurnResult]:
    """Three turns of two dialogues."""
    return [
        turn(held(0), held(1), error(2), dialogue="MUL0001", index=0, outcome="error"),
        turn(held(0), held(1), vetoed(2), index=0, outcome="held"),
        broken,
    ]


@pytest.fixture
def sampled(broken: TurnResult) -> list[TurnResult]:
    """Twenty dialogues of one turn; each variant stands for 2 of 100, and one of ten fails."""
    kept, failed, vetoed = broken.variants
    turns = []
    for number in range(20):
        first = failed if number % 10 == 0 else replace(kept, index=1)
        weighed = [replace(one, weight=0.02, log_probability=-5.0) for one in (kept, first, vetoed)]
        turn = replace(broken, dialogue_id=str(number), id=f"m-test-{number}-t1", noise=_NOISE)
        outcome: Any = "violation" if first is failed else "held"
        turns.append(replace(turn, variants=tuple(weighed), outcome=outcome))
    return turns


@pytest.fixture
def found(sampled: list[TurnResult]) -> list[TurnResult]:
    """The same of a search without a density."""
    return [
        replace(
            turn,
            noise=replace(_NOISE, sampled=False),
            variants=tuple(replace(one, weight=None) for one in turn.variants),
        )
        for turn in sampled
    ]
