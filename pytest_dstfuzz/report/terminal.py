"""The terminal summary: what was tested, what broke, and what was left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from pytest_dstfuzz.campaign.intervals import FEW_DIALOGUES, FEWEST_DIALOGUES, interval_name
from pytest_dstfuzz.campaign.ledger import Counts
from pytest_dstfuzz.campaign.results import Results, TurnOutcome
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.config import PROFILES, Settings, VariantSettings
from pytest_dstfuzz.config.rates import percent
from pytest_dstfuzz.kinds.kind import Words
from pytest_dstfuzz.printable import counted
from pytest_dstfuzz.report.chances import ALL_DISTORTED, show_user_turns, user_turns_short
from pytest_dstfuzz.report.edits import shorten
from pytest_dstfuzz.report.json_report import RunInfo
from pytest_dstfuzz.report.page import Style, StyledLine, TerminalPage, label
from pytest_dstfuzz.report.run_facts import show_run
from pytest_dstfuzz.report.shown_violations import show_new, show_plainest
from pytest_dstfuzz.report.tally import (
    causes_text,
    noise_text,
    repeats_text,
    sizes_text,
    usage_text,
    wobble_text,
)
from pytest_dstfuzz.report.weaknesses import show_weaknesses, weaknesses_text
from pytest_dstfuzz.selection import Edits
from pytest_dstfuzz.totals.totals import RelationTotals, Totals
from pytest_dstfuzz.trackers.tracker import Usage
from pytest_dstfuzz.transformations import TRANSFORMATIONS
from pytest_dstfuzz.weaknesses.groups import Weakness

_MOST_SLOTS = 10
_MOST_REASONS = 5
#: What may become of a turn that was not skipped, as it is listed.
_OUTCOMES: Final[tuple[TurnOutcome, ...]] = (
    *("held", "violation", "error", "untested", "inapplicable"),
)


def terminal_lines(
    results: Results,
    settings: Settings,
    info: RunInfo,
    *,
    verbosity: int = 0,
    width: int = 100,
    encoding: str = "utf-8",
    command: str = "",
    totals: Totals | None = None,
) -> list[StyledLine]:
    """Return the summary of a campaign: one line where ``verbosity`` is below 0, more above it.

    The ``command`` repeats the run and fails each violation; under the gate it is shown, with
    how to choose one. ``totals`` are of ``results`` unless they are given, as for the JSON
    report.
    """
    if totals is None:
        totals = Totals.of(results, info.relations, settings.reply.fallback)
    found, first = totals.weaknesses, totals.first(settings.variant.relation)
    summary = first.summary
    page = TerminalPage(width, encoding)
    if verbosity < 0:
        style: Style = "bad" if summary.violations or summary.errors else "good"
        why = f" ({info.ended})" if info.ended else ""
        return [StyledLine(f"{_verdict(summary, totals, found)}{why}", style)]
    show_new(page, totals, results)
    show_weaknesses(page, found, verbose=verbosity > 0)
    page.gap()
    show_run(page, settings, info, [how_text(settings.variant, first.slip_rates)], totals)
    page.gap()
    show_figures(page, first, info.usage, verbose=verbosity > 0)
    show_tables(page, first, verbose=verbosity > 0)
    show_plainest(page, first, settings, command, totals.novelty)
    show_left_out(page, totals, info, verbose=verbosity > 0)
    show_added(page, totals)
    return page.lines


def interval_text(interval: tuple[float, float] | None, dialogues: int) -> str:
    """Return a 95 % interval over so many dialogues as text, or why there is none."""
    if interval is None and dialogues >= FEWEST_DIALOGUES:
        return "no interval: no variant was answered"
    if interval is None:
        few = counted(dialogues, "dialogue")
        return f"no interval: {few}, and it takes {FEWEST_DIALOGUES}"
    unit = "dialogues as unit" if dialogues >= FEW_DIALOGUES else f"{dialogues} dialogues as unit"
    return f"{interval_name(dialogues)} {percent(interval[0])} to {percent(interval[1])}, {unit}"


def how_text(settings: VariantSettings, slip_rates: Collection[float]) -> str:
    """Return in a line what was done to each turn, with slips at these rates per word."""
    flat = " in short utterances too" if settings.flat_edit_rate else ""
    edits = Edits.of(settings.edits)
    only = f" of {', '.join(edits.only)}" if edits.only else ""
    if edits.added:
        only += f" with {', '.join(edits.added)}"
    if edits.left_out:
        only += f" without {', '.join(edits.left_out)}"
    # By their names: those of others need not be at hand where a report is read.
    chosen = (*(edits.only or TRANSFORMATIONS), *edits.added)
    used = {name.partition("/")[0] for name in chosen}
    profile = PROFILES.get(settings.validity)
    slips = f", slips of {' and '.join(settings.noise)}" if profile and profile.noise else ""
    # Where nobody gave one, the models have their own.
    if len(slip_rates) == 1:
        slips += f", slip rate {100 * next(iter(slip_rates)):g} %"
    together = min(settings.transformations, len(used.difference(edits.left_out)))
    # The one makes as many edits as people do, the other as many as a variant may have.
    own = settings.search.partition(":")[0] in {"noise", "bandit"}
    each = "" if own else f", {together} transformations each"
    return (
        f"{settings.variants} variants a turn{each}{only}; search {settings.search}, attack "
        f"{settings.attack}, validity profile {settings.validity} (edit rates up to "
        f"{settings.max_edit_rate:g}{flat}{slips}), relation {settings.relation}, "
        f"seed {settings.seed}"
    )


def between(interval: tuple[float, float] | None) -> str:
    """Return an interval in few letters.

    >>> between((0.2085, 0.2858))
    '20.9 to 28.6 %'
    """
    return "n/a" if interval is None else f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f} %"


def _verdict(summary: Summary, totals: Totals, weaknesses: Sequence[Weakness]) -> str:
    outcomes, words = totals.outcomes, totals.kind.words
    bounds = summary.failure_rate_interval
    about = "about " if summary.dialogues_tested < FEW_DIALOGUES else ""
    between = "" if bounds is None else f" ({about}{percent(bounds[0])} to {percent(bounds[1])})"
    many = f"{weaknesses_text(weaknesses)}, " if weaknesses else ""
    text = (
        f"dstfuzz: {many}{summary.violations:,} violations in {summary.turns_broken:,} of "
        f"{summary.turns:,} turns; failure rate {percent(summary.failure_rate)}{between}, "
        f"valid rate {percent(summary.valid_rate)}"
    )
    if expected := user_turns_short(summary):
        text += f", {expected}"
    if summary.clean_accuracy is not None:
        text += f", {words.right} {percent(summary.clean_accuracy)}"
        if not words.values:
            text += f" of {summary.clean_labelled:,}"
    if summary.clean_empty:
        text += f", {words.empty} {percent(summary.clean_empty_share)}"
    told: dict[TurnOutcome, str] = {"error": "with errors", "skipped": "not tested"}
    for outcome, what in told.items():
        if outcomes[outcome]:
            text += f"; {counted(outcomes[outcome], 'turn')} {what}"
    if totals.left_out:
        text += f"; up to {totals.left_out:,} variants of {totals.unfinished:,} turns not tested"
    noise, repeats = summary.noise, summary.repeats
    if noise is not None and noise.differed:
        low, high = noise.real_violations
        text += f"; answers vary: {low:,} to {high:,} violations repeat"
    if repeats is not None and repeats.changed:
        text += f"; {words.who} does not repeat itself: violations may be noise"
    return text


def show_figures(
    page: TerminalPage, section: RelationTotals, usage: Usage | None, *, verbose: bool
) -> None:
    """Add what came of the turns and of the variants that a search made of them."""
    summary = section.summary
    kinds = ", ".join(
        f"{section.outcomes[kind]:,} {kind}" for kind in _OUTCOMES if section.outcomes[kind]
    )
    dialogues = counted(section.dialogues, "dialogue")
    tested = f"{summary.turns:,} of {section.count:,}, in {dialogues}"
    page.field(label("turns"), f"{tested}{': ' if kinds else ''}{kinds}")
    page.field(
        label("generated"),
        f"{summary.generated:,} = {summary.vacuous:,} vacuous + {summary.duplicate:,} duplicate "
        f"+ {summary.vetoed:,} vetoed + {summary.over_rate:,} over the rate + "
        f"{f'{summary.unstable:,} unstable + ' if summary.unstable else ''}{summary.valid:,} valid",
    )
    page.field(
        label("valid"),
        f"{summary.valid:,} = {summary.held:,} held + {summary.violations:,} violations + "
        f"{summary.carried:,} carried + {summary.improved:,} improved + {summary.errors:,} errors",
    )
    page.field(label("valid rate"), f"{percent(summary.valid_rate)} of the generated variants")
    alike = f", {ALL_DISTORTED}" if summary.expected_failures is not None else ""
    page.field(
        label("failure rate"),
        f"{percent(summary.failure_rate)} of the valid variants{alike} "
        f"({interval_text(summary.failure_rate_interval, summary.dialogues_tested)})",
        "bad" if summary.violations or summary.errors else "good",
    )
    show_user_turns(page, summary, verbose=verbose)
    _clean_answers(page, summary, section.kind.words)
    page.field(label("yield"), f"{percent(summary.yield_rate)} of the generated variants")
    rate = summary.broken_per_1000_calls
    page.field(
        label("turns broken"),
        f"{summary.turns_broken:,} of {summary.turns_tested:,} with a valid variant: "
        f"{percent(summary.turn_failure_rate)} "
        f"({interval_text(summary.turn_failure_rate_interval, summary.dialogues_tested)})",
    )
    if rate is not None:
        page.field(label(""), f"{rate:.1f} for every 1,000 of {summary.calls:,} calls")
    if summary.malformed:
        text = (
            f"{summary.malformed:,} answers could not be read, {percent(summary.malformed_share)} "
            "of all; each was asked for again"
        )
        page.field(label("malformed"), text, "warning")
    if text := causes_text(section.reasons.causes):
        page.field(label("causes"), text)
    if text := sizes_text(section.reasons.sizes):
        text += f" (found with {summary.minimiser_calls:,} more calls)"
        page.field(label("edits needed"), text)
    if usage is not None:
        known = usage.uncounted < usage.answers
        page.field(label("tokens" if known else "requests"), usage_text(usage))


def _clean_answers(page: TerminalPage, summary: Summary, words: Words) -> None:
    """Say how many are empty or right, and how far violations may be the tracker's noise."""
    if summary.clean_empty:
        text = (
            f"{summary.clean_empty:,} of {summary.clean_answered:,} clean answers "
            f"({percent(summary.clean_empty_share)}){words.are_empty}; failure "
            f"rate without them {percent(summary.failure_rate_not_empty)}"
        )
        page.field(label(words.empty), text)
    if summary.clean_labelled:
        text = (
            f"{percent(summary.clean_accuracy)} of the clean {words.answers} are right: "
            f"{summary.clean_right:,} of {summary.clean_labelled:,} turns with {words.labels}"
        )
        page.field(label(words.right), text)
    if summary.noise is not None:
        page.field(label("clean answers"), wobble_text(summary.noise))
        text = noise_text(summary.noise, summary.violations)
        page.field(label("noise"), text, "warning" if summary.noise.differed else "plain")
    if summary.repeats is not None and (text := repeats_text(summary.repeats, words.who)):
        page.field(label("not repeated"), text, "warning")


