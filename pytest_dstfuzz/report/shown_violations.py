"""Violations in the terminal summary: the new ones first, and the plainest."""

from __future__ import annotations

from typing import Final

from pytest_dstfuzz.campaign.results import Results, TurnResult, VariantResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.perturb.edits import undo_edits
from pytest_dstfuzz.printable import counted
from pytest_dstfuzz.report.edits import MARGIN, mark_edits, needed_context, shorten
from pytest_dstfuzz.report.explain import change_lines, keyword
from pytest_dstfuzz.report.page import TerminalPage
from pytest_dstfuzz.report.rounds import move_texts
from pytest_dstfuzz.totals.plainest import Novelty
from pytest_dstfuzz.totals.totals import MOST_PLAINEST, RelationTotals, Totals

#: Violations that are shown; more under the gate, where no test shows its own.
_PLAINEST: Final = 3
#: Unchanged characters shown on each side of an edit.
_MARGIN: Final = 40


def show_new(page: TerminalPage, totals: Totals, results: Results) -> None:
    """Add the violations that are new since the baseline, before all else."""
    count = len(totals.novelty.new)
    pairs = totals.novelty.plainest_new(results, MOST_PLAINEST)
    if pairs:
        more = f" (the {len(pairs)} plainest)" if count > len(pairs) else ""
        page.line(f"{counted(count, 'new violation')} since the baseline{more}", "heading")
        for turn, variant in pairs:
            _show_violation(page, turn, variant)
        page.gap()


def _show_violation(
    page: TerminalPage, turn: TurnResult, variant: VariantResult, novelty: Novelty | None = None
) -> None:
    """Add where a violation is, what was said and what changed."""
    word = keyword(turn.id)
    called = "" if word == turn.id else f" (ID {word})"
    noted = f" ({note})" if novelty and (note := novelty.note(turn, variant)) else ""
    page.field("  ", f"{turn.id}{called}, variant {variant.index}{noted}", "bad")
    if turn.system:
        page.field("    system: ", shorten(turn.system, 160), "dim")
    if variant.about:
        page.field("    rewrite:", f" {variant.about}")
    shown = variant.plain
    source = undo_edits(shown.text, shown.edits)
    page.field("    user:   ", mark_edits(source, shown.edits, margin=_MARGIN))
    for index, clean, edits in needed_context(variant):
        page.field(f"    turn {index}: ", mark_edits(clean, edits, margin=_MARGIN))
    how = f"{variant.failure}: " if variant.failure not in (None, "changed") else ""
    for line in change_lines(shown.changed_slots, turn):
        page.field("    ", f"{how}{line}")


def show_plainest(
    page: TerminalPage, section: RelationTotals, settings: Settings, command: str, novelty: Novelty
) -> None:
    """Add the violations that are easiest to follow; those that the baseline has are marked."""
    gate = settings.gate.fail_on == "gate"
    pairs = section.plainest.pairs[: MOST_PLAINEST if gate else _PLAINEST]
    if not pairs:
        return
    page.gap()
    page.line("the plainest violations", "heading")
    for turn, variant in pairs:
        _show_violation(page, turn, variant, novelty)
    if gate and command and settings.variant.variant is None:
        page.field(
            "  ", f"to repeat variant I of turn ID alone: {command} --dst-variant=I -k ID", "dim"
        )


def violation_lines(turn: TurnResult, variant: VariantResult) -> list[str]:
    """Return what was said in a violation, its edits marked, and what changed."""
    shown = variant.plain
    return [
        *(
            f"turn {index}: {mark_edits(source, edits, margin=MARGIN)}"
            for index, source, edits in needed_context(variant)
        ),
        *(
            move_texts(variant)
            if variant.moves
            else [f"user: {mark_edits(turn.user, shown.edits, margin=MARGIN)}"]
        ),
        *(shorten(line) for line in change_lines(shown.changed_slots, turn)),
    ]
