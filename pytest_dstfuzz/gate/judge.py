"""The verdict on a session, from its results, its limits and the baseline it is compared with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_dstfuzz.campaign.intervals import interval_name
from pytest_dstfuzz.campaign.ledger import Counts
from pytest_dstfuzz.gate.baseline import Baseline, Session
from pytest_dstfuzz.gate.limits import Gates
from pytest_dstfuzz.gate.tested import (
    Tested,
    idle,
    main_of,
    tested_relations,
    unapplied,
    unjudged,
    unnamed,
)
from pytest_dstfuzz.gate.verdict import (
    Judgement,
    LimitFinding,
    judge_accuracy,
    judge_expected,
    judge_rate,
)
from pytest_dstfuzz.kinds.belief_states import BELIEF_STATES
from pytest_dstfuzz.totals.tallies import applied_text
from pytest_dstfuzz.totals.totals import Totals


def judge(
    session: Session,
    gates: Gates,
    baseline: Baseline | None = None,
    asked: Mapping[str, str] | None = None,
) -> Judgement:
    """Judge a session by its limits, and against the baseline of an earlier build.

    ``asked`` are the relations that were asked for by name, with what each has a result for.
    """
    troubles, missing = session.totals.troubles, session.missing
    every = tested_relations(session, gates)
    unrun = f"{missing:,} selected turns have no result" if missing else ""
    found = troubles.troubles(session.ended or unrun)
    gated = gates.given or baseline is not None
    short = troubles.cut_short(missing, session.ended) if gated else ""
    if baseline is not None and short and not found and not troubles.enough(missing):
        found, short = [short], ""
    figures = _judge_figures(session, gates, every)
    left_out = unjudged(every, gates, compared=baseline is not None)
    if baseline is None and gates.given and every and not (figures or found):
        figures = [idle(gates, every)]
    if baseline is None and len(left_out) == len(every):  # A finding says so.
        left_out = ()
    said = {
        one.name: applied_text(one.name, one.totals.applicable, one.totals.inapplicable, unit)
        for one in every
        if (unit := (asked or {}).get(one.name))
    }
    applied = {one.name for one in every if one.totals.applicable}
    nowhere = [unapplied(name, text) for name, text in said.items() if text and name not in applied]
    rates = (*judge_answers(session.totals), *nowhere, *figures)
    beside: dict[str, Any] = {
        "cut_short": short,
        "not_judged": left_out,
        "raised": troubles.raised(),
        "partly_applied": tuple(text for name, text in said.items() if text and name in applied),
    }
    if found or baseline is None:
        return Judgement(tuple(found), rates, **beside)
    # Loads scipy.stats, which a gate without a baseline does without.
    from pytest_dstfuzz.gate.comparison import compare  # noqa: PLC0415 - slow to load

    compared = compare(baseline, session, gates, every)
    every_finding = (*compared.findings, *rates)
    return replace(compared, findings=every_finding, **beside)


def judge_answers(totals: Totals) -> tuple[LimitFinding, ...]:
    """Fail trackers that give one answer to everything."""
    return tuple(
        LimitFinding(None, "clean-answers", None, "regression", reason)
        for reason in totals.one_answer
    )


def _judge_figures(session: Session, gates: Gates, every: Sequence[Tested]) -> list[LimitFinding]:
    """Judge the figures of each relation of the session, and the failure rates of its parts."""
    found: list[LimitFinding] = []
    # Clean answers are the same under each relation, but some ask about few of the turns.
    widest = max(every, key=lambda one: one.totals.count, default=None)
    summary = session.summary if widest is None else widest.summary
    if (least := gates.whole.min_accuracy) is not None:
        kind = every[0].totals.kind if every else BELIEF_STATES
        found.append(judge_accuracy(least, summary.clean_right, summary.clean_labelled, kind))
    found += _judge_rates(every, gates)
    if (most := gates.whole.max_expected_failures) is not None:
        # None are expected of turns that relations edit by themselves.
        one = next((one for one in every if one.totals.slip_rates), widest)
        summary = session.summary if one is None else one.summary
        name = interval_name(summary.dialogues_tested)
        found.append(judge_expected(most, summary.expected_failures, name))
    limits = {
        part: each.max_failure_rate for part, each in gates.parts.items() if part.kind != "relation"
    }
    main = main_of(every)
    for part, limit in limits.items():
        if limit is not None:
            counts = Counts() if main is None else main.counts_of(part)
            found.append(judge_rate(part, limit, counts.failure_rate))
    return found


def _judge_rates(every: Sequence[Tested], gates: Gates) -> Iterator[LimitFinding]:
    """Judge the failure rate of each relation by itself."""
    whole, judged = gates.whole.max_failure_rate, False
    for one in every:
        limit = one.limit(whole, one.own.max_failure_rate)
        judged = judged or limit is not None
        if limit is None or (limit[0] is None and not one.summary.valid):
            continue
        rate, interval = one.summary.failure_rate, one.summary.failure_rate_interval
        yield judge_rate(*limit, rate, interval, interval_name(one.summary.dialogues_tested))
    if whole is not None and every and not judged:
        yield unnamed("max-failure-rate", whole, every)
