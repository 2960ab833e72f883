"""Readable edits: word diffs, and the earlier edits that a violation needs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pytest_dstfuzz.campaign.results import Minimal, VariantResult
from pytest_dstfuzz.perturb.edits import apply_edits, hunks, undo_edits
from pytest_dstfuzz.perturb.words import Edit, equal_ends
from pytest_dstfuzz.printable import by_number

__all__ = [
    "diff_spans",
    "legend",
    "mark_edits",
    "mark_spans",
    "visible",
]


#: Number of unchanged characters on each side of an edit if a text is shortened.
MARGIN = 60
_RED, _GREEN, _RESET = "\x1b[31m", "\x1b[32m", "\x1b[0m"
_WORDS_AND_BLANKS = re.compile(r"\s+|\S+")
_HIDDEN_CATEGORIES = ("Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp", "Mn", "Me")


class Span(NamedTuple):
    """A part of a diff. It is unchanged if ``before == after``."""

    before: str
    after: str

    @property
    def changed(self) -> bool:
        """Whether the two sides differ."""
        return self.before != self.after


def earlier_edits(
    shown: VariantResult | Minimal,
) -> Iterator[tuple[int, str, tuple[Edit, ...]]]:
    """Yield the index, the clean text and the edits of each earlier turn that has edits."""
    for earlier in shown.context_edits:
        text = shown.context[earlier.turn_index]
        yield earlier.turn_index, undo_edits(text, earlier.edits), earlier.edits


def needed_context(variant: VariantResult) -> Iterator[tuple[int, str, tuple[Edit, ...]]]:
    """Yield the `earlier_edits`, or nothing if the violation does not need them."""
    return iter(()) if variant.cause == "turn" else earlier_edits(variant.plain)


def diff_spans(source: str, edits: Sequence[Edit]) -> tuple[Span, ...]:
    """Return the changes of ``edits`` in ``source``, widened to whole words.

    If a text has the same word twice, only the edited one is marked. A word with two edits is one
    change. All ``before`` texts joined are ``source``. All ``after`` texts joined are the edited
    text.
    """
    return _widened(_narrowed(_aligned(source, edits)))


def mark_spans(source: str, edits: Sequence[Edit]) -> list[str | Span]:
    """Return ``source`` for a page as unchanged texts and changes. Characters are made visible."""
    spans: list[str | Span] = []
    stayed = ""
    for span in diff_spans(source, edits):
        if not span.changed:
            stayed += visible(span.before)
            continue
        lead, change, trail = _shown_change(span)
        spans += [stayed + visible(lead), change]
        stayed = visible(trail)
    return [span for span in (*spans, stayed) if span]


def mark_edits(
    source: str, edits: Sequence[Edit], *, colour: bool = False, margin: int | None = None
) -> str:
    """Return ``source`` with its edits marked.

    Unchanged text farther than ``margin`` characters from an edit is left out. If there is no edit,
    the middle of the text is left out.
    """
    spans = diff_spans(source, edits)
    last = len(spans) - 1
    parts = []
    for index, span in enumerate(spans):
        if span.changed:
            parts.append(_marked(span, colour, margin))
        else:
            text = span.before
            if margin is not None:
                alone = not last
                left, right = alone or index > 0, alone or index < last
                text = _shortened(text, margin * left, margin * right)
            parts.append(visible(text))
    return "".join(parts)


def shorten(text: str, limit: int = 400) -> str:
    """Return ``text`` without its middle if it is longer than ``limit``. Convert by `visible`."""
    return visible(text if len(text) <= limit else _shortened(text, limit // 2, limit // 2))


def visible(text: str) -> str:
    """Return ``text`` with code points instead of invisible characters."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(by_number(char) if _hidden(char) else char for char in text)


def legend(edits: Sequence[Edit]) -> tuple[str, ...]:
    """Return a line with the name of each non-ASCII character that the edits insert."""
    chars = sorted({char for edit in edits for char in edit.after if not char.isascii()})
    known = {char for edit in edits for char in edit.before}
    return tuple(
        (by_number(char) if _hidden(char) else f"{char} {by_number(char)}")
        + f" {unicodedata.name(char, 'no name')}"
        for char in chars
        if char not in known
    )


def _aligned(source: str, edits: Sequence[Edit]) -> Iterator[Span]:
    """Yield unchanged and changed spans, in order."""
    text = apply_edits(source, edits)
    here = there = 0
    for hunk in hunks(edits):
        kept = source[here : hunk.start]
        yield Span(kept, kept)
        yield Span(source[hunk.start : hunk.end], text[hunk.new_start : hunk.new_end])
        here, there = hunk.end, hunk.new_end
    yield Span(source[here:], text[there:])