def show_tables(page: TerminalPage, section: RelationTotals, *, verbose: bool) -> None:
    """Add the counts by transformation, domain and slot."""
    book, words, yields = section.ledger, section.kind.words, section.yields
    _table(page, "by transformation", book.transformations)
    if verbose:
        _table(page, "by operator", {"/".join(key): row for key, row in book.operators.items()})
    if book.transformations:
        page.line(
            "  (a variant counts once for each of them that edited it; its violation only where "
            "its own edits caused it)",
            "dim",
        )
    _table(page, f"by {words.domain}", yields.domains)
    if words.values:
        slots = {name: row for name, row in yields.slots.items() if row.violations}
        _table(page, f"by {words.slot}", slots, most=_MOST_SLOTS)
    if locks := section.reasons.vetoes:
        page.gap()
        page.field(label("vetoed by"), _counted(locks, None if verbose else _MOST_REASONS))


def _table(
    page: TerminalPage, title: str, rows: Mapping[str, Counts], most: int | None = None
) -> None:
    """Add a table of counts, the rows with the highest yield first."""
    if not rows:
        return
    ranked = sorted(rows.items(), key=lambda item: (-(item[1].yield_rate or 0.0), item[0]))
    if most is not None and len(ranked) > most:
        ranked = sorted(ranked, key=lambda item: -item[1].violations)[:most]
        title = f"{title} (top {most} of {len(rows)})"
    page.gap()
    head = (title, "generated", "valid", "violations", "failure rate", "yield")
    page.table(
        [
            head,
            *(
                (
                    name,
                    f"{row.generated:,}",
                    f"{row.valid:,}",
                    f"{row.violations:,}",
                    percent(row.failure_rate),
                    percent(row.yield_rate),
                )
                for name, row in ranked
            ),
        ]
    )


