"""The first screen: the last lines of a run, with its verdict, its problems and the next steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, Protocol, TypeVar

from pytest_dstfuzz.campaign.figures import TURNS, interval_name
from pytest_dstfuzz.campaign.results import Results, TurnResult, VariantResult
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.config.parsers import per_1000, percent
from pytest_dstfuzz.printable import format_count
from pytest_dstfuzz.report.answers import reply_lines
from pytest_dstfuzz.report.explain import change_lines, keyword, repeat_command
from pytest_dstfuzz.report.figures import improved_text, noise_text, repeats_text, usage_text
from pytest_dstfuzz.report.json_report import RunInfo
from pytest_dstfuzz.report.page import Style, StyledLine, TerminalPage, label
from pytest_dstfuzz.report.terminal import left_out_texts, show_added
from pytest_dstfuzz.report.weaknesses import (
    AT_ALL_TURNS,
    accepted_text,
    by_label_text,
    conversation_text,
    said,
    weaknesses_text,
)
from pytest_dstfuzz.report.wording import shorten
from pytest_dstfuzz.totals.totals import RelationTotals, Totals
from pytest_dstfuzz.weaknesses.advice import Mending

__all__ = ["screen_lines"]

#: Maximum number of weaknesses, of relations and of new violations that are shown.
_MOST: Final = 5
_MOST_NEW: Final = 2
#: Error probability of the upper bound for a weakness that no variant of the sample shows.
_UNSEEN: Final = 0.05
_NO_LIMIT: Final = "no limit is set (set --dst-max-failure-rate)"
#: Maximum length of an example and of a change, in characters.
_LONGEST: Final = 100


#: Verdict of a gate -> its style, and its wording in texts for people. The JSON report and the
#: properties of JUnit have the verdict itself. The wording adds it in parentheses if it differs.
VERDICTS: Final[Mapping[str, tuple[Literal["good", "bad", "warning"], str]]] = {
    "pass": ("good", "passed"),
    "drift": ("bad", "failed: clean answers changed (drift)"),
    "regression": ("bad", "failed: outside the limits (regression)"),
    "inconclusive": ("warning", "inconclusive"),
    "not-compared": ("bad", "not compared with the baseline (not-compared)"),
    "infrastructure": ("bad", "not judged: the run is incomplete (infrastructure)"),
}


class GateRuling(NamedTuple):
    """The decision on the results of a tracker, in lines for the terminal."""

    #: The verdict of the gate, see `VERDICTS`; ``""`` if the tests decide.
    verdict: str = ""
    #: The reasons for the verdict, and further notes for the user.
    reasons: tuple[StyledLine, ...] = ()
    #: The changes since the baseline.
    changes: tuple[StyledLine, ...] = ()

    @property
    def lines(self) -> tuple[StyledLine, ...]:
        """All lines, the verdict first."""
        if not self.verdict:
            return (*self.reasons, *self.changes)
        style, words = VERDICTS[self.verdict]
        return (StyledLine(f"verdict: {words}", style), *self.reasons, *self.changes)


_NO_RULING: Final = GateRuling()


class Fact(NamedTuple):
    """A sentence of the first screen, identified by a short name."""

    #: The name; ``""`` if the sentence continues the fact before it.
    name: str
    text: str
    style: Style = "plain"


_MORE: Final = Fact("more", "-v adds tables; --dst-report=report.html shows every violation", "dim")


class FoundWeakness(Protocol):
    """A weakness in a run or a report."""

    @property
    def description(self) -> str:
        """The common property of its violations."""

    @property
    def turns(self) -> int:
        """The number of broken turns."""

    @property
    def expected(self) -> float | None:
        """Estimated failures per 1,000 user turns because of this weakness."""

    @property
    def accepted(self) -> str:
        """The reason why it was accepted, or ``""`` if it was not."""


_Found = TypeVar("_Found", bound=FoundWeakness)


def screen_lines(
    results: Results,
    settings: Settings,
    info: RunInfo,
    totals: Totals,
    *,
    ruling: GateRuling = _NO_RULING,
    failed: bool | None = None,
    width: int = 100,
    encoding: str = "utf-8",
) -> list[StyledLine]:
    """Return at most 30 lines about the results of one tracker, then the lines of its verdict.

    Args:
        results: the results of the tracker.
        settings: the settings of the run.
        info: facts of the run.
        totals: the figures of ``results``.
        ruling: the gate's verdict, if there is a gate, and the reasons why the run failed.
        failed: whether a test failed; by default, see `verdict_fact`.
        width: the width of the terminal in columns.
        encoding: the encoding of the terminal.
    """
    page = TerminalPage(width, encoding)
    sections = totals.sections(settings.variant.relation)
    fact = verdict_fact(totals, sections, settings, ruling.verdict, failed=failed)
    _show(page, [fact])
    page.lines += ruling.reasons
    if ruling.reasons:
        page.gap()
    _show(page, run_facts(totals, settings.variant.relation, info, most=_MOST))
    new = totals.novelty.plainest_new(results, _MOST_NEW)
    if new:
        page.gap()
        page.line(new_heading(totals), "heading")
    for turn, variant in new:
        page.field(f"  {place_text(turn, variant)}: ", _example(turn, variant), "bad")
    if ruling.changes and not new:
        page.gap()
    page.lines += ruling.changes
    _show_weaknesses(page, totals, sections)
    _show(page, corrector_facts(totals.mending))
    show_added(page, totals)
    page.gap()
    _show(page, [Fact("cost", cost_text(sections, info)), _MORE])
    if info.repeat and totals.weaknesses:
        turn, variant, _ = totals.weaknesses[0].example
        page.command(label("repeat"), repeat_command(info.repeat, keyword(turn.id), variant.index))
    return page.lines


def _show(page: TerminalPage, facts: Iterable[Fact]) -> None:
    for fact in facts:
        page.field(label(fact.name), fact.text, fact.style)


def verdict_fact(
    totals: Totals,
    sections: Sequence[RelationTotals],
    settings: Settings,
    verdict: str = "",
    *,
    failed: bool | None = None,
) -> Fact:
    """Return the verdict on a run, and the number of turns that break.

    Args:
        totals: the figures of the run.
        sections: the figures of its relations.
        settings: the settings of the run.
        verdict: the verdict of the gate, ``""`` if there is none.
        failed: whether a test failed; it counts only if there is no gate. By default, a run fails
            if the tracker failed or a weakness is not accepted.
    """
    text, style = _broken(sections)
    if verdict:
        style, words = VERDICTS.get(verdict, ("warning", verdict))
        return Fact("verdict", f"{words}; {text}", style)
    if failed is None:
        errors = any(one.summary.errors for one in sections)
        failed = errors or not all(one.accepted for one in totals.weaknesses)
    if failed:
        limit = "" if settings.gate.fail_on == "gate" else f"; {_NO_LIMIT}"
        return Fact("verdict", f"failed: {text}{limit}", "bad")
    if settings.gate.fail_on == "gate":
        return Fact("verdict", f"not judged: {_NO_LIMIT}; {text}", style)
    return Fact("verdict", f"{'passed' if style != 'warning' else 'not judged'}: {text}", style)


def _broken(sections: Sequence[RelationTotals]) -> tuple[str, Style]:
    """Return how many turns break, as text, and its style."""
    broken = sum(one.summary.turns_broken for one in sections)
    tested = sum(one.summary.turns_tested for one in sections)
    errors = sum(one.summary.errors for one in sections)
    style: Style = "bad" if broken or errors else "good" if tested else "warning"
    verb = "breaks" if broken == 1 else "break"
    text = f"{broken:,} of {format_count(tested, 'tested turn')} {verb}"
    if len(sections) > 1:  # Their figures are not added up.
        named = sum(bool(one.summary.violations) for one in sections)
        text = f"{named} of {len(sections)} relations {'is' if named == 1 else 'are'} broken"
    if not tested:
        text = "nothing was tested"
    elif all(one.unjudged for one in sections if one.summary.valid):
        text = f"could not be judged: {sections[0].kind.words.who} failed each time"
    elif errors:
        text += f", and {format_count(errors, 'variant')} got no answer"
    return text, style


def run_facts(
    totals: Totals, relation: str, info: RunInfo, *, most: int | None = None
) -> Iterator[Fact]:
    """Yield the facts that stand between the verdict and the violations.

    Args:
        totals: the figures of the run.
        relation: the names of the relations, in order.
        info: facts of the run.
        most: maximum number of relations.
    """
    sections = totals.sections(relation)
    for text in left_out_texts(totals, info):
        name, _, rest = text.partition(": ")
        yield Fact(name, rest, "warning")
    yield from _clean(totals, totals.first(relation).summary)
    if len(sections) > 1:
        yield from _relations(sections, most)
    yield from _estimate(sections)
    yield from _caveats(info, totals, totals.first(relation).summary)


def _clean(totals: Totals, summary: Summary) -> Iterator[Fact]:
    """Yield the share of right answers to the clean turns, and the number without an answer."""
    words = totals.kind.words
    texts = []
    if summary.clean_labelled:
        texts.append(
            f"{percent(summary.clean_accuracy)} of the clean {words.answers} {words.are_right} "
            f"({summary.clean_right:,} of {summary.clean_labelled:,} with {words.labels})"
        )
    unanswered, replies = totals.fallbacks
    if replies:
        texts.append(
            f"the bot answers {replies - unanswered:,} of {format_count(replies, 'clean turn')}"
        )
    elif summary.clean_empty:
        texts.append(f"{summary.clean_empty:,} of {summary.clean_answered:,} are empty")
    if texts:
        yield Fact("unmodified", "; ".join(texts))


def _relations(sections: Sequence[RelationTotals], most: int | None) -> Iterator[Fact]:
    """Yield a fact for each relation, the highest failure rate first."""
    ranked = sorted(sections, key=lambda one: -(one.summary.failure_rate or 0.0))
    for one in ranked[:most]:
        summary = one.summary
        text = (
            f"{format_count(summary.violations, 'violation')} in {summary.turns_broken:,} of "
            f"{format_count(one.applicable, one.unit)}"
        )
        style: Style = "bad" if summary.violations else "good"
        if not summary.answered:
            style = "warning"
            text = f"{one.kind.words.who} failed each time" if one.unjudged else "not tested"
        yield Fact("relation", f"{one.name}: {text}", style)
    if most is not None and len(ranked) > most:
        yield Fact("", f"... and {len(ranked) - most} more relations (-v)", "dim")


def _estimate(sections: Sequence[RelationTotals]) -> Iterator[Fact]:
    """Yield the estimated failures in 1,000 user turns, in total and by kind."""
    section = estimated(sections)
    expected = None if section is None else section.summary.estimated_failures
    if section is None or expected is None:
        return
    if expected.per_1000 is None:
        yield Fact("estimate", f"none: {expected.reason}", "warning")
        return
    slips = f"slips in {100 * (expected.slip_rate or 0.0):g} % of the words"
    text = (
        f"{per_1000(expected.per_1000)} of {TURNS:,} user turns with {slips} change the "
        f"{section.kind.words.what}"
    )
    if expected.interval is not None:
        low, high = map(per_1000, expected.interval)
        text += f" ({interval_name(section.summary.dialogues_tested)} {low} to {high})"
    yield Fact("estimate", text, "bad" if expected.per_1000 else "good")
    if expected.in_locked_per_1000:
        text = (
            f"{per_1000(expected.in_locked_per_1000)} with a slip in a value, a name or another "
            f"locked word that a reader recovers, "
            f"{per_1000(expected.per_1000 - expected.in_locked_per_1000)} elsewhere"
        )
        yield Fact("", text)
    if text := by_label_text(expected):
        yield Fact("", text)
    if (found := expected.conversation) is not None:
        style: Style = "bad" if found.per_1000 else "good"
        yield Fact("", f"{AT_ALL_TURNS}: {conversation_text(found)}", style)


def _caveats(info: RunInfo, totals: Totals, summary: Summary) -> Iterator[Fact]:
    """Yield facts that limit the figures: errors, varying answers, a judging language model."""
    reasons = totals.errors
    for reason, times in list(reasons.items())[:1]:
        more = f" (and {len(reasons) - 1} other reasons)" if len(reasons) > 1 else ""
        yield Fact("error", f"{times:,} x {shorten(reason)}{more}", "bad")
    varies = info.disagreement
    if varies is not None and varies.differed and totals.kind.words.values:
        text = (
            f"{varies.differed} of {varies.contexts} contexts got different answers when asked "
            f"{varies.answers} times each"
        )
        yield Fact("answers vary", text, "warning")
    if text := improved_text(summary):
        words = totals.kind.words
        text += f", by the {words.labels}; they are no violations"
        yield Fact("improved", text, "warning")
    if summary.noise is not None and summary.noise.differed:
        yield Fact("noise", noise_text(summary.noise, summary.violations), "warning")
    who = totals.kind.words.who
    if summary.repeats is not None and (text := repeats_text(summary.repeats, who)):
        yield Fact("not repeated", text, "warning")
    if info.judge is not None:
        judge, counts = info.judge
        text = f"a language model compares the replies: {judge.model}"
        if judge.is_tested_model:
            text += ", which is the tested model and favours its own words"
        undecided = counts.unsure + counts.past_budget
        text += f"; undecided on {undecided:,} of {format_count(counts.pairs, 'pair')}"
        yield Fact("judge", text, "warning" if undecided else "plain")


def estimated(sections: Sequence[RelationTotals]) -> RelationTotals | None:
    """Return the first relation that estimates failing user turns, or ``None``."""
    return next((one for one in sections if one.summary.estimated_failures is not None), None)


def new_heading(totals: Totals) -> str:
    """Return how many violations are new since the baseline, as text."""
    return f"{format_count(len(totals.novelty.new), 'new violation')} since the baseline"


def place_text(turn: TurnResult, variant: VariantResult, longest: int = 400) -> str:
    """Return the turn, tracker, relation, kind of failure and variant of a violation."""
    relation = "" if turn.relation == "metamorphic" else f", {turn.relation}"
    failure = "" if variant.failure in (None, "changed") else f" {variant.failure}"
    model = f", {turn.model}" if turn.model else ""
    return f"{shorten(turn.id, longest)}{model}{relation}{failure}, variant {variant.index}"


def _show_weaknesses(
    page: TerminalPage, totals: Totals, sections: Sequence[RelationTotals]
) -> None:
    """Add the first weaknesses with frequency and example."""
    found = totals.weaknesses
    if not found:
        return
    page.gap()
    more = f", the worst {_MOST} (-v shows all)" if len(found) > _MOST else ""
    page.line(f"{weaknesses_text(found)}{more}", "heading")
    for number, one in enumerate(open_first(found)[:_MOST], 1):
        style: Style = "dim" if one.accepted else "bad"
        page.field(f"{number:>3}. ", weakness_text(one, sections), style)
        page.field("     ", _example(one.example.turn, one.example.variant))


def corrector_facts(effect: Mending | None) -> Iterator[Fact]:
    """Yield advice to correct spelling first, if this would remove many violations."""
    if effect is not None and effect.pays:
        text = (
            f"correct the spelling first: a corrector restores {effect.mended:,} of "
            f"{format_count(effect.violations, 'violation')} and alters {effect.altered:,} of "
            f"{format_count(effect.turns, 'clean turn')}"
        )
        yield Fact("try", text)


def open_first(found: Sequence[_Found]) -> list[_Found]:
    """Return the weaknesses in their order, with accepted ones last."""
    return sorted(found, key=lambda one: bool(one.accepted))


def weakness_text(one: FoundWeakness, sections: Sequence[RelationTotals]) -> str:
    """Return name and frequency of a weakness, and the reason if it was accepted."""
    accepted = f"; {accepted_text(one.accepted)}" if one.accepted else ""
    return f"{one.description}: {', '.join(_frequency(one, sections))}{accepted}"


def _frequency(one: FoundWeakness, sections: Sequence[RelationTotals]) -> Iterator[str]:
    """Yield how many turns a weakness breaks, and its estimated rate in 1,000 turns."""
    yield format_count(one.turns, "turn")
    section = estimated(sections)
    expected = None if section is None else section.summary.estimated_failures
    if one.expected:
        yield f"{one.expected:.2g} of {TURNS:,}"
    elif one.expected is not None and expected is not None:
        # This is the exact form of the rule of three, for a weighted sample.
        share = 1 - _UNSEEN ** (1 / expected.effective_sample_size)
        bound = share * expected.distorted_per_1000
        yield f"found only by the search (below {bound:.2g} of {TURNS:,} with 95 % confidence)"


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


def cost_text(sections: Sequence[RelationTotals], info: RunInfo) -> str:
    """Return the number of calls, tokens and cost as far as known, and the time."""
    calls = sum(one.summary.calls for one in sections)
    more = sum(one.summary.minimiser_calls + one.summary.repeat_calls for one in sections)
    cost = format_count(calls, "call")
    conversations = sum(one.summary.conversation_calls for one in sections)
    if conversations:
        cost += f"{',' if more else ' and'} {conversations:,} more for whole conversations"
    if more:
        cost += f" and {more:,} more to check violations and find their smallest edits"
    if info.recalled:
        cost += f"; {format_count(info.recalled, 'answer')} from the cache"
    if info.usage is not None and info.usage.uncounted < info.usage.answers:
        cost += f"; tokens: {usage_text(info.usage)}"
    if info.seconds is not None:
        cost += f"; {info.seconds:,.0f} s"
    return cost
