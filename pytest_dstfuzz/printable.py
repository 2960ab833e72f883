r"""Text that is safe to print: no control characters, and no commands to a CI runner.

Ids, slots, values, utterances and error bodies come from data and services. `printable` cleans all
terminal output: error messages of this package, texts of failed tests, the summary, and the output
of commands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import FunctionType
from typing import Final

__all__ = ["format_count", "format_list", "printable", "shorten_text", "without_commands"]

#: Control characters except newline and tab (C0, DEL, C1), bidirectional controls, line and
#: paragraph separators, lone surrogates.
_CONTROLS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff]"
)
#: Commands that CI runners recognise in the output of a step: GitHub's at the start of a line
#: after optional blanks, its older ones and those of Azure and TeamCity anywhere.
_COMMANDS: Final = re.compile(r"(?m)^(?P<blanks>[^\S\n]*):(?=:)|#(?=#\[|#vso\[|#teamcity\[)")

#: Maximum number of characters of a wrong value in a message.
SHOWN: Final = 60
#: A memory address, which changes with every run.
ADDRESS: Final = re.compile(r"\b0x[0-9a-fA-F]{4,}")


def printable(text: str) -> str:
    r"""Replace characters that a terminal or a CI runner would interpret by their code points.

    Newlines and tabs stay. The function is idempotent.

    >>> printable("to \x1b[31mEly\n::error::no")
    'to <U+001B>[31mEly\n<U+003A>:error::no'
    """
    return without_commands(_CONTROLS.sub(lambda found: by_number(found.group()), text))


def without_commands(text: str) -> str:
    """Return ``text`` without commands to a CI runner. Colour codes stay."""
    return _COMMANDS.sub(
        lambda found: (found["blanks"] or "") + by_number(found.group()[-1]),
        text,
    )


def shorten_text(text: str, most: int) -> str:
    """Return a text cut to at most ``most`` characters, for messages."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun, which is in the plural unless the number is 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_list(names: Sequence[str], most: int) -> str:
    """Return at most ``most`` names, separated by commas, and how many are left out."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def by_number(char: str) -> str:
    """Return the code point of a character as text."""
    return f"<U+{ord(char):04X}>"


def repr_of(value: object) -> str:
    """Return ``repr(value)``, or the name of the type if ``repr`` raises."""
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - a user's class may raise anything
        return f"<{type(value).__name__}>"


def describe(value: object) -> str:
    """Return the type of an invalid value and the start of its repr."""
    if isinstance(value, FunctionType):
        return f"function {value.__qualname__}"
    shown = shorten_text(ADDRESS.sub("0x...", repr_of(value)), SHOWN)
    return shown if value is None else f"{type(value).__name__} {shown}"
