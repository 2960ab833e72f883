"""What goes wrong with tool calls: a call is gone, another one is made, or an argument changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pytest_dstfuzz.campaign.results import ChangedSlot, TurnResult, VariantResult, not_corrected
from pytest_dstfuzz.dialogue.calls import AnswerPath, value_of
from pytest_dstfuzz.perturb.words import word_list
from pytest_dstfuzz.weaknesses.edited import Edited, blamed
from pytest_dstfuzz.weaknesses.failures import failure_of
from pytest_dstfuzz.weaknesses.mechanisms import OTHER

_UNKNOWN: Final = "unknown-tool"
_OTHER_TOOL: Final = "other-tool"
_NO_CALL: Final = "no-call"
_LEFT_OUT: Final = "call-left-out"
_NEW: Final = "needless-call"
_ORDER: Final = "calls-reordered"
#: Of arguments, the more telling ones first: of several changed ones the first of these names it.
_ARGUMENTS: Final = (
    "slip-in-argument",
    "arguments-mixed-up",
    "number-in-argument",
    "number-left-out",
    "argument-left-out",
    "argument-cut",
    "argument-retyped",
    "argument-changed",
    "argument-added",
)
CALLS: Final = (_UNKNOWN, _OTHER_TOOL, _NO_CALL, _LEFT_OUT, _NEW, *_ARGUMENTS, _ORDER)


def call_failure(turn: TurnResult, variant: VariantResult) -> tuple[str, str]:
    """Return the mechanism of a violation of tool calls, and the tool or the argument it shows at.

    The mechanism is one of `CALLS`, or one of those of relations under which something must change,
    or `OTHER` if nothing changed.
    """
    changes = not_corrected(variant.plain.changed_slots)
    found = _of_calls(turn, changes)
    if found is not None:
        return found
    name, number = failure_of(turn, variant, changes)
    if name:
        return name, changes[number].path.part[1] if number >= 0 else ""
    edited = blamed(turn, variant)
    every = variant.plain.changed_slots
    told = [
        (_ARGUMENTS.index(_argument(one, turn, every, edited)), one.path.part[1])
        for one in changes
        if not one.path.is_call
    ]
    if told:
        rank, slot = min(told)
        return _ARGUMENTS[rank], slot
    return (_ORDER, changes[0].path.part[1]) if changes else (OTHER, "")


def _of_calls(turn: TurnResult, changes: Sequence[ChangedSlot]) -> tuple[str, str] | None:
    """Return the same where a call is gone or new; ``None`` = the same calls are made."""
    own = [one for one in changes if one.path.is_call]
    gone = [one.path.tool for one in own if one.after is None and one.before is not None]
    new = [one.path.tool for one in own if one.before is None and one.after is not None]
    unknown = [tool for tool in new if turn.tools and tool not in turn.tools]
    if unknown:
        return _UNKNOWN, unknown[0]
    if gone and new:
        return _OTHER_TOOL, gone[0]
    if gone:
        made = [path for path in turn.clean_state or () if AnswerPath.of(path).is_call]
        return (_LEFT_OUT if len(made) > len(gone) else _NO_CALL), gone[0]
    return (_NEW, new[0]) if new else None


def _argument(
    change: ChangedSlot, turn: TurnResult, changes: Sequence[ChangedSlot], edited: Edited
) -> str:
    """Return what goes wrong with one argument."""
    before, after = change.before, change.after
    if after is None:
        return "number-left-out" if _has_digits(before) else "argument-left-out"
    if not edited.brought.isdisjoint(word_list(after)):
        return "slip-in-argument"
    if before is None:
        return "argument-added"
    if str(value_of(before)) == str(value_of(after)):
        return "argument-retyped"
    return _replaced(change, turn, changes)


def _replaced(change: ChangedSlot, turn: TurnResult, changes: Sequence[ChangedSlot]) -> str:
    """Return what goes wrong with an argument whose value becomes another."""
    before, after = change.before or "", change.after or ""
    clean: Mapping[str, str] = turn.clean_state or {}
    others = {path: text for path, text in clean.items() if not AnswerPath.of(path).is_call}
    others |= {one.slot: one.before for one in changes if one.before is not None}
    if any(text == after for path, text in others.items() if path != change.slot):
        return "arguments-mixed-up"
    if _has_digits(before) or _has_digits(after):
        return "number-in-argument"
    was, now = set(word_list(before)), set(word_list(after))
    return "argument-cut" if was < now or now < was else "argument-changed"


def _has_digits(text: str | None) -> bool:
    return any(char.isdecimal() for char in text or "")
