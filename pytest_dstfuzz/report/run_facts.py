"""What was tested, and how, as a terminal shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.report.json_report import RunInfo
from pytest_dstfuzz.report.own_spread import spread_texts
from pytest_dstfuzz.report.page import TerminalPage, label
from pytest_dstfuzz.report.tally import disagreement_text
from pytest_dstfuzz.report.words import words_of


def show_run(
    page: TerminalPage,
    settings: Settings,
    info: RunInfo,
    how: Iterable[str],
    results: Sequence[TurnResult],
) -> None:
    """Add what was tested, and how: a paragraph for each text; of replies how far they vary."""
    words = words_of(settings.reply.outcome)
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
        for number, (text, style) in enumerate(spread_texts(results, info.compared)):
            page.field(label("" if number else "own spread"), text, style)
    if info.disagreement is not None and words.values:
        page.field(
            label("answers vary"), disagreement_text(info.disagreement, settings.tracker.votes)
        )
    if info.recalled:
        text = f"{info.recalled:,} answers; the tracker was asked for {info.asked:,} contexts"
        page.field(label("from cache"), text)
    for note in info.notes:
        page.field(label("note"), note, "dim")
