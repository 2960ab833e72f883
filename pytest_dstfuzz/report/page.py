"""Lines of a terminal: wrapped to its width, and safe in its encoding."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from pytest_dstfuzz.printable import by_number, printable, without_commands

__all__ = ["TerminalPage", "encodable", "hanging"]

#: What a line is, for whoever colours it.
Style = Literal["plain", "heading", "good", "bad", "warning", "dim"]

_NARROWEST = 40
#: Of the number of a character over the character itself.
_GROWTH = len("<U+003A>") - 1


#: Columns of what stands before a figure.
_LABEL = 14


class StyledLine(NamedTuple):
    """One line of text, without colour, and what it is."""

    text: str
    style: Style = "plain"


class TerminalPage:
    """Collects lines that are at most ``width`` wide and that ``encoding`` can hold."""

    def __init__(self, width: int = 100, encoding: str = "utf-8") -> None:
        """Start empty; a terminal narrower than 40 columns is taken as one of 40."""
        self.width = max(width, _NARROWEST)
        self.lines: list[StyledLine] = []
        self.encoding = encoding

    def line(self, text: str, style: Style = "plain") -> None:
        """Add a paragraph."""
        self.field("", text, style)

    def field(self, head: str, text: str, style: Style = "plain") -> None:
        """Add a paragraph whose lines start after ``head``."""
        head = encodable(printable(head), self.encoding)
        body = encodable(printable(text), self.encoding)
        lines = list(hanging(head, body, self.width, break_words=True))
        if any(line != without_commands(line) for line in lines):
            # A line that would begin with a command grows by a few characters.
            lines = list(hanging(head, body, self.width - _GROWTH, break_words=True))
        self.lines += [StyledLine(without_commands(line), style) for line in lines]

    def gap(self) -> None:
        """Add an empty line, but never two."""
        if self.lines and self.lines[-1].text:
            self.lines.append(StyledLine(""))

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Add rows, the first of them headings: names to the left, figures to the right."""
        texts = [[encodable(printable(cell), self.encoding) for cell in row] for row in rows]
        sizes = [max(len(cell) for cell in column) for column in zip(*texts, strict=True)]
        sizes[0] = min(sizes[0], self.width - 2 - sum(size + 2 for size in sizes[1:]))
        for number, row in enumerate(texts):
            name = row[0] if len(row[0]) <= sizes[0] else f"{row[0][: max(sizes[0] - 3, 1)]}..."
            cells = [cell.rjust(size) for cell, size in zip(row[1:], sizes[1:], strict=True)]
            text = "  ".join([f"  {name.ljust(sizes[0])}", *cells]).rstrip()
            self.lines.append(StyledLine(text[: self.width], "plain" if number else "heading"))


def hanging(head: str, text: str, width: int, *, break_words: bool = False) -> Iterator[str]:
    """Yield ``text`` wrapped at blanks, after ``head`` and under its own start."""
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
    """Return ``text`` with what ``encoding`` does not have written by its number."""
    # There and back: what begins a text of some encodings is no character of it.
    known = (char.encode(encoding, "ignore").decode(encoding) for char in text)
    return "".join(there or by_number(char) for there, char in zip(known, text, strict=True))


def label(name: str) -> str:
    """Return what stands before a figure, as wide as that of all others."""
    return f"{name:<{_LABEL}}"
