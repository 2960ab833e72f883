"""Judging in the terminal: one row at a time, an answer a key, nothing lost by leaving."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Final, TextIO

from pytest_dstfuzz.audit.record import Audit
from pytest_dstfuzz.audit.sample import AuditRow
from pytest_dstfuzz.perturb.edits import undo_edits
from pytest_dstfuzz.printable import without_commands
from pytest_dstfuzz.report.edits import legend, mark_edits, visible
from pytest_dstfuzz.report.page import encodable, hanging

#: What a terminal in cbreak mode sends for Ctrl-D.
_END_OF_INPUT: Final = "\x04"
_WIDTH: Final = 100


def judge_rows(
    audit: Audit, judge: str, out: TextIO, read_key: Callable[[], str], *, colour: bool
) -> None:
    """Ask for a verdict on every row that the judge has none for.

    Each answer is written before the next row is shown. Rows that are skipped stay without
    a verdict, and are asked for when the audit is taken up again. ``read_key`` returns the next
    key, ``""`` at the end of the input; edits are marked without ``colour`` too.
    """
    rows, question = audit.sample.order(judge), audit.sample.question
    answers = question.answers
    keys = ", ".join([*(" ".join(pair) for pair in answers.items()), "s skip, b back, q quit"])
    place = _next(audit, judge, rows, 0)
    while place < len(rows):
        row = rows[place]
        _print(out, [f"--- {place + 1} of {len(rows)} ({row.id})", *row_lines(row, colour=colour)])
        before = audit.verdicts(judge).get(row.id)
        said = f" (so far: {before})" if before else ""
        out.write(f"{question.text}{said} {keys} > ")
        out.flush()
        key = _next_key(out, read_key, keys, answers)
        if key in ("", "q"):
            return
        if key in answers:
            audit.say(judge, {row.id: answers[key]})
        place = max(place - 1, 0) if key == "b" else _next(audit, judge, rows, place + 1)


def _next(audit: Audit, judge: str, rows: Sequence[AuditRow], start: int) -> int:
    """Return the first place from ``start`` on whose row has no verdict; the end without any."""
    given = audit.verdicts(judge)
    left = (place for place in range(start, len(rows)) if rows[place].id not in given)
    return next(left, len(rows))


def row_lines(row: AuditRow, *, colour: bool = False) -> Iterator[str]:
    """Yield a row as a judge reads it in the terminal."""
    for turn in row.earlier:
        if turn.system:
            yield from hanging("  system: ", visible(turn.system), _WIDTH)
        clean = undo_edits(turn.user, turn.edits)
        yield from hanging("  user:   ", mark_edits(clean, turn.edits, colour=colour), _WIDTH)
    if row.system:
        yield from hanging("  system: ", visible(row.system), _WIDTH)
    yield from hanging("> clean:  ", visible(row.clean), _WIDTH)
    yield from hanging("> edited: ", mark_edits(row.clean, row.edits, colour=colour), _WIDTH)
    for line in legend(row.edits):
        yield f"          {line}"
    for text in row.moves:
        yield from hanging("  moved:   ", text, _WIDTH)
    for text in row.stated:
        yield from hanging("> stated: ", visible(text), _WIDTH)
    for change in row.changes:
        yield from hanging("  tracker: ", visible(change), _WIDTH)


def key_reader(source: TextIO) -> Callable[[], str]:
    """Return what reads the next key: from a terminal at once, from all else by the line."""
    if source.isatty() and os.name == "posix":
        return lambda: _pressed(source)
    # The first letter of the next line that is not empty.
    return lambda: next((line.strip()[0] for line in source if line.strip()), "")


def _next_key(out: TextIO, read_key: Callable[[], str], keys: str, answers: Container[str]) -> str:
    """Return the next key that means something, ``""`` at the end of the input."""
    while True:
        key = read_key().lower()
        if key in ("", "s", "b", "q") or key in answers:
            out.write(f"{key}\n")
            return key
        # Not the key itself: it may begin an escape sequence, or be no character of the terminal.
        out.write(f"?\n{keys} > ")
        out.flush()


def _pressed(source: TextIO) -> str:
    """Read one key without waiting for the end of a line; Ctrl-C still interrupts."""
    import termios  # noqa: PLC0415 - not on every system
    import tty  # noqa: PLC0415 - likewise

    number = source.fileno()
    before = termios.tcgetattr(number)
    try:
        # It also drops what was typed before: that was no answer to the row that is shown.
        tty.setcbreak(number)
        # Past the buffer of the text layer, which would read ahead.
        key = os.read(number, 1).decode("ascii", "replace")
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)
    return "" if key == _END_OF_INPUT else key


def _print(out: TextIO, lines: list[str]) -> None:
    encoding = getattr(out, "encoding", None) or sys.getdefaultencoding()
    out.write("\n" + "".join(f"{without_commands(encodable(line, encoding))}\n" for line in lines))
