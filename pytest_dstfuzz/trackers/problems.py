"""What is wrong with an answer: its state, its reply, its impurities; each in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Final

from pytest_dstfuzz.printable import SHOWN, repr_of, shortened

#: Characters of a slot or a value: every variant's state is kept, compared and reported.
_LONGEST_TEXT: Final = 10_000
_LONGEST_REPLY: Final = 100_000
#: How far below 0 the impurity of a certain slot may come out in single precision.
_ROUNDING: Final = 1e-6


def reply_problem(text: object) -> str:
    """Return what is wrong with a reply, or ``""``."""
    if text is None:
        return "no reply"
    if not isinstance(text, str):
        return f"{kind_of(text)} where a reply is expected, which is a text"
    if not text.strip():
        return "an empty reply"
    if len(text) > _LONGEST_REPLY:
        return f"a reply of {len(text):,} characters; {_LONGEST_REPLY:,} are the most"
    if not text.isascii() and encodable(text) != text:
        shown = shortened(repr(text), SHOWN)
        return f"{shown}, which holds half of a character (a lone surrogate)"
    return ""


def state_problem(state: object) -> str:
    """Return what is wrong with a belief state, or ``""``."""
    if not isinstance(state, Mapping):
        return f"{kind_of(state)} where a belief state is expected"
    for slot, value in state.items():
        if not isinstance(slot, str):
            return f"the slot {repr_of(slot)}, which is {kind_of(slot)}; slots are strings"
        if not isinstance(value, str):
            return f"{kind_of(value)} as the value of {slot!r}; values are strings"
        for text in (slot, value):
            if len(text) > _LONGEST_TEXT:
                what = "slot name" if text is slot else f"value of {shortened(slot, SHOWN)!r}"
                return (
                    f"a {what} of {len(text):,} characters; a belief state has words of the "
                    f"dialogue, {_LONGEST_TEXT:,} characters at most"
                )
            if not text.isascii() and encodable(text) != text:
                return f"{text!r}, which holds half of a character (a lone surrogate)"
    return ""


def impurity_problem(impurities: object) -> str:
    """Return what is wrong with the impurities of a prediction, or ``""``."""
    if impurities is None:
        return ""
    if not isinstance(impurities, Mapping):
        return f"{kind_of(impurities)} where impurities by slot are expected"
    for slot, value in impurities.items():
        if not isinstance(slot, str):
            return f"an impurity of {slot!r}, which is {kind_of(slot)}; slots are strings"
        # numpy's scalars are numbers too, and no tracker should have to convert them.
        if not isinstance(value, Real) or not _is_share(value):
            return f"{value!r} as the impurity of {slot!r}; impurities are from 0 to 1"
    return ""


def encodable(text: str) -> str:
    """Return a text that can be sent to another process and written to a report."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _is_share(value: Real) -> bool:
    try:
        return -_ROUNDING <= float(value) <= 1.0
    except OverflowError:
        return False


def kind_of(value: object) -> str:
    """Return the type of a value with its article: ``a BeliefState``, ``an int``, ``None``."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
