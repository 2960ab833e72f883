"""Redaction of results, for teams with private dialogues.

Every character except blanks becomes an ``x``. Texts keep their shape, and edits keep their
position and length, so reports work as usual. The words cannot be recovered. Names of slots, tools
and arguments, ids of dialogues, and figures remain.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, overload

from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.dialogue.calls import AnswerPath, Outcome, Transcript, place_of
from pytest_dstfuzz.dialogue.dialogues import Admissible, Difference
from pytest_dstfuzz.errors import KEPT_BACK

__all__ = ["redact_turn"]

_SEEN = re.compile(r"\S")
#: Fields of results, edits and changes that contain texts or values of the dialogue.
_SAID: Final = frozenset(
    {"system", "earlier_system", "user", "text", "context", "label", "clean_state", "state"}
    | {"before", "after", "about", "why"}
)


@overload
def mask_text(text: str) -> str: ...
@overload
def mask_text(text: None) -> None: ...
def mask_text(text: str | None) -> str | None:
    """Return a text with an ``x`` for every non-blank character.

    >>> mask_text("to Ely, please")
    'xx xxxx xxxxxx'
    """
    return None if text is None else _SEEN.sub("x", text)


def redact_turn(result: TurnResult) -> TurnResult:
    """Return a result without its texts, replies and slot values."""
    masked: TurnResult = _masked(result)
    return replace(
        masked,
        reason=KEPT_BACK if result.outcome == "error" and result.reason else result.reason,
        variants=tuple(map(_with_its_reason, masked.variants)),
    )


def _with_its_reason(variant: VariantResult) -> VariantResult:
    # The name of a lock stays; the text after the colon is from the utterance.
    kept = KEPT_BACK if variant.outcome == "error" else variant.reason.partition(":")[0]
    return replace(variant, reason=kept)


def _masked(part: Any) -> Any:
    """Return a part of a result with its private fields masked."""
    if isinstance(part, tuple):
        return tuple(map(_masked, part))
    if isinstance(part, Admissible | Transcript):
        # Every part of a transcript may be private or describe the tools.
        return _masked_values(part) if isinstance(part, Admissible) else None
    if not is_dataclass(part) or isinstance(part, type):
        return part
    values = {item.name: getattr(part, item.name) for item in fields(part)}
    masks = {name: _mask if name in _SAID else _masked for name in values}
    masked = replace(part, **{name: masks[name](value) for name, value in values.items()})
    if isinstance(part, Difference) and not part.expected:
        before, after = (_masked_value(part.slot, text) for text in (part.before, part.after))
        return replace(masked, before=before, after=after)
    if isinstance(part, Difference) and part.expected and part.after and part.before != part.after:
        # A changed value must not look unchanged.
        return replace(masked, after=_SEEN.sub("z", part.after))
    return masked


def _masked_values(part: Admissible) -> Admissible:
    """Mask admissible values with ``y``, because the old value is masked with ``x``.

    With ``x`` in both, a change from ``north`` to ``south`` would look like no change.
    """
    letter = "x" if part.anything_but else "y"
    shown = (None if text is None else _SEEN.sub(letter, text) for text in part.values)
    return replace(part, values=tuple(shown))


@overload
def _masked_value(path: str, text: str) -> str: ...
@overload
def _masked_value(path: str, text: None) -> None: ...
def _masked_value(path: str, text: str | None) -> str | None:
    """Return the masked text at a path. The position of a call in its message is not masked."""
    own = AnswerPath.of(path).is_call and place_of(text or "") is not None
    return text if own else mask_text(text)


def _mask(value: Any) -> Any:
    if isinstance(value, Admissible):
        return _masked_values(value)
    if isinstance(value, Outcome):
        return Outcome({path: _masked_value(path, text) for path, text in value.items()})
    return tuple(map(mask_text, value)) if isinstance(value, tuple) else mask_text(value)
