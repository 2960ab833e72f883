"""What was tested, and how, as a terminal shows it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.report.json_report import RunInfo
from pytest_dstfuzz.report.judges import judge_texts
from pytest_dstfuzz.report.own_spread import spread_texts
from pytest_dstfuzz.report.page import TerminalPage, label
from pytest_dstfuzz.report.tally import disagreement_text
from pytest_dstfuzz.totals.totals import Totals

#: From this share of clean replies that are no answer on, a run looks like a mistake.
_MANY_FALLBACKS: Final = 0.3


def show_run(
    page: TerminalPage,
    settings: Settings,
    info: RunInfo,
    how: Iterable[str],
    totals: Totals,
) -> None:
    """Add what was tested, and how: a paragraph for each text; of replies how far they vary."""
    words = KINDS[settings.reply.outcome].words
    model = settings.tracker.model or f"the suite's own {words.who.removeprefix('the ')}"
    values = f", values normalised as '{info.normalisation}'" if words.values else ""
    page.field(
        label("tested"),
        f"{model} on {info.data}, split {info.split} ({info.layout} layout{values}; "
        f"{info.dialogues:,} dialogues, {info.turns:,} turns)",
    )
    for number, text in enumerate(how):
        page.field(label("" if number else "how"), text)
    if info.compared:
        page.field(label("compared"), f"{words.what} with {words.what}: {info.compared}")
        for number, (text, style) in enumerate(spread_texts(totals.replies.rows(), info.compared)):
            page.field(label("" if number else "own spread"), text, style)
    if info.judge is not None:
        for number, (text, style) in enumerate(judge_texts(*info.judge)):
            page.field(label("" if number else "judge"), text, style)
    if info.disagreement is not None and words.values:
        page.field(label("answers vary"), disagreement_text(info.disagreement, settings.tracker))
    if info.recalled:
        text = f"{info.recalled:,} answers; {words.who} was asked for {info.asked:,} contexts"
        page.field(label("from cache"), text)
    if text := _without_answer(*totals.fallbacks):
        page.field(label("note"), text, "warning")
    for note in info.notes:
        page.field(label("note"), note, "dim")


def _without_answer(unanswered: int, replies: int) -> str:
    """Say that many of a bot's clean replies give no answer; ``""`` where few do, or of states."""
    if unanswered < 2 or unanswered < _MANY_FALLBACKS * replies:
        return ""
    return f"{unanswered:,} of {replies:,} clean replies are no answer: wrong data or endpoint?"