def show_left_out(page: TerminalPage, totals: Totals, info: RunInfo, *, verbose: bool) -> None:
    """Add what was not tested, and why answers failed."""
    unrun, reasons = left_out_texts(totals, info), totals.errors
    if unrun or reasons:
        page.gap()
    for text in unrun:
        name, _, said = text.partition(": ")
        page.field(label(name), said, "warning")
    most = None if verbose else _MOST_REASONS
    for reason, times in list(reasons.items())[:most]:
        page.field(label("error"), f"{times:,} x {shorten(reason)}", "bad")
    if most is not None and len(reasons) > most:
        page.field(label("error"), f"... and {len(reasons) - most} other reasons", "bad")


def show_added(page: TerminalPage, totals: Totals) -> None:
    """Add the sections of others."""
    for section in totals.added:
        page.gap()
        page.line(section.title, "heading")
        for line in section.lines:
            page.field("  ", line)


def left_out_texts(totals: Totals, info: RunInfo) -> list[str]:
    """Say what was not tested and why; of several relations, under which, and in which order."""
    skipped, reason = totals.skipped, info.ended or totals.why_skipped
    texts = _other_languages(totals)
    if totals.left_out:
        many, of = counted(totals.left_out, "variant"), counted(totals.unfinished, "turn")
        part = f"not tested: up to {many} of {of}: {reason}"
        return [*texts, part, *(_skipped_texts(totals, reason) if skipped else [])]
    if not skipped:
        return [*texts, f"ended early: {info.ended}"] if info.ended else texts
    return [*texts, *_skipped_texts(totals, reason)]


def _other_languages(totals: Totals) -> list[str]:
    """Say how many turns were left as they are, if any."""
    if not totals.in_other_languages:
        return []
    turns = counted(totals.in_other_languages, "turn")
    return [f"not edited: {turns}, not in English or not all of it: locks know English alone"]


def _skipped_texts(totals: Totals, reason: str) -> list[str]:
    """Say which turns were not tested at all."""
    skipped = totals.skipped
    dialogues = counted(totals.skipped_dialogues, "dialogue")
    text = f"not tested: {counted(skipped.total(), 'turn')} of {dialogues}"
    text += f": {reason}" if reason else ""
    if len(totals.relations) == 1:
        return [text]
    some = ", ".join(f"{name} {number:,}" for name, number in skipped.most_common())
    order = "relations run in the order in which they are named, so name first what matters most"
    return [text, f"not tested: by relation {some}; {order}"]


def _counted(counts: Mapping[str, int], most: int | None = None) -> str:
    parts: Iterable[str] = (f"{name} {count:,}" for name, count in list(counts.items())[:most])
    rest = sum(list(counts.values())[most:]) if most is not None else 0
    return ", ".join([*parts, *([f"others {rest:,}"] if rest else [])])
