"""The terminal summary of several relations: two tables of two sides, and a section for each.

What must not change and what must are never added up: a tracker may be bad at either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

from pytest_dstfuzz.campaign.results import Results
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.config.rates import percent
from pytest_dstfuzz.kinds.belief_states import BELIEF_STATES
from pytest_dstfuzz.printable import counted
from pytest_dstfuzz.report.json_report import RunInfo
from pytest_dstfuzz.report.page import Style, StyledLine, TerminalPage, label
from pytest_dstfuzz.report.run_facts import show_run
from pytest_dstfuzz.report.shown_violations import show_new, show_plainest
from pytest_dstfuzz.report.terminal import (
    between,
    how_text,
    interval_text,
    left_out_texts,
    show_added,
    show_figures,
    show_left_out,
    show_tables,
    terminal_lines,
)
from pytest_dstfuzz.report.weaknesses import show_weaknesses
from pytest_dstfuzz.totals.cases import TOGETHER, CaseFigures
from pytest_dstfuzz.totals.totals import RelationTotals, Totals, outcome_columns

__all__ = ["report_lines"]

_MOST_REASONS = 5
#: Columns that the tables of both sides take with their intervals.
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
    """Return the summary of a run; of one relation whose turns the search edits, as it always was.

    The rest is as for `terminal_lines`.
    """
    if totals is None:
        totals = Totals.of(results, info.relations, settings.reply.fallback)
    sections = totals.sections(settings.variant.relation)
    how: dict[str, Any] = {"verbosity": verbosity, "width": width, "encoding": encoding}
    if all(one.facts.edits == "search" for one in sections) and len(sections) <= 1:
        return terminal_lines(results, settings, info, **how, command=command, totals=totals)
    if verbosity < 0:
        ended = [StyledLine(f"dstfuzz: {text}", "warning") for text in left_out_texts(totals, info)]
        return [*map(_in_a_line, sections), *ended]
    page = TerminalPage(width, encoding)
    verbose = verbosity > 0
    show_new(page, totals, results)
    show_weaknesses(page, totals.weaknesses, verbose=verbose)
    page.gap()
    show_run(page, settings, info, _how(settings, sections), totals)
    show_sides(page, sections)
    show_cases(page, totals.cases.figures)
    for one in sections:
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


def show_cases(page: TerminalPage, found: Sequence[CaseFigures]) -> None:
    """Add a table of test cases, where a relation counts them."""
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
    """Show over-sensitivity beside over-stability, relation by relation."""
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
    """Add the figures of the relations of one side; the interval only where there is room."""
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
    """Say what was done to the turns, by the search and by relations that edit themselves."""
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
            f"{settings.variant.variants} rewrites each of {', '.join(own)}, seen in the clean "
            "context: search, attack design and profile say nothing to them; seed "
            f"{settings.variant.seed}"
        )
    return lines


def _rewrites(page: TerminalPage, one: RelationTotals, *, verbose: bool) -> None:
    """Show the figures of a relation that edits by itself."""
    summary, noun, words = one.summary, one.unit, one.kind.words
    asked = one.applicable + sum(one.inapplicable.values())
    dialogues = counted(summary.dialogues_tested, "dialogue")
    some = f"{one.applicable:,} of {counted(asked, noun)}"
    if skipped := one.outcomes["skipped"]:
        some += f" (not tested: {counted(skipped, noun)})"
    untested = one.applicable - summary.turns_tested
    none = f"; {untested:,} without a rewrite that could be run" if untested else ""
    style: Style = "plain" if one.applicable else "warning"
    page.field(label("applicable"), f"{some}; tested in {dialogues}{none}", style)
    reasons = list(one.inapplicable.items())
    for reason, count in islice(reasons, None if verbose else _MOST_REASONS):
        page.field(label("inapplicable"), f"{count:,} x {reason}", "dim")
    if not verbose and len(reasons) > _MOST_REASONS:
        more = counted(len(reasons) - _MOST_REASONS, "other reason")
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
    """Return the figures of a relation where only a line is wanted."""
    summary = one.summary
    bounds = summary.failure_rate_interval
    text = (
        f"dstfuzz: {one.name}: {counted(summary.violations, 'violation')} in "
        f"{summary.turns_broken:,} of {counted(one.applicable, one.unit)}; failure rate "
        f"{percent(summary.failure_rate)}"
    )
    text += f" ({between(bounds)})" if bounds else ""
    if one.follows:
        text += f", stuck {percent(one.over_stability)}"
    if one.applied:
        text += f"; {one.applied.removeprefix(f'{one.name} ')}"
    if summary.errors:
        text += f"; {counted(summary.errors, 'error')}"
    if skipped := one.outcomes["skipped"]:
        text += f"; {counted(skipped, one.unit)} not tested"
    if summary.violations or summary.errors:
        return StyledLine(text, "bad")
    return StyledLine(text, "good" if summary.valid else "warning")
