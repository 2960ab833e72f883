"""Results without what was said in them: for teams whose dialogues are private.

Every character but blanks becomes an ``x``. So a text keeps its shape, an edit its place and
length, and all that is shown of them is made as for any other result; which words they were
nobody can tell. Names of slots, ids of dialogues and figures stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, overload

from pytest_dstfuzz.campaign.results import ChangedSlot, ContextEdits, TurnResult, VariantResult
from pytest_dstfuzz.dialogue.dialogues import BeliefState
from pytest_dstfuzz.perturb.types import Edit

#: What stands for the message of an error, which may repeat what was said.
KEPT_BACK: Final = "kept back (redact)"
_SEEN = re.compile(r"\S")


@overload
def masked_text(text: str) -> str: ...
@overload
def masked_text(text: None) -> None: ...
def masked_text(text: str | None) -> str | None:
    """Return a text with an ``x`` for every character that is no blank.

    >>> masked_text("to Ely, please")
    'xx xxxx xxxxxx'
    """
    return None if text is None else _SEEN.sub("x", text)


def redacted(result: TurnResult) -> TurnResult:
    """Return a result without its texts and slot values."""
    return replace(
        result,
        system=masked_text(result.system),
        user=masked_text(result.user),
        label=_state(result.label),
        clean_state=_state(result.clean_state),
        reason=KEPT_BACK if result.outcome == "error" and result.reason else result.reason,
        variants=tuple(map(_variant, result.variants)),
    )


def _variant(variant: VariantResult) -> VariantResult:
    minimal = variant.minimal
    # The name of a lock stays; what it found in the utterance comes after a colon.
    reason = KEPT_BACK if variant.outcome == "error" else variant.reason.partition(":")[0]
    return replace(
        variant,
        text=masked_text(variant.text),
        context=tuple(map(masked_text, variant.context)),
        edits=_edits(variant.edits),
        reason=reason,
        state=_state(variant.state),
        changed_slots=_changes(variant.changed_slots),
        context_edits=_context(variant.context_edits),
        minimal=minimal
        and replace(
            minimal,
            text=masked_text(minimal.text),
            context=tuple(map(masked_text, minimal.context)),
            edits=_edits(minimal.edits),
            context_edits=_context(minimal.context_edits),
            changed_slots=_changes(minimal.changed_slots),
        ),
    )


def _edits(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    return tuple(
        replace(edit, before=masked_text(edit.before), after=masked_text(edit.after))
        for edit in edits
    )


def _context(edits: Iterable[ContextEdits]) -> tuple[ContextEdits, ...]:
    return tuple(replace(earlier, edits=_edits(earlier.edits)) for earlier in edits)


def _changes(changes: Iterable[ChangedSlot]) -> tuple[ChangedSlot, ...]:
    return tuple(
        replace(change, before=masked_text(change.before), after=masked_text(change.after))
        for change in changes
    )


def _state(state: BeliefState | None) -> BeliefState | None:
    return None if state is None else BeliefState({s: masked_text(v) for s, v in state.items()})
