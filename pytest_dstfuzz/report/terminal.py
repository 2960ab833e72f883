"""The terminal summary: tests, failures, skipped turns, relations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from pytest_dstfuzz.campaign.figures import FEW_DIALOGUES, FEWEST_DIALOGUES, Counts, interval_name
from pytest_dstfuzz.campaign.results import Results, TurnOutcome, TurnResult, VariantResult
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.config import PROFILES, Settings, VariantSettings
from pytest_dstfuzz.config.parsers import percent
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.kinds.belief_states import BELIEF_STATES
from pytest_dstfuzz.kinds.kind import Words
from pytest_dstfuzz.perturb.edits import undo_edits
from pytest_dstfuzz.printable import format_count
from pytest_dstfuzz.report.explain import change_lines, keyword, move_texts
from pytest_dstfuzz.report.figures import (
    causes_text,
    disagreement_text,
    improved_text,
    judge_line,
    judge_texts,
    noise_text,
    repeats_text,
    sizes_text,
    spread_texts,
    usage_text,
    wobble_text,
)
from pytest_dstfuzz.report.json_report import RunInfo
from pytest_dstfuzz.report.page import Style, StyledLine, TerminalPage, label
from pytest_dstfuzz.report.weaknesses import (
    ALL_DISTORTED,
    show_user_turns,
    show_weaknesses,
    user_turns_short,
    weaknesses_text,
)
from pytest_dstfuzz.report.wording import MARGIN, mark_edits, needed_context, shorten
from pytest_dstfuzz.selection import Edits
from pytest_dstfuzz.totals.cases import TOGETHER, CaseFigures
from pytest_dstfuzz.totals.plainest import Novelty
from pytest_dstfuzz.totals.totals import MOST_PLAINEST, RelationTotals, Totals, outcome_columns
from pytest_dstfuzz.trackers.tracker import Usage
from pytest_dstfuzz.transformations import TRANSFORMATIONS
from pytest_dstfuzz.weaknesses.groups import Weakness

__all__ = ["report_lines"]


#: If more than this share of clean questions gets a fallback reply, the setup may be wrong.
_MANY_FALLBACKS: Final = 0.3


def show_run(
    page: TerminalPage,
    settings: Settings,
    info: RunInfo,
    how: Iterable[str],
    totals: Totals,
) -> None:
    """Add the tested system and the settings. Each text in ``how`` becomes a paragraph.

    For replies, also add how much the bot's own replies vary.
    """
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
        spread = spread_texts(totals.replies.rows(), info.compared, settings.tracker)
        for number, (text, style) in enumerate(spread):
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
    """Return a warning if many replies to clean turns are fallback replies, or ``""``."""
    if unanswered < 2 or unanswered < _MANY_FALLBACKS * replies:
        return ""
    return f"{unanswered:,} of {replies:,} clean replies are no answer: wrong data or endpoint?"


#: Maximum number of violations shown. A run with a gate shows more, because its tests show none.
_PLAINEST: Final = 3
#: Number of unchanged characters on each side of an edit.
_MARGIN: Final = 40


def show_new(page: TerminalPage, totals: Totals, results: Results) -> None:
    """Add the violations that are new since the baseline, at the top."""
    count = len(totals.novelty.new)
    pairs = totals.novelty.plainest_new(results, MOST_PLAINEST)
    if pairs:
        more = f" (the {len(pairs)} plainest)" if count > len(pairs) else ""
        page.line(f"{format_count(count, 'new violation')} since the baseline{more}", "heading")
        for turn, variant in pairs:
            _show_violation(page, turn, variant)
        page.gap()


def _show_violation(
    page: TerminalPage, turn: TurnResult, variant: VariantResult, novelty: Novelty | None = None
) -> None:
    """Add the location of a violation, its texts and its changes."""
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
    """Add the plainest violations. Mark those that the baseline already has."""
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
            "  ",
            f"to repeat one variant, number I of turn ID: {command} --dst-variant=I -k '[ID]'",
            "dim",
        )


def violation_lines(turn: TurnResult, variant: VariantResult) -> list[str]:
    """Return the texts of a violation with marked edits, and the changes."""
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


_MOST_SLOTS = 10
_MOST_REASONS = 5
#: The possible outcomes of a turn that was not skipped, in order.
_OUTCOMES: Final[tuple[TurnOutcome, ...]] = (
    *("held", "violation", "error", "untested", "inapplicable"),
)


def interval_text(interval: tuple[float, float] | None, dialogues: int) -> str:
    """Return a 95 % interval over dialogues as text, or the reason why there is none."""
    if interval is None and dialogues >= FEWEST_DIALOGUES:
        return "no interval: no variant was answered"
    if interval is None:
        return f"no interval: needs {FEWEST_DIALOGUES} dialogues, got {dialogues}"
    unit = "dialogues as unit" if dialogues >= FEW_DIALOGUES else f"{dialogues} dialogues as unit"
    return f"{interval_name(dialogues)} {percent(interval[0])} to {percent(interval[1])}, {unit}"


def how_text(settings: VariantSettings, slip_rates: Collection[float]) -> str:
    """Return the settings of the variants in one line. ``slip_rates`` are in slips per word."""
    flat = " in short utterances too" if settings.flat_edit_rate else ""
    edits = Edits.of(settings.edits)
    only = f" of {', '.join(edits.only)}" if edits.only else ""
    if edits.added:
        only += f" with {', '.join(edits.added)}"
    if edits.left_out:
        only += f" without {', '.join(edits.left_out)}"
    # Use the names only, because third-party transformations may not be installed here.
    chosen = (*(edits.only or TRANSFORMATIONS), *edits.added)
    used = {name.partition("/")[0] for name in chosen}
    profile = PROFILES.get(settings.validity)
    slips = f", slips of {' and '.join(settings.noise)}" if profile and profile.noise else ""
    # If no rate is set, each noise model has its own rate.
    if len(slip_rates) == 1:
        slips += f", slip rate {100 * next(iter(slip_rates)):g} %"
    together = min(settings.transformations, len(used.difference(edits.left_out)))
    # These searches make as many edits as people do, up to the maximum of a variant.
    own = settings.search.partition(":")[0] in {"noise", "bandit"}
    each = "" if own else f", {together} transformations each"
    return (
        f"{settings.variants} variants a turn{each}{only}; search {settings.search}, attack "
        f"{settings.attack}, validity profile {settings.validity} (edit rates up to "
        f"{settings.max_edit_rate:g}{flat}{slips}), relation {settings.relation}, "
        f"seed {settings.seed}"
    )


def between(interval: tuple[float, float] | None) -> str:
    """Return an interval in short form.

    >>> between((0.2086, 0.2858))
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
    text = ", ".join(filter(None, (text, user_turns_short(summary), improved_text(summary))))
    if summary.clean_accuracy is not None:
        text += f", {words.right} {percent(summary.clean_accuracy)}"
        if not words.values or summary.clean_labelled < summary.clean_answered:
            text += f" of {summary.clean_labelled:,}"
    if summary.clean_empty:
        text += f", {words.empty} {percent(summary.clean_empty_share)}"
    told: dict[TurnOutcome, str] = {"error": "with errors", "skipped": "not tested"}
    for outcome, what in told.items():
        if outcomes[outcome]:
            text += f"; {format_count(outcomes[outcome], 'turn')} {what}"
    if totals.left_out:
        text += f"; up to {totals.left_out:,} variants of {totals.unfinished:,} turns not tested"
    noise, repeats = summary.noise, summary.repeats
    if noise is not None and noise.differed:
        low, high = noise.real_violations
        text += f"; answers vary: {low:,} to {high:,} violations would occur again"
    if repeats is not None and repeats.changed:
        text += f"; {words.who} answers differently each time: violations may be noise"
    return text


