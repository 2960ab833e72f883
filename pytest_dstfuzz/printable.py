r"""Text of others on a terminal: nothing in it moves the cursor, hides or gives commands.

Ids, slots, values, utterances and the bodies of errors come from data and from services. All
that is written to a terminal goes through `printable`: every message of this package's errors,
the texts of failed tests, the summary, and what the commands print.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import FunctionType
from typing import Final

__all__ = ["counted", "listed", "printable", "shortened", "without_commands"]

#: Controls but for line ends and tabs (C0, DEL, C1), those that turn the direction of writing,
#: separators of lines and paragraphs, lone surrogates.
_CONTROLS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff]"
)
#: What runners of continuous integration take for commands in the output of a step: GitHub's at
#: the start of a line, blanks before it or not, its older ones and Azure's anywhere.
_COMMANDS: Final = re.compile(r"(?m)^(?P<blanks>[^\S\n]*):(?=:)|#(?=#\[|#vso\[|#teamcity\[)")

#: Characters of a wrong value that a message shows.
SHOWN: Final = 60
#: An address in memory, which is another one in the next run.
ADDRESS: Final = re.compile(r"\b0x[0-9a-fA-F]{4,}")


def printable(text: str) -> str:
    r"""Return ``text`` with all that a terminal or a runner would obey written by its number.

    Line ends and tabs stay. What is returned is left as it is when it comes here again.

    >>> printable("to \x1b[31mEly\n::error::no")
    'to <U+001B>[31mEly\n<U+003A>:error::no'
    """
    return without_commands(_CONTROLS.sub(lambda found: by_number(found.group()), text))


def without_commands(text: str) -> str:
    """Return ``text`` without commands to a runner; what colours it stays."""
    return _COMMANDS.sub(
        lambda found: (found["blanks"] or "") + by_number(found.group()[-1]),
        text,
    )


def shortened(text: str, most: int) -> str:
    """Return the beginning of a text, of so many characters at most, as messages show it."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def counted(number: int, noun: str) -> str:
    """Return a number of things, in the plural unless it is one."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str], most: int) -> str:
    """Return names with commas between, so many at most, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def by_number(char: str) -> str:
    """Return what stands for a character that cannot be shown as it is."""
    return f"<U+{ord(char):04X}>"


def repr_of(value: object) -> str:
    """Return ``repr(value)``, also of a value that has none."""
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - a user's class may raise anything
        return f"<{type(value).__name__}>"


def describe(value: object) -> str:
    """Return type and beginning of a value that is not what it should be."""
    if isinstance(value, FunctionType):
        return f"function {value.__qualname__}"
    shown = shortened(ADDRESS.sub("0x...", repr_of(value)), SHOWN)
    return shown if value is None else f"{type(value).__name__} {shown}"
