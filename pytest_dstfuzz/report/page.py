"""Terminal lines: wrapped to the width, with only characters that the encoding has."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from pytest_dstfuzz.printable import by_number, printable, without_commands

__all__ = ["TerminalPage", "encodable", "hanging"]

#: The role of a line, which determines its colour.
Style = Literal["plain", "heading", "good", "bad", "warning", "dim"]

_NARROWEST = 40
#: Growth of a text, in characters, if a code point replaces a character.
_GROWTH = len("<U+003A>") - 1


#: Width of the labels before figures.
_LABEL = 14


class StyledLine(NamedTuple):
    """One line of text without colour codes, and its role."""

    text: str
    style: Style = "plain"


class TerminalPage:
    """A collection of lines that ``encoding`` can represent.

    Each line has at most ``width`` columns, except lines with commands.
    """

    def __init__(self, width: int = 100, encoding: str = "utf-8") -> None:
        """Create an empty page. The width is at least 40 columns."""
        self.width = max(width, _NARROWEST)
        self.lines: list[StyledLine] = []
        self.encoding = encoding

    def line(self, text: str, style: Style = "plain") -> None:
        """Add a paragraph."""
        self.field("", text, style)

    def field(self, head: str, text: str, style: Style = "plain") -> None:
        """Add a paragraph with lines that start after ``head``."""
        head = encodable(printable(head), self.encoding)
        body = encodable(printable(text), self.encoding)
        lines = list(hanging(head, body, self.width, break_words=True))
        if any(line != without_commands(line) for line in lines):
            # If a line looks like a command to a CI runner, masking makes it longer.
            lines = list(hanging(head, body, self.width - _GROWTH, break_words=True))
        self.lines += [StyledLine(without_commands(line), style) for line in lines]

    def command(self, head: str, text: str, style: Style = "plain") -> None:
        """Add a command in a single line of any length, so that users can copy it."""
        shown = encodable(printable(head + text), self.encoding)
        self.lines.append(StyledLine(without_commands(shown), style))

    def gap(self) -> None:
        """Add an empty line unless the last one is empty."""
        if self.lines and self.lines[-1].text:
            self.lines.append(StyledLine(""))

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Add rows, the first as the heading. Names are left-aligned, figures right-aligned."""
        texts = [[encodable(printable(cell), self.encoding) for cell in row] for row in rows]
        sizes = [max(len(cell) for cell in column) for column in zip(*texts, strict=True)]
        sizes[0] = min(sizes[0], self.width - 2 - sum(size + 2 for size in sizes[1:]))
        for number, row in enumerate(texts):
            name = row[0] if len(row[0]) <= sizes[0] else f"{row[0][: max(sizes[0] - 3, 1)]}..."
            cells = [cell.rjust(size) for cell, size in zip(row[1:], sizes[1:], strict=True)]
            text = "  ".join([f"  {name.ljust(sizes[0])}", *cells]).rstrip()
            self.lines.append(StyledLine(text[: self.width], "plain" if number else "heading"))


def hanging(head: str, text: str, width: int, *, break_words: bool = False) -> Iterator[str]:
    """Yield wrapped lines. The first follows ``head``, and the others are indented to it."""
    lines = textwrap.wrap(
        text,
        max(width - len(head), 1),
        break_long_words=break_words,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    for number, line in enumerate(lines or [""]):
        yield ((head if not number else " " * len(head)) + line).rstrip()


def encodable(text: str, encoding: str) -> str:
    """Return ``text`` with code points in place of characters that ``encoding`` lacks."""
    # Encode and decode, because some encodings begin a text with a byte order mark.
    known = (char.encode(encoding, "ignore").decode(encoding) for char in text)
    return "".join(there or by_number(char) for there, char in zip(known, text, strict=True))


def label(name: str) -> str:
    """Return the label of a figure, padded to the common width."""
    return f"{name:<{_LABEL}}"
