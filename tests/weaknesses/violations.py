"""Violations made by hand: an utterance, edits of its words, and what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_dstfuzz.campaign.results import (
    Cause,
    ContextEdits,
    TurnResult,
    VariantResult,
)
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Difference
from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.perturb.words import Edit

#: Slot -> value before and after.
Changes = Mapping[str, tuple[str | None, str | None]]


def edit(text: str, operator: str, before: str, after: str) -> Edit:
    """Return the edit of the first place that has ``before``."""
    start = text.index(before)
    return Edit(*operator.split("/"), start, start + len(before), before, after)


def violation(
    text: str,
    edits: Sequence[Edit],
    changes: Changes,
    *,
    index: int = 0,
    context: tuple[str, ...] = (),
    context_edits: tuple[ContextEdits, ...] = (),
    cause: Cause = "turn",
    log_probability: float | None = None,
    weight: float | None = None,
) -> VariantResult:
    """Return a violation, not shrunk: the edits are all needed."""
    return VariantResult(
        index=index,
        text=apply_edits(text, edits),
        context=context,
        edits=tuple(edits),
        edit_w=0.0,
        edit_c=0.0,
        log_probability=log_probability,
        weight=weight,
        valid=True,
        reason="",
        state=BeliefState(),
        changed_slots=tuple(Difference(slot, *pair) for slot, pair in changes.items()),
        context_edits=context_edits,
        cause=cause,
        outcome="violation",
    )


def turn(
    text: str, state: Mapping[str, str], *variants: VariantResult, dialogue: str = "D1"
) -> TurnResult:
    """Return a broken turn."""
    return TurnResult(
        id=f"own-test-{dialogue}-t0",
        dialogue_id=dialogue,
        turn_index=0,
        system="",
        user=text,
        clean_state=BeliefState(state),
        outcome="violation",
        calls=1,
        variants=variants,
    )
