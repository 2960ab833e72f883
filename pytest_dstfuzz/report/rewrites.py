"""How a failed rewrite reads: what was edited or moved; before, expected and found by slot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pytest_dstfuzz.campaign.results import BY_LABEL, SeenRound, TurnResult, VariantResult
from pytest_dstfuzz.dialogue.outcome import Outcome
from pytest_dstfuzz.dialogue.values import shown_value
from pytest_dstfuzz.perturb.edits import undo_edits
from pytest_dstfuzz.printable import printable
from pytest_dstfuzz.report.edits import MARGIN, mark_edits, shorten

#: Slots that are as they should be and are shown beside the others.
_MOST_HELD: Final = 6
#: Characters of a value that are shown.
_LONGEST: Final = 30
#: Rounds shown where they moved: the last ones.
_MOST_ROUNDS: Final = 12


class SlotRow(NamedTuple):
    """One slot of a rewrite; ``None`` = absent."""

    slot: str
    before: str | None
    #: In words: the values of which it is to have one.
    expected: str
    found: str | None
    #: Why it is not as expected: ``stuck``, ``not expected``, ``changed``, and what the label says
    #: of that; ``""`` = it is.
    wrong: str = ""


def is_rewritten(variant: VariantResult) -> bool:
    """Whether the relation itself edited the turn, and not the search."""
    return bool(variant.about or variant.expected or variant.moves)


def slot_rows(variant: VariantResult) -> list[SlotRow]:
    """Return the slots of a rewrite that was answered: wrong ones, those to change, all others."""
    deltas = {delta.slot: delta for delta in variant.expected}
    missed = {change.slot: change for change in variant.changed_slots}
    state = variant.state or Outcome()
    rows = []
    for slot in sorted({*deltas, *missed, *state}):
        found = state.get(slot)
        if slot in missed:
            before, found = missed[slot].before, missed[slot].after
        else:
            # Without a delta it is as it was, or it would have been missed.
            before = deltas[slot].before if slot in deltas else found
        expected = str(deltas[slot].after) if slot in deltas else shown_value(before)
        wrong = ""
        if slot in missed:
            stuck = slot in deltas and before == found
            wrong = "stuck" if stuck else "not expected" if slot in deltas else "changed"
            if (told := missed[slot].by_label) is not None:
                wrong = f"{wrong}: {BY_LABEL[told]}"
        rows.append(SlotRow(slot, before, expected, found, wrong))
    return sorted(rows, key=lambda row: (not row.wrong, row.slot not in deltas, row.slot))


def slot_table(variant: VariantResult, what: str = "slot") -> list[str]:
    """Return the slots of a rewrite as lines of a table; few of those that are as they should be.

    Columns: slot (or ``what`` it is called), before, expected, found, and what is wrong with it.
    """
    rows = slot_rows(variant)
    fine = [row for row in rows if not row.wrong]
    wrong = [row for row in rows if row.wrong]
    cells = [(what, "before", "expected", "found", "")]
    for row in [*wrong, *fine[:_MOST_HELD]]:
        values = (
            *(row.slot, shown_value(row.before), row.expected, shown_value(row.found)),
            row.wrong,
        )
        cells.append(tuple(shorten(value, _LONGEST) for value in values))  # type: ignore[arg-type]  # five of them
    widths = [max(len(line[column]) for line in cells) for column in range(4)]
    lines = ["  ".join([*map(str.ljust, line[:4], widths), line[4]]).rstrip() for line in cells]
    if more := len(fine[_MOST_HELD:]):
        lines.append(f"... and {more} more that are as expected")
    return lines


def round_lines(rounds: Sequence[SeenRound]) -> Iterator[tuple[str, str]]:
    """Yield who spoke and what was said, where the rounds are not those of the dialogue."""
    left = max(0, len(rounds) - _MOST_ROUNDS)
    if left:
        yield "...", f"{left} rounds before"
    for said in rounds[left:]:
        if said.system:
            yield "system", shorten(said.system, 160)
        yield "user", shorten(said.user, 160)


def rewritten_text(variant: VariantResult) -> str:
    """Return the utterance of a rewrite with its edits marked."""
    return mark_edits(undo_edits(variant.text, variant.edits), variant.edits, margin=MARGIN)


def rewrites_headline(result: TurnResult, broken: int, tested: int) -> str:
    """Say how many rewrites of a turn are not answered as expected."""
    follow, what = result.side == "should-change", result.kind.words.what
    if broken == 1:
        verb = "is not followed" if follow else f"changes the {what}"
    else:
        verb = "are not followed" if follow else f"change the {what}"
    if follow and not result.kind.words.values:
        verb = "gets the same reply" if broken == 1 else "get the same reply"
    noun = "rewrite" if tested == 1 else "rewrites"
    return printable(f"{broken} of {tested} {noun} {verb}")
