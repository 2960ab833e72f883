"""What is said about requests and answers that are not of the contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pytest_dstfuzz.dialogue.outcome import OutcomeKind
from pytest_dstfuzz.errors import DstFuzzError, nearest
from pytest_dstfuzz.printable import describe

#: What to do where a service that may reply is asked for a belief state.
REPLIES: Final = "; for a service that replies add --dst-outcome=reply"
_LEAVE_OUT: Final = "; for a service that keeps a belief state leave --dst-outcome={} out"
#: What to do where a service answers with what is not tested: what is tested, and the key that
#: stands in its answer.
_OTHER_KINDS: Final[Mapping[tuple[OutcomeKind, str], str]] = {
    ("state", "reply"): REPLIES,
    ("state", "tool_calls"): "; for a service that calls tools add --dst-outcome=tool-calls",
    ("reply", "state"): _LEAVE_OUT.format("reply"),
    ("reply", "tool_calls"): "; for a service that calls tools use --dst-outcome=tool-calls",
    ("tool-calls", "state"): _LEAVE_OUT.format("tool-calls"),
    ("tool-calls", "reply"): "; for a service that replies use --dst-outcome=reply",
    ("tool-calls", "choices"): "; for a service of chat completions use openai+http://...",
}


class ContractError(DstFuzzError):
    """A request or an answer has another shape; the message says which would be right."""


class UnreadableMessageError(ContractError):
    """A message of an assistant whose calls cannot be read; a model may do better next time."""


def wrong(value: object, place: str, right: str) -> ContractError:
    """Return what is wrong with a value at a place of an answer."""
    return ContractError(f"answered with {describe(value)} {place}; {right}")


def other_kind(body: object, outcome: OutcomeKind) -> str:
    """Return what to do where a service answers, but with what is not tested."""
    keys = body if isinstance(body, Mapping) else ()
    return next((_OTHER_KINDS[outcome, key] for key in keys if (outcome, key) in _OTHER_KINDS), "")


def shown_without(body: object, key: str) -> str:
    """Return the beginning of an answer that lacks a key, and which of its keys may be meant."""
    keys = map(str, body) if isinstance(body, Mapping) and key not in body else ()
    guess = nearest(key, keys)
    return describe(body) + (f' (there is a key "{guess}")' if guess else "")
