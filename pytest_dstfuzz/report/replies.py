"""How two replies read beside each other: the words that differ, and how far they are apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from pytest_dstfuzz.campaign.results import BY_LABEL, ChangedSlot, Spread, TurnResult
from pytest_dstfuzz.perturb.types import Edit
from pytest_dstfuzz.report.edits import Span, mark_edits, shorten, shown_spans, visible

_PIECES: Final = re.compile(r"\s+|\S+")
#: Share of the words that two replies have in common from which on their differences are marked.
_ALIKE: Final = 0.5
#: Words and blanks of a reply up to which they are looked for.
_MOST_PIECES: Final = 1000
#: Characters of a reply that are shown, and those beside a difference.
MOST_SAID: Final = 600
_MARGIN: Final = 100


def differences(before: str, after: str) -> tuple[Edit, ...]:
    """Return what turns one reply into another, as edits of whole words, the last one first.

    None where they have little in common, or are very long: then they are read as a whole.

    >>> [(edit.before, edit.after) for edit in differences("It opens at nine.", "It opens at ten.")]
    [('nine.', 'ten.')]
    """
    old, new = _PIECES.findall(before), _PIECES.findall(after)
    if max(len(old), len(new)) > _MOST_PIECES:
        return ()
    matcher = SequenceMatcher(str.isspace, old, new, autojunk=False)
    kept = sum(_letters(old[at : at + size]) for at, _, size in matcher.get_matching_blocks())
    if kept < _ALIKE * max(_letters(old), _letters(new)):
        return ()
    starts = [0]
    for piece in old:
        starts.append(starts[-1] + len(piece))
    return tuple(
        Edit(
            "",
            "",
            starts[first],
            starts[last],
            "".join(old[first:last]),
            "".join(new[here:there]),
        )
        for kind, first, last, here, there in reversed(matcher.get_opcodes())
        if kind != "equal"
    )


def reply_lines(
    changes: Sequence[ChangedSlot], shown: str | None, own: Spread | None
) -> Iterator[tuple[str, str]]:
    """Yield what came in the place of a reply: what it is called, and a text.

    ``replied`` is the reply, with the words marked that differ from the one that it is held
    against; ``before`` is that one, where they have little in common and it is not the one that is
    ``shown`` anyway; ``differs`` or ``apart`` why it is another one.
    """
    for change in changes:
        before, after = _texts(change)
        # Without what was said two replies may look alike.
        if before == after and change.expected is not None:
            yield "replied", f"the same again: {shorten(after, MOST_SAID)}"
            continue
        edits = differences(before, after)
        if edits:
            yield "replied", mark_edits(before, edits, margin=_MARGIN)
        else:
            if before != shown:
                yield "before", shorten(before, MOST_SAID)
            yield "replied", shorten(after, MOST_SAID)
        yield from why_lines(change, own)


def why_lines(change: ChangedSlot, own: Spread | None) -> Iterator[tuple[str, str]]:
    """Yield why a reply is another one, if the comparison says it, and which one is right."""
    if change.distance is not None:
        within = None if own is None else own.largest
        far = "" if within is None else f"; its own replies lie within {within:.2f}"
        yield "apart", f"{change.why or f'{change.distance:.2f}'}{far}"
    elif change.why:
        yield "differs", change.why
    if change.by_label is not None:
        yield "label", BY_LABEL[change.by_label]


#: A reply as a page draws it: text, and what is gone from it or new in it.
Spans = list[str | Span]


def reply_pairs(
    turn: TurnResult, changes: Sequence[ChangedSlot]
) -> list[tuple[Spans, Spans, list[str]]]:
    """Return what was replied and what came in its place, side by side, and why it is another one.

    What is gone is marked in the one, what is new in the other. Nothing of states.
    """
    found: list[tuple[Spans, Spans, list[str]]] = []
    for change in () if turn.kind.words.values else changes:
        before, after = _texts(change)
        edits = differences(before, after)
        spans = shown_spans(before, edits)
        left: Spans = [one if isinstance(one, str) else Span(one.before, "") for one in spans]
        right: Spans = [one if isinstance(one, str) else Span("", one.after) for one in spans]
        why = [f"{name}: {visible(text)}" for name, text in why_lines(change, turn.own)]
        found.append((left, right if edits else [visible(after)], why))
    return found


def _texts(change: ChangedSlot) -> tuple[str, str]:
    return change.before or "", change.after or ""


def _letters(pieces: Sequence[str]) -> int:
    """Return how long the words of a text are together."""
    return sum(len(piece) for piece in pieces if not piece.isspace())
