"""The judgement of a session, for each tracker."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from pytest_dstfuzz.campaign.figures import Counts, weight_of
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.gate.baseline import (
    Baseline,
    RelationGate,
    Session,
    Suite,
    idle,
    list_tested_relations,
    list_unjudged,
    main_of,
    name_groups,
    own_tables,
    report_unapplied,
    report_unnamed,
)
from pytest_dstfuzz.gate.verdict import (
    LIMITS,
    STATUSES,
    Gates,
    Judgement,
    LimitFinding,
    Limits,
    Part,
    failure_rate,
    judge_figure,
)
from pytest_dstfuzz.printable import format_count, format_list
from pytest_dstfuzz.totals.tallies import describe_applied
from pytest_dstfuzz.totals.totals import RelationFacts, RelationTotals, Totals


def worst_status(*statuses: int) -> int:
    """Return the exit status of a session, given the statuses of the verdicts on its trackers."""
    return max(statuses, key=list(STATUSES.values()).index)


def baseline_of(session: Session, baselines: Mapping[str, Baseline], suite: Suite) -> Baseline:
    """Return the baseline of a session's tracker.

    If the file has no results of the tracker, nothing is compared: the result has no groups, and
    the names of all trackers of the file as ``model``.

    Args:
        session: the results of the tracker.
        baselines: by tracker name.
        suite: the tests of the suite.
    """
    own = name_groups(session.groups)
    known = suite.find(session.tracker, own, baselines)
    if known is None:
        names = format_list(sorted(one.model for one in baselines.values()), _MOST_NAMES)
        other = next(iter(baselines.values()))
        return replace(other, model=names, groups={}, weaknesses=None)
    found = baselines[known]
    groups = {name: turns for name, turns in found.groups.items() if name in own}
    if known == session.tracker or len(groups) in (0, len(found.groups)):
        return found
    # The weaknesses are counted over several trackers and cannot be split.
    return replace(found, groups=groups, weaknesses=None)


#: The rule for runs that ended early.
_RULE: Final = (
    "an incomplete run passes no gate, unless a budget ended it after at least half of the turns "
    "and no violation waits for confirmation"
)
#: Why turns may lack results although nothing ended the run, and how to leave tests out.
UNRUN: Final = (
    "Their tests were skipped or did not use dst_turn.result. Deselect tests that should not count"
)
#: Maximum number of trackers that a message names.
_MOST_NAMES: Final = 5
_FAILURE_RATE: Final = next(one for one in LIMITS if one.name == "max-failure-rate")


def judge(
    session: Session,
    gates: Gates,
    baseline: Baseline | None = None,
    asked: Mapping[str, str] | None = None,
    *,
    recorded: bool = True,
) -> Judgement:
    """Judge a session by its limits, and against the baseline of an earlier build.

    ``asked`` maps each relation that the options name to the unit of its results, turn or dialogue.
    ``recorded`` says whether violations fail no test, so that only limits judge them.
    """
    troubles, missing = session.totals.troubles, session.missing
    gates = gates if baseline is not None else gates.without_baseline
    every = list_tested_relations(session, gates)
    unrun = no_result_text(missing) if missing else ""
    found = troubles.troubles(session.ended or unrun) + judge_comparison(session)
    gated = gates.given or baseline is not None
    short = troubles.cut_short(missing, session.ended or unrun) if gated else ""
    covered = _is_covered(session, gates, every)
    parts = (short if covered else "", troubles.untested_text)
    partly = [f"the gate judged only a part of the run: {one}" for one in parts if one]
    if short:
        why = "" if session.ended else f". {UNRUN}"
        short = "" if covered else f"{short}: {_RULE}{why}"
    if baseline is not None and short and not found and not troubles.enough(missing):
        found, short = [short], ""
    figures = _judge_figures(session, gates, every)
    left_out = list_unjudged(every, gates, compared=baseline is not None)
    uncounted = Uncounted()
    if baseline is None and not found:
        if recorded and _judges_violations(gates, figures):
            uncounted = _count_uncounted(session, gates, every, left_out)
        figures = _with_idle_limits(every, gates, figures, uncounted, recorded=recorded)
    if baseline is None and len(left_out) == len(every):  # The finding above reports it.
        left_out = ()
    said = _say_applied(every, asked or {})
    applied = {one.name for one in every if one.totals.applicable}
    nowhere = [
        report_unapplied(name, text) for name, text in said.items() if text and name not in applied
    ]
    unestimated = _judge_unestimated(every, left_out, gates.whole.get("max_estimated_failures"))
    rates = (*judge_answers(session.totals), *nowhere, *figures, *unestimated)
    beside: dict[str, Any] = {
        "cut_short": short,
        "covered": (*partly, *uncounted.notes),
        "not_judged": left_out,
        "raised": troubles.raised(),
        "partly_applied": tuple(text for name, text in said.items() if text and name in applied),
    }
    if found or baseline is None:
        return Judgement(tuple(found), rates, **beside)
    # Imports scipy.stats, which a gate without a baseline does not need.
    from pytest_dstfuzz.gate.comparison import compare  # noqa: PLC0415 - slow to load

    compared = compare(baseline, session, gates, every)
    every_finding = (*compared.findings, *rates)
    return replace(compared, findings=every_finding, **beside)


def _is_covered(session: Session, gates: Gates, every: Sequence[RelationGate]) -> bool:
    """Return whether a session that a budget ended has enough results for a verdict.

    It has too few if violations that the budget left to confirm could exceed a limit. Only turns
    that broke are asked again. So without them, the failure rate may be too low.
    """
    troubles, name = session.totals.troubles, "max_failure_rate"
    if not (session.by_budget and troubles.enough(session.missing)) or troubles.many_unconfirmed:
        return False
    main, whole = main_of(every), gates.whole.get(name)
    figures: list[tuple[Counts | Summary, float, int]] = [
        (one.summary, limit[1], troubles.unconfirmed[one.name])
        for one in every
        if (limit := one.limit(whole, one.own.get(name))) is not None
    ]
    if main is not None:  # Nobody knows the parts of an unconfirmed violation.
        figures += [
            (main.counts_of(part), each[name], troubles.unconfirmed[main.name])
            for part, each in gates.parts.items()
            if part.kind != "relation" and each.get(name) is not None
        ]
    return not any(
        one.violations <= most * one.valid < one.violations + waiting - most * waiting
        for one, most, waiting in figures
    )


def _say_applied(every: Sequence[RelationGate], asked: Mapping[str, str]) -> dict[str, str]:
    """Return a sentence for each relation in ``asked``, empty if it applied to all turns."""
    return {
        one.name: describe_applied(one.name, one.totals.applicable, one.totals.inapplicable, unit)
        for one in every
        if (unit := asked.get(one.name))
    }


def no_result_text(missing: int) -> str:
    """Return a text on the selected turns that have no result.

    >>> no_result_text(1), no_result_text(2)
    ('1 selected turn has no result', '2 selected turns have no result')
    """
    turns = "turn has" if missing == 1 else "turns have"
    return f"{missing:,} selected {turns} no result"


def judge_answers(totals: Totals) -> tuple[LimitFinding, ...]:
    """Return a finding ``regression`` for each tracker with the same answer to all clean turns."""
    return tuple(
        LimitFinding(None, "clean-answers", None, "regression", reason)
        for reason in totals.one_answer
    )


def judge_comparison(session: Session) -> list[str]:
    """Return a sentence for each comparison by which all different clean answers agree."""
    if session.totals.one_answer:
        return []
    return [
        "nothing was compared: all clean answers agree by the comparison "
        f"{name!r}, although they differ. So a variant that gets the answer to another turn "
        "does not break. Compare more of the answers: change the rules that ignore a value, the "
        "threshold, or the comparison"
        for name in session.blind
    ]


def _judge_figures(
    session: Session, gates: Gates, every: Sequence[RelationGate]
) -> list[LimitFinding]:
    """Judge the figures of each relation, and the failure rates of its parts."""
    found: list[LimitFinding] = []
    given = [one for one in gates.known if one.figure is not None and one.key in gates.whole]
    own = {
        one: judge_figure(one, gates.whole[one.key], one.figure_of(session.totals)) for one in given
    }
    found += [finding for limit, finding in own.items() if limit.least]
    found += _judge_rates(every, gates)
    found += [finding for limit, finding in own.items() if not limit.least]
    limits = {
        part: each.get("max_failure_rate")
        for part, each in gates.parts.items()
        if part.kind != "relation"
    }
    main = main_of(every)
    for part, limit in limits.items():
        if limit is not None:
            counts = Counts() if main is None else main.counts_of(part)
            found.append(judge_figure(_FAILURE_RATE, limit, failure_rate(part, counts), part))
    return found


def _judge_unestimated(
    every: Sequence[RelationGate], left_out: Sequence[str], limit: float | None
) -> Iterator[LimitFinding]:
    """Yield a regression for each relation with violations that only an estimate could judge.

    Under a limit on estimated failures, violations fail no test. Therefore violations without an
    estimate must fail the gate.
    """
    for one in every if limit is not None else ():
        broken = one.summary.violations
        if one.name in left_out and broken:
            reason = (
                f"{one.name} makes its own edits, so there is no estimate of its failures, and "
                f"{broken:,} of its {one.summary.valid:,} valid variants break: set a limit for it "
                f"{own_tables([one.name])}"
            )
            part = Part("relation", one.name)
            yield LimitFinding(part, "max-estimated-failures", limit, "regression", reason)


def _with_idle_limits(
    every: Sequence[RelationGate],
    gates: Gates,
    figures: list[LimitFinding],
    uncounted: Uncounted,
    *,
    recorded: bool,
) -> list[LimitFinding]:
    """Return the findings. Add findings about limits that judge nothing.

    ``recorded`` says whether violations fail no test.
    """
    if gates.given and every and not figures:
        figures = [idle(gates, every)]
    if not recorded:
        return figures
    return [*figures, *_judge_idle_limits(every, gates, figures), *uncounted.findings]


def _judges_violations(gates: Gates, figures: Iterable[LimitFinding]) -> bool:
    """Return whether a limit on failures of the bot has a figure to judge."""
    judging = {limit.name for limit in gates.known if limit.of_violations}
    return any(one.gate in judging and one.value is not None for one in figures)


def _judge_idle_limits(
    every: Sequence[RelationGate], gates: Gates, figures: Sequence[LimitFinding]
) -> Iterator[LimitFinding]:
    """Yield a regression if there are violations but no limit can judge them.

    A limit without a figure cannot judge. With a limit, violations fail no test, so they must fail
    the gate. An estimate that only lacks data stays inconclusive.
    """
    broken = sum(one.summary.violations for one in every)
    if not (broken and gates.of_violations) or "max_estimated_failures" in gates.whole:
        return
    if _judges_violations(gates, figures):
        return
    verb = "violation is" if broken == 1 else "violations are"
    reason = (
        f"{broken:,} {verb} under no limit, because no limit has anything to judge: set a limit "
        "for the session, or for what this run tests, or let violations fail their tests with "
        "--dst-fail-on=violation"
    )
    yield LimitFinding(None, _FAILURE_RATE.name, None, "regression", reason)


class Uncounted(NamedTuple):
    """Violations that count in no limit, of relations that have a limit."""

    violations: int = 0
    #: The violations that count in no limit.
    others: int = 0
    #: Those of them that a limit of a transformation must not let pass.
    of_transformations: int = 0
    #: Those with edits of earlier turns as a cause, if an estimate is limited and counts none.
    unestimated: int = 0
    #: The table for a limit that counts all of them.
    table: str = ""

    @property
    def findings(self) -> tuple[LimitFinding, ...]:
        """A regression if limits of transformations do not count a violation of their edits.

        Also if a limit on estimated failures counts no violation at all.
        """
        count = self.of_transformations or self.unestimated
        if not count:
            return ()
        verb = "violation is" if count == 1 else "violations are"
        limits = "limits of transformations count" if self.of_transformations else "estimates count"
        reason = (
            f"{count:,} {verb} under no limit, because edits of earlier turns are a cause, and "
            f"{limits} only the edits of the turn itself: set max-failure-rate for the relation "
            f"{self.table}"
        )
        return (LimitFinding(None, _FAILURE_RATE.name, None, "regression", reason),)

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence if limits judge only a part of the violations."""
        if self.others in (self.of_transformations, self.unestimated):
            return ()
        verb = "counts" if self.others == 1 else "count"
        return (
            (
                f"the gate judged only a part of the run: {self.others:,} of "
                f"{format_count(self.violations, 'violation')} {verb} in no limit. To judge all, "
                f"set max-failure-rate for the relation {self.table}"
            ),
        )