def show_figures(
    page: TerminalPage, section: RelationTotals, usage: Usage | None, *, verbose: bool
) -> None:
    """Add the results of the turns, and of the variants that a search generated."""
    summary = section.summary
    kinds = ", ".join(
        f"{section.outcomes[kind]:,} {kind}" for kind in _OUTCOMES if section.outcomes[kind]
    )
    dialogues = format_count(section.dialogues, "dialogue")
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
    alike = f", {ALL_DISTORTED}" if summary.estimated_failures is not None else ""
    page.field(
        label("failure rate"),
        f"{percent(summary.failure_rate)} of the valid variants{alike} "
        f"({interval_text(summary.failure_rate_interval, summary.dialogues_tested)})",
        "bad" if summary.violations or summary.errors else "good",
    )
    show_user_turns(page, summary, section.kind.words, verbose=verbose)
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
            "of all; each was requested again"
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
    """Add how many clean answers are empty or right, and how many violations may be noise."""
    if summary.clean_empty:
        text = (
            f"{summary.clean_empty:,} of {summary.clean_answered:,} clean answers "
            f"({percent(summary.clean_empty_share)}){words.are_empty}; failure "
            f"rate without them {percent(summary.failure_rate_not_empty)}"
        )
        page.field(label(words.empty), text)
    if summary.clean_labelled:
        text = (
            f"{percent(summary.clean_accuracy)} of the clean {words.answers} {words.are_right}: "
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
            "  (a variant counts once for each of its transformations, but a violation only if the "
            "edits of this turn caused it, and not those of earlier turns)",
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
    """Add a table of counts. The most violations per generated variant come first."""
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
    """Add the untested turns and variants, and the errors of the tracker."""
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
    """Add the sections of plugins."""
    for section in totals.added:
        page.gap()
        page.line(section.title, "heading")
        for line in section.lines:
            page.field("  ", line)


def left_out_texts(totals: Totals, info: RunInfo) -> list[str]:
    """Return texts about untested turns, with reasons. Name relations if there are several."""
    skipped, reason = totals.skipped, info.ended or totals.why_skipped
    undecided = "" if info.judge is None else judge_line(info.judge[1])
    texts = [*_other_languages(totals), *filter(None, [undecided])]
    if totals.left_out:
        many, of = format_count(totals.left_out, "variant"), format_count(totals.unfinished, "turn")
        part = f"not tested: up to {many} of {of}: {reason}"
        return [*texts, part, *(_skipped_texts(totals, reason) if skipped else [])]
    if not skipped:
        return [*texts, f"ended early: {info.ended}"] if info.ended else texts
    return [*texts, *_skipped_texts(totals, reason)]


def _other_languages(totals: Totals) -> list[str]:
    """Return a text about turns in other languages, which are not edited."""
    if not totals.in_other_languages:
        return []
    turns = format_count(totals.in_other_languages, "turn")
    what = f"{turns} that are not, or not only, in English"
    return [f"not edited: {what}: the rules that lock words exist only for English"]


def _skipped_texts(totals: Totals, reason: str) -> list[str]:
    """Return texts about turns that the run did not test at all."""
    skipped = totals.skipped
    dialogues = format_count(totals.skipped_dialogues, "dialogue")
    text = f"not tested: {format_count(skipped.total(), 'turn')} of {dialogues}"
    text += f": {reason}" if reason else ""
    if len(totals.relations) == 1:
        return [text]
    some = ", ".join(f"{name} {number:,}" for name, number in skipped.most_common())
    order = "relations run in the given order, so name the most important ones first"
    return [text, f"not tested: by relation {some}; {order}"]


def _counted(counts: Mapping[str, int], most: int | None = None) -> str:
    parts: Iterable[str] = (f"{name} {count:,}" for name, count in list(counts.items())[:most])
    rest = sum(list(counts.values())[most:]) if most is not None else 0
    return ", ".join([*parts, *([f"others {rest:,}"] if rest else [])])


#: The tables of relations have intervals if the page has at least this many columns.
_WIDE = 96


def report_lines(
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
    """Return the summary of a run. ``verbosity`` below 0 gives one line per relation.

    The table of relations is left out if the search makes the edits for the only relation. If a
    gate judges the run, the summary shows ``command``, which repeats the run and fails a test for
    each violation. By default, ``totals`` are computed from ``results``.
    """
    if totals is None:
        totals = Totals.of(results, info.relations, settings.reply.fallback, words=info.words)
    sections = totals.sections(settings.variant.relation)
    searched = all(one.facts.edits == "search" for one in sections) and len(sections) <= 1
    if verbosity < 0:
        return _in_lines(totals, settings, info, () if searched else sections)
    page, verbose = TerminalPage(width, encoding), verbosity > 0
    show_new(page, totals, results)
    show_weaknesses(page, totals.weaknesses, verbose=verbose)
    page.gap()
    if searched:
        first = totals.first(settings.variant.relation)
        show_run(page, settings, info, [how_text(settings.variant, first.slip_rates)], totals)
        page.gap()
        show_figures(page, first, info.usage, verbose=verbose)
        show_tables(page, first, verbose=verbose)
        show_plainest(page, first, settings, command, totals.novelty)
    else:
        show_run(page, settings, info, _how(settings, sections), totals)
        show_sides(page, sections)
        show_cases(page, totals.cases.figures)
    for one in () if searched else sections:
        page.gap()
        _heading(page, one)
        if one.facts.edits == "search":
            show_figures(page, one, None, verbose=verbose)
            show_tables(page, one, verbose=verbose)
        else:
            _rewrites(page, one, verbose=verbose)
        show_plainest(page, one, settings, command, totals.novelty)
    show_left_out(page, totals, info, verbose=verbose)
    show_added(page, totals)
    return page.lines


def _in_lines(
    totals: Totals, settings: Settings, info: RunInfo, sections: Sequence[RelationTotals]
) -> list[StyledLine]:
    """Return one line for each relation. Add a line if the run ended early.

    If there are no ``sections``, return one line for the whole run.
    """
    if sections:
        ended = [StyledLine(f"dstfuzz: {text}", "warning") for text in left_out_texts(totals, info)]
        return [*map(_in_a_line, sections), *ended]
    summary = totals.first(settings.variant.relation).summary
    style: Style = "bad" if summary.violations or summary.errors else "good"
    why = f" ({info.ended})" if info.ended else ""
    lines = [StyledLine(f"{_verdict(summary, totals, totals.weaknesses)}{why}", style)]
    if info.judge is not None and (text := judge_line(info.judge[1])):
        lines.append(StyledLine(f"dstfuzz: {text}", "warning"))
    return lines


def show_cases(page: TerminalPage, found: Sequence[CaseFigures]) -> None:
    """Add a table of test cases, if a relation counts them."""
    if not found:
        return
    page.gap()
    page.line("test cases: dialogues under one perturbation each", "heading")
    rows = [["relation", "cases", "checks", "bugs", "RETC", "BPTC", "Rate+", "L1", "L2", "L3"]]
    for one in found:
        counts = (f"{count:,}" for count in (one.cases, one.detections, one.bugs))
        bptc = "-" if one.bptc is None else f"{one.bptc:.2f}"
        levels = ["-"] * 3 if one.levels is None else [f"{count:,}" for count in one.levels]
        rows.append([one.name, *counts, percent(one.retc), bptc, percent(one.rate), *levels])
    page.table(rows)
    blamed: Counter[str] = Counter()
    for one in found:
        if one.name != TOGETHER:
            blamed.update(one.perturbations)
    told = ", ".join(f"{name} {count:,}" for name, count in sorted(blamed.items()))
    page.field("  bugs by perturbation: ", told or "none")
    if all(one.levels is None for one in found):
        page.line("  no recorded answers: L1 to L3 are not known", "dim")


def show_sides(page: TerminalPage, sections: Sequence[RelationTotals]) -> None:
    """Add two tables of relations: those that expect no change, then the others."""
    stay = [one for one in sections if not one.follows]
    follow = [one for one in sections if one.follows]
    page.gap()
    words = (sections[0].kind if sections else BELIEF_STATES).words
    short = words.short
    page.line(f"over-sensitive: the {short} should not change, and {words.do}", "heading")
    _side(page, stay, follows=False)
    page.gap()
    how = ", or not as it should" if words.values else ""
    page.line(f"over-stable: the {short} should change, and {words.do} not{how}", "heading")
    _side(page, follow, follows=True)


def _side(page: TerminalPage, sections: Sequence[RelationTotals], *, follows: bool) -> None:
    """Add the figures of relations that expect a change (if ``follows``) or no change.

    The table has intervals if the page is wide enough.
    """
    if not sections:
        page.line("  not tested: no relation of this side was named (--dst-relation)", "dim")
        return
    columns = outcome_columns(sections, follows=follows)
    rows = [["relation", "applicable", "run", *columns, "rate", "95 % interval"]]
    for one, *outcomes in zip(sections, *columns.values(), strict=True):
        counts = (one.applicable, one.summary.valid, *outcomes)
        rate, bounds = one.summary.failure_rate, one.summary.failure_rate_interval
        rows.append([one.name, *(f"{count:,}" for count in counts), percent(rate), between(bounds)])
    wide = page.width >= _WIDE
    page.table([row if wide else row[:-1] for row in rows])


def _heading(page: TerminalPage, one: RelationTotals) -> None:
    side = "should change" if one.follows else "should not change"
    expects = f": {one.facts.expects}" if one.facts.expects else ""
    page.line(f"{one.name} ({side}){expects}", "heading")


def _how(settings: Settings, sections: Sequence[RelationTotals]) -> list[str]:
    """Return texts about the edits, made by the search or by the relations."""
    searched = [one for one in sections if one.facts.edits == "search"]
    own = [one.name for one in sections if one.facts.edits == "own"]
    lines = []
    if searched:
        names = ",".join(one.name for one in searched)
        named = settings.replace_options(relation=names)
        slip_rates = {rate for one in searched for rate in one.slip_rates}
        lines.append(how_text(named.variant, slip_rates))
    if own:
        lines.append(
            f"{settings.variant.variants} rewrites each of {', '.join(own)}, after clean "
            "earlier turns: the settings of search, attack and profile do not apply; seed "
            f"{settings.variant.seed}"
        )
    return lines


def _rewrites(page: TerminalPage, one: RelationTotals, *, verbose: bool) -> None:
    """Add the figures of a relation that makes its own edits."""
    summary, noun, words = one.summary, one.unit, one.kind.words
    asked = one.applicable + sum(one.inapplicable.values())
    dialogues = format_count(summary.dialogues_tested, "dialogue")
    some = f"{one.applicable:,} of {format_count(asked, noun)}"
    if skipped := one.outcomes["skipped"]:
        some += f" (not tested: {format_count(skipped, noun)})"
    untested = one.applicable - summary.turns_tested
    none = f"; {untested:,} without a rewrite that could be run" if untested else ""
    style: Style = "plain" if one.applicable else "warning"
    page.field(label("applicable"), f"{some}; tested in {dialogues}{none}", style)
    reasons = list(one.inapplicable.items())
    for reason, count in islice(reasons, None if verbose else _MOST_REASONS):
        page.field(label("inapplicable"), f"{count:,} x {reason}", "dim")
    if not verbose and len(reasons) > _MOST_REASONS:
        more = format_count(len(reasons) - _MOST_REASONS, "other reason")
        text = f"... and {more} (-v shows all)"
        page.field(label("inapplicable"), text, "dim")
    named = [f"{count:,} {kind}" for kind, count in one.failures.items() if count]
    rest = [f"{n:,} {name}" for name in ("improved", "errors") if (n := getattr(summary, name))]
    parts = " + ".join([f"{summary.held:,} held", *named, *rest])
    page.field(label("rewrites"), f"{summary.valid:,} = {parts}")
    unrun = (("vacuous", summary.vacuous), ("duplicate", summary.duplicate))
    if left := ", ".join(f"{count:,} {name}" for name, count in unrun if count):
        page.field(label(""), f"not run: {left}")
    if summary.unstable:
        page.field(label(""), f"not counted: {summary.unstable:,} unstable")
    if not summary.valid:
        return
    if one.unjudged:
        who = words.who
        text = f"n/a: {who} failed on every rewrite, so nothing could be judged"
        page.field(label("failure rate"), text, "bad")
        return
    bad: Style = "bad" if summary.violations or summary.errors else "good"
    if one.follows:
        bounds = interval_text(one.over_stability_interval, summary.dialogues_tested)
        rate = percent(one.over_stability)
        left = "they were" if words.plural else "it was"
        text = f"{rate} of the rewrites left the {words.short} as {left} ({bounds})"
        page.field(
            label("over-stable"), text, "bad" if one.failures["stuck"] or summary.errors else "good"
        )
    bounds = interval_text(summary.failure_rate_interval, summary.dialogues_tested)
    what = "are not followed as expected" if one.follows else f"change the {words.short}"
    rate = percent(summary.failure_rate)
    page.field(label("failure rate"), f"{rate} of the rewrites {what} ({bounds})", bad)


def _in_a_line(one: RelationTotals) -> StyledLine:
    """Return the figures of a relation in one line."""
    summary = one.summary
    bounds = summary.failure_rate_interval
    text = (
        f"dstfuzz: {one.name}: {format_count(summary.violations, 'violation')} in "
        f"{summary.turns_broken:,} of {format_count(one.applicable, one.unit)}; failure rate "
        f"{percent(summary.failure_rate)}"
    )
    text += f" ({between(bounds)})" if bounds else ""
    if one.follows:
        text += f", stuck {percent(one.over_stability)}"
    if one.applied:
        text += f"; {one.applied.removeprefix(f'{one.name} ')}"
    if summary.errors:
        text += f"; {format_count(summary.errors, 'error')}"
    if skipped := one.outcomes["skipped"]:
        text += f"; {format_count(skipped, one.unit)} not tested"
    if summary.violations or summary.errors:
        return StyledLine(text, "bad")
    return StyledLine(text, "good" if summary.valid else "warning")