def _narrowed(spans: Iterable[Span]) -> list[Span]:
    """Remove common prefixes and suffixes from every change."""
    narrow: list[Span] = []
    for before, after in spans:
        head, tail = equal_ends(before, after)
        parts = (
            Span(before[:head], after[:head]),
            Span(before[head : len(before) - tail], after[head : len(after) - tail]),
            Span(before[len(before) - tail :], after[len(after) - tail :]),
        )
        narrow.extend(part for part in parts if part.before or part.after)
    return narrow


def _widened(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Extend every change to whole words.

    The texts are split where neither text has a word. Each part with a change becomes one change.
    """
    columns = [
        column
        for span in spans
        for column in (
            [span]
            if span.changed
            else (Span(part, part) for part in _WORDS_AND_BLANKS.findall(span.before))
        )
    ]
    source = "".join(column.before for column in columns)
    edited = "".join(column.after for column in columns)
    wide: list[Span] = []
    part, here, there = Span("", ""), 0, 0
    for column in columns:
        part = Span(part.before + column.before, part.after + column.after)
        here, there = here + len(column.before), there + len(column.after)
        if not (_parted(source, here) and _parted(edited, there)):
            continue
        if wide and not wide[-1].changed and not part.changed:
            last = wide.pop()
            part = Span(last.before + part.before, last.after + part.after)
        wide.append(part)
        part = Span("", "")
    return tuple(wide)


def _parted(text: str, position: int) -> bool:
    """Return whether ``position`` is outside of the words of ``text``."""
    if position in (0, len(text)):
        return True
    return text[position - 1].isspace() or text[position].isspace()


def _shown_change(span: Span) -> tuple[str, Span, str]:
    """Return a changed span for display, and the blanks around its marks.

    Blanks around an inserted or deleted word stay outside the marks. Invisible and misleading
    characters are replaced by their code points.
    """
    before, after = span
    lead = trail = ""
    if not before or not after:
        text = before or after
        if text.strip():
            lead = text[: len(text) - len(text.lstrip())]
            trail = text[len(text.rstrip()) :]
            before, after = before.strip(), after.strip()
    return lead, Span(_seen(before), _seen(after)), trail


def _marked(span: Span, colour: bool, margin: int | None) -> str:
    lead, (before, after), trail = _shown_change(span)
    marks = ""
    for shown, opening, closing, paint in (
        (before, "[-", "-]", _RED),
        (after, "{+", "+}", _GREEN),
    ):
        if not shown:
            continue
        text = shown
        if margin is not None and len(text) > 4 * margin:
            text = _shortened(text, 2 * margin, 2 * margin)
        mark = f"{opening}{text}{closing}"
        marks += f"{paint}{mark}{_RESET}" if colour else mark
    return f"{lead}{marks}{trail}"


def _seen(text: str) -> str:
    """Return changed text for display. If it is blank, each blank becomes a visible mark."""
    return "<SPACE>" * len(text) if text and not text.strip(" ") else _unmistakable(text)


def _unmistakable(text: str) -> str:
    """Return text with code points for invisible characters and foreign letters."""
    if text.isascii():
        return visible(text)
    words = []
    for word in text.split(" "):
        latin = any(char.isascii() and char.isalpha() for char in word)
        words.append(
            "".join(
                by_number(char) if _hidden(char) or (latin and _foreign(char)) else char
                for char in word
            )
        )
    return " ".join(words)


def _hidden(char: str) -> bool:
    category = unicodedata.category(char)
    return category in _HIDDEN_CATEGORIES or (category == "Zs" and char != " ")


def _foreign(char: str) -> bool:
    """Return whether a letter is not Latin, or a variant of a Latin letter (such as fullwidth)."""
    if char.isascii() or not char.isalpha():
        return False
    name = unicodedata.name(char, "")
    return not name.startswith(("LATIN SMALL LETTER", "LATIN CAPITAL LETTER")) or (
        not unicodedata.decomposition(char)
    )


def _shortened(text: str, head: int, tail: int) -> str:
    left_out = len(text) - head - tail
    if left_out <= MARGIN // 2:  # The notice would be as long as the omitted text.
        return text
    start = f"{text[:head]} " if head else ""
    end = f" {text[len(text) - tail :]}" if tail else ""
    return f"{start}... ({left_out:,} characters) ...{end}"