def _count_uncounted(
    session: Session, gates: Gates, every: Sequence[RelationGate], left_out: Collection[str]
) -> Uncounted:
    """Count the violations that no limit on failures counts, whatever their cause.

    ``left_out`` are the relations without any limit, which the gate names.
    """
    whole, main = gates.whole.get("max_failure_rate"), main_of(every)
    parts = {
        part
        for part, each in gates.parts.items()
        if part.kind != "relation" and "max_failure_rate" in each
    }
    estimated = "max_estimated_failures" in gates.whole
    relations = {
        one.name: parts if one is main else set[Part]()
        for one in every
        if one.name not in left_out
        and one.limit(whole, one.own.get("max_failure_rate")) is None
        and one.summary.violations
    }
    violations = others = of_transformations = earlier = 0
    for turn in session.results if relations else ():
        limited = relations.get(turn.relation, set())
        for one in turn.violations if turn.relation in relations else ():
            violations += 1
            if _counts(turn, one, limited) or (estimated and weight_of(turn, one)):
                continue
            others += 1
            earlier += one.cause != "turn"
            edits = [*one.edits, *(edit for each in one.context_edits for edit in each.edits)]
            edited = {Part("transformation", edit.transformation) for edit in edits}
            of_transformations += one.cause != "turn" and not edited.isdisjoint(limited)
    table = own_tables([*relations]) if relations else ""
    unestimated = earlier if estimated and others == violations else 0
    return Uncounted(violations, others, of_transformations, unestimated, table)


def _counts(turn: TurnResult, violation: VariantResult, limited: Iterable[Part]) -> bool:
    """Return whether a violation counts in the figure of a limited part."""
    alone = RelationTotals(turn.relation, turn.side, RelationFacts(), turn.kind)
    alone.add(replace(turn, variants=(violation,)))
    of_it = RelationGate(alone, None, Limits())
    return any(of_it.counts_of(part).violations for part in limited)


def _judge_rates(every: Sequence[RelationGate], gates: Gates) -> Iterator[LimitFinding]:
    """Judge the failure rate of each relation by itself."""
    whole, judged = gates.whole.get("max_failure_rate"), False
    for one in every:
        limit = one.limit(whole, one.own.get("max_failure_rate"))
        judged = judged or limit is not None
        if limit is None or (limit[0] is None and not one.summary.valid):
            continue
        part, most = limit
        yield judge_figure(_FAILURE_RATE, most, failure_rate(part, one.summary), part)
    if whole is not None and every and not judged:
        yield report_unnamed("max-failure-rate", whole, every)
