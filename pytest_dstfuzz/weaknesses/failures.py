"""What goes wrong where the state should have changed, or where rounds were moved.

The edit is known to matter here, so it tells nothing of the fault. What was ignored does: what the
user did with the values, which the relation says, or where the values went instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pytest_dstfuzz.campaign.results import ChangedSlot, TurnResult, VariantResult
from pytest_dstfuzz.perturb.spelling import Mentions

#: Of a relation of others that the state did not follow.
IGNORED: Final = "change-ignored"
#: Relation -> what is ignored where the state stays as it was.
_IGNORED: Final = {
    "value-swap": "new-value-ignored",
    "confusing-entity": "new-value-ignored",
    "turn-back": "correction-ignored",
    "repair": "correction-ignored",
    "negation": "negation-ignored",
    "antonym": "negation-ignored",
    "removal": "removal-ignored",
    "role-swap": "roles-ignored",
    "random-input": "noise-believed",
    "drop": "drop-ignored",
}
#: What was done to rounds of a dialogue -> what goes wrong where the state should have stayed.
RESTARTED: Final = "restart-differs"
_MOVED: Final = {"repeat": "said-twice", "move": "order-matters", "again": RESTARTED}

FAILURES: Final = (
    *dict.fromkeys(_IGNORED.values()),
    IGNORED,
    *("half-followed", "wrong-slot", "wrong-value", "bystander-changed"),
    *_MOVED.values(),
)


def failure_of(
    turn: TurnResult, variant: VariantResult, changes: Sequence[ChangedSlot]
) -> tuple[str, int]:
    """Return the mechanism of a violation that the state itself tells, and the change showing it.

    It is ``("", -1)`` where the edits have to tell: of a relation that expects no change of the
    state to edits of a text.
    """
    if turn.side != "should-change":
        told = (_MOVED.get(move.kind, "") for move in variant.moves)
        name = next(filter(None, told), "")
        if name:
            return name, 0 if changes else -1
        taken = _taken_back(variant, changes)
        return ("correction-ignored" if taken >= 0 else "", taken)
    missed = [number for number, one in enumerate(changes) if one.expected is not None]
    first = next(iter(missed), -1)
    if variant.failure == "partial":
        return "half-followed", first
    if variant.failure == "other" and (found := _instead(variant, changes, missed)) is not None:
        return found
    return _IGNORED.get(turn.relation, IGNORED), first


def _taken_back(variant: VariantResult, changes: Sequence[ChangedSlot]) -> int:
    """Return the change to a value that the user takes back in the same breath; -1 = none is.

    The relation `disfluency` puts such a slip before the value that counts: `sunday, no, friday`.
    """
    slips = [
        Mentions([edit.after])
        for edit in variant.plain.edits
        if (edit.transformation, edit.operator) == ("disfluency", "repair")
    ]
    changed = enumerate(change.after for change in changes)
    told = (n for n, value in changed if value and any(slip.says(value) for slip in slips))
    return next(told, -1)


def _instead(
    variant: VariantResult, changes: Sequence[ChangedSlot], missed: Sequence[int]
) -> tuple[str, int] | None:
    """Return the same of a state that changed otherwise; ``None`` where none of it was asked for.

    The slots at the numbers in ``missed`` should have changed.
    """
    others = [number for number in range(len(changes)) if number not in missed]
    if not missed:
        return "bystander-changed", next(iter(others), -1)
    new = {
        value
        for delta in variant.expected
        if not delta.after.anything_but
        for value in delta.after.values
        if value is not None
    }
    for number in others:
        if changes[number].after in new:
            return "wrong-slot", number
    moved = (n for n in missed if changes[n].before != changes[n].after)
    number = next(moved, -1)
    return ("wrong-value", number) if number >= 0 else None
