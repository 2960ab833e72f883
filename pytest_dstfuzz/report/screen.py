"""The first screen: the last lines of a run, which say what is wrong and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from pytest_dstfuzz.campaign.figures import TURNS, ExpectedFailures, interval_name
from pytest_dstfuzz.campaign.results import Results, TurnResult, VariantResult
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.config.parsers import per_1000, percent
from pytest_dstfuzz.printable import counted
from pytest_dstfuzz.report.answers import reply_lines
from pytest_dstfuzz.report.explain import change_lines, keyword
from pytest_dstfuzz.report.figures import usage_text
from pytest_dstfuzz.report.json_report import RunInfo
from pytest_dstfuzz.report.page import Style, StyledLine, TerminalPage, label
from pytest_dstfuzz.report.terminal import left_out_texts, show_added
from pytest_dstfuzz.report.weaknesses import said, weaknesses_text
from pytest_dstfuzz.report.wording import shorten
from pytest_dstfuzz.totals.totals import RelationTotals, Totals
from pytest_dstfuzz.weaknesses.advice import Mending
from pytest_dstfuzz.weaknesses.groups import Weakness

__all__ = ["screen_lines"]

#: Maximum number of weaknesses, relations and new violations.
_MOST: Final = 5
_MOST_NEW: Final = 2
#: Error probability of an upper bound for a weakness that the sample did not meet.
_UNSEEN: Final = 0.05
#: End of the verdict of a run without a gate.
_NO_LIMIT: Final = "; no limit is set (--dst-max-failure-rate=RATE)"
#: Maximum length of an example and of a change, in characters.
_LONGEST: Final = 100


def screen_lines(
    results: Results,
    settings: Settings,
    info: RunInfo,
    totals: Totals,
    *,
    verdict: Literal["gate", "failed", ""] = "",
    width: int = 100,
    encoding: str = "utf-8",
    command: str = "",
) -> list[StyledLine]:
    """Return at most 30 lines about the results of one tracker.

    Args:
        results: of the tracker.
        settings: of the run.
        info: facts of the run.
        totals: the figures of ``results``.
        verdict: whether the lines above this text are the verdict of a gate, so that this text
            has none, or say why the run failed.
        width: of the terminal, in columns.
        encoding: of the terminal.
        command: repeats the run and fails each violation; ``""`` if it cannot be repeated.
    """
    page = TerminalPage(width, encoding)
    sections = totals.sections(settings.variant.relation)
    first = totals.first(settings.variant.relation)
    if verdict != "gate":
        _verdict(page, sections, "" if verdict else _NO_LIMIT)
    for text in left_out_texts(totals, info):
        name, _, rest = text.partition(": ")
        page.field(label(name), rest, "warning")
    _clean(page, totals, first.summary)
    if len(sections) > 1:
        _relations(page, sections)
    expected = next((one.summary.expected_failures for one in sections), None)
    if expected is not None:
        _estimate(page, expected, totals, first.summary.dialogues_tested)
    _caveats(page, info, totals)
    _new(page, totals, results)
    _weaknesses(page, totals.weaknesses, expected)
    _corrector(page, totals.mending)
    show_added(page, totals)
    _end(page, sections, info, totals, command)
    return page.lines


def _verdict(page: TerminalPage, sections: Sequence[RelationTotals], note: str) -> None:
    """Say how many turns break, if no gate has judged the run."""
    broken = sum(one.summary.turns_broken for one in sections)
    tested = sum(one.summary.turns_tested for one in sections)
    errors = sum(one.summary.errors for one in sections)
    style: Style = "bad" if broken or errors else "good" if tested else "warning"
    text = f"{broken:,} of {counted(tested, 'tested turn')} break"
    if errors:
        text += f", and {counted(errors, 'variant')} got no answer"
    page.field(label("verdict"), f"{text}{note}", style)


def _clean(page: TerminalPage, totals: Totals, summary: Summary) -> None:
    """Say how often the unmodified turns are answered right, or not at all."""
    words = totals.kind.words
    texts = []
    if summary.clean_labelled:
        texts.append(
            f"{percent(summary.clean_accuracy)} of the clean {words.answers} are right "
            f"({summary.clean_right:,} of {summary.clean_labelled:,} with labels)"
        )
    unanswered, replies = totals.fallbacks
    if replies:
        texts.append(
            f"the bot answers {replies - unanswered:,} of {counted(replies, 'clean turn')}"
        )
    elif summary.clean_empty:
        texts.append(f"{summary.clean_empty:,} of {summary.clean_answered:,} are empty")
    if texts:
        page.field(label("unmodified"), "; ".join(texts))


def _relations(page: TerminalPage, sections: Sequence[RelationTotals]) -> None:
    """Add a line for each relation, the highest failure rate first."""
    ranked = sorted(sections, key=lambda one: -(one.summary.failure_rate or 0.0))
    for one in ranked[:_MOST]:
        summary = one.summary
        page.field(
            label("relation"),
            f"{one.name}: {counted(summary.violations, 'violation')} in {summary.turns_broken:,} "
            f"of {counted(one.applicable, one.unit)}",
            "bad" if summary.violations else "good",
        )
    if len(ranked) > _MOST:
        page.field(label(""), f"... and {len(ranked) - _MOST} more relations (-v)", "dim")


def _estimate(
    page: TerminalPage, expected: ExpectedFailures, totals: Totals, dialogues: int
) -> None:
    """Say how many of 1,000 user turns fail, and split them by the labels."""
    if expected.per_1000 is None:
        page.field(label("estimate"), f"none: {expected.reason}", "warning")
        return
    slips = f"slips in {100 * (expected.slip_rate or 0.0):g} % of the words"
    text = (
        f"{per_1000(expected.per_1000)} of {TURNS:,} user turns with {slips} change the "
        f"{totals.kind.words.what}"
    )
    if expected.interval is not None:
        low, high = map(per_1000, expected.interval)
        text += f" ({interval_name(dialogues)} {low} to {high})"
    page.field(label("estimate"), text, "bad" if expected.per_1000 else "good")
    if expected.right_to_wrong_per_1000 is None or expected.wrong_to_wrong_per_1000 is None:
        return
    page.field(
        label(""),
        f"{per_1000(expected.right_to_wrong_per_1000)} from right to wrong, "
        f"{per_1000(expected.wrong_to_wrong_per_1000)} from wrong to wrong; another "
        f"{per_1000(expected.corrected_per_1000 or 0.0)} are corrected",
    )


def _caveats(page: TerminalPage, info: RunInfo, totals: Totals) -> None:
    """Name errors, answers that vary, and a judge that is a language model."""
    reasons = totals.errors
    for reason, times in list(reasons.items())[:1]:
        more = f" (and {len(reasons) - 1} other reasons)" if len(reasons) > 1 else ""
        page.field(label("error"), f"{times:,} x {shorten(reason)}{more}", "bad")
    varies = info.disagreement
    if varies is not None and varies.differed and totals.kind.words.values:
        text = (
            f"{varies.differed} of {varies.contexts} contexts got different answers when asked "
            f"{varies.answers} times each"
        )
        page.field(label("answers vary"), text, "warning")
    if info.judge is not None:
        judge, counts = info.judge
        text = f"a language model compares the replies: {judge.model}"
        if judge.is_tested_model:
            text += ", which is the tested model and favours its own words"
        undecided = counts.unsure + counts.past_budget
        text += f"; undecided on {undecided:,} of {counted(counts.pairs, 'pair')}"
        page.field(label("judge"), text, "warning" if undecided else "plain")


def _new(page: TerminalPage, totals: Totals, results: Results) -> None:
    """Add the simplest violations that are new since the baseline."""
    new = len(totals.novelty.new)
    if not new:
        return
    page.gap()
    page.line(f"{counted(new, 'new violation')} since the baseline", "heading")
    for turn, variant in totals.novelty.plainest_new(results, _MOST_NEW):
        page.field(f"  {turn.id}, variant {variant.index}: ", _example(turn, variant), "bad")


def _weaknesses(
    page: TerminalPage, found: Sequence[Weakness], expected: ExpectedFailures | None
) -> None:
    """Add the first weaknesses with frequency and example, those that are not accepted first."""
    if not found:
        return
    ranked = sorted(found, key=lambda one: bool(one.accepted))
    page.gap()
    more = f", the first {_MOST} (-v shows all)" if len(found) > _MOST else ""
    page.line(f"{weaknesses_text(found)}{more}", "heading")
    for number, one in enumerate(ranked[:_MOST], 1):
        facts = ", ".join(_frequency(one, expected))
        accepted = f"; accepted: {one.accepted}" if one.accepted else ""
        style: Style = "dim" if one.accepted else "bad"
        page.field(f"{number:>3}. ", f"{one.description}: {facts}{accepted}", style)
        page.field("     ", _example(one.example.turn, one.example.variant))


def _corrector(page: TerminalPage, effect: Mending | None) -> None:
    """Say what a spelling corrector before the bot would mend, if that is much."""
    if effect is not None and effect.pays:
        page.field(
            label("try"),
            f"a spelling corrector before the bot: it restores {effect.mended:,} of "
            f"{counted(effect.violations, 'violation')} and alters {effect.altered:,} of "
            f"{counted(effect.turns, 'clean turn')}",
        )


def _frequency(one: Weakness, expected: ExpectedFailures | None) -> Iterator[str]:
    """Yield how many turns a weakness breaks here, and how many of 1,000 by the sample."""
    yield counted(one.turns, "turn")
    if one.expected:
        yield f"{one.expected:.2g} of {TURNS:,}"
    elif one.expected is not None and expected is not None:
        # The exact form of the rule of three, for a weighted sample.
        share = 1 - _UNSEEN ** (1 / expected.effective_sample_size)
        bound = share * expected.distorted_per_1000
        yield f"found by search alone (below {bound:.2g} of {TURNS:,} with 95 % confidence)"


def _example(turn: TurnResult, variant: VariantResult) -> str:
    """Return the edited words of a violation and the change of the answer."""
    changed = variant.plain.changed_slots
    if turn.kind.words.values:
        changes = "; ".join(change_lines(changed, turn)[:2])
    else:
        texts = dict(reply_lines(changed[:1], None, turn.own))
        both = [texts[name] for name in ("before", "replied") if name in texts]
        changes = " -> ".join(f'"{shorten(text, _LONGEST // 2)}"' for text in both)
    return f"{shorten(said(variant), _LONGEST)} => {shorten(changes, _LONGEST)}"


def _end(
    page: TerminalPage,
    sections: Sequence[RelationTotals],
    info: RunInfo,
    totals: Totals,
    command: str,
) -> None:
    """Add the cost and the commands that show more and repeat the first failure."""
    page.gap()
    calls = sum(one.summary.calls for one in sections)
    shrinking = sum(one.summary.minimiser_calls for one in sections)
    cost = counted(calls, "call")
    if shrinking:
        cost += f" and {shrinking:,} more to find the smallest edits"
    if info.recalled:
        cost += f"; {counted(info.recalled, 'answer')} from the cache"
    if info.usage is not None and info.usage.uncounted < info.usage.answers:
        cost += f"; tokens: {usage_text(info.usage)}"
    if info.seconds is not None:
        cost += f"; {info.seconds:,.0f} s"
    page.field(label("cost"), cost)
    page.field(
        label("more"), "-v adds tables; --dst-report=report.html shows every violation", "dim"
    )
    if command and totals.weaknesses:
        turn, variant, _ = totals.weaknesses[0].example
        page.command(
            label("repeat"), f"{command} --dst-variant={variant.index} -k '{keyword(turn.id)}'"
        )
