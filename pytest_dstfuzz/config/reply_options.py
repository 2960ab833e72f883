"""Options of bots that reply: what of an answer is compared, and how two replies are."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Final

from pytest_dstfuzz.config.parsers import Option, Value
from pytest_dstfuzz.errors import UserError, unknown_name

STATE: Final = "state"
REPLY: Final = "reply"
#: What an answer may be.
OUTCOMES: Final = (STATE, REPLY)
#: What it will be in a later version.
_NOT_YET: Final = ("tool-calls",)


@dataclass(frozen=True, slots=True)
class ReplySettings:
    """What of an answer is tested, and when two replies say the same."""

    outcome: str = STATE
    #: Names of comparisons with commas between them; ``None`` = the default of the outcome.
    compare: str | None = None


def outcome(value: str) -> str:
    """Take what of an answer is tested."""
    if value in _NOT_YET:
        raise ValueError(f"cannot be tested yet: {' or '.join(OUTCOMES)}")
    if "," in value:
        raise ValueError(f"names several, and a run tests one: {' or '.join(OUTCOMES)}")
    if value not in OUTCOMES:
        raise unknown_name("outcome", value, OUTCOMES)
    return value


def comparisons(value: str) -> str:
    """Take names of comparisons with commas between them; the result has no blanks."""
    found = [part.strip() for part in value.split(",") if part.strip()]
    if not found:
        raise ValueError("names nothing: leave the option out for the default")
    if twice := [name for place, name in enumerate(found) if name in found[:place]]:
        raise ValueError(f"names {twice[0]!r} twice")
    return ",".join(found)


_reply = partial(Option, scopes=("test",))

REPLY_OPTIONS: tuple[Option, ...] = (
    _reply(
        "outcome",
        Value(outcome, "WHAT"),
        "what of an answer is tested: state (slots and their values; default) or reply (the text "
        "that a bot answers)",
    ),
    _reply(
        "compare",
        Value(comparisons, "NAME,..."),
        "when two replies say the same, all that are named agreeing: exact, one of a package or "
        "of your suite, or module:function, a function of yours of two texts",
    ),
)


def refuse_for_states(settings: ReplySettings) -> None:
    """Refuse what does nothing where no reply is tested."""
    plain = ReplySettings()
    if settings.outcome != STATE:
        return
    for item in fields(ReplySettings):
        if getattr(settings, item.name) != getattr(plain, item.name):
            raise UserError(
                f"--dst-{item.name.replace('_', '-')} is for bots that reply: add "
                f"--dst-outcome={REPLY}, or leave it out"
            )
