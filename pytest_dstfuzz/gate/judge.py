"""The verdict on a session, from its results, its limits and the baseline it is compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pytest_dstfuzz.campaign.intervals import interval_name
from pytest_dstfuzz.campaign.ledger import Counts, ledger
from pytest_dstfuzz.campaign.results import TurnOutcome, TurnResult
from pytest_dstfuzz.campaign.summary import yields_by_domain, yields_by_slot
from pytest_dstfuzz.config.rates import percent
from pytest_dstfuzz.gate.baseline import Baseline, Groups, Session
from pytest_dstfuzz.gate.limits import Gates, Kind
from pytest_dstfuzz.gate.verdict import (
    Judgement,
    LimitFinding,
    judge_accuracy,
    judge_expected,
    judge_rate,
)

#: Above this share of turns at which the tracker failed, the other figures mean little.
MOST_ERRORS: Final = 0.05
#: A run that ended early is judged when it has results for this share of the selected turns.
LEAST_TESTED: Final = 0.5
#: So many turns at which a tracker gives one and the same answer are no accident.
LEAST_TELLING: Final = 20
#: Outcomes of turns at which the tracker was really put to the test.
_TESTED: tuple[TurnOutcome, ...] = ("held", "violation", "error")


def judge(session: Session, gates: Gates, baseline: Baseline | None = None) -> Judgement:
    """Judge a session by its limits, and against the baseline of an earlier build."""
    results, missing = session.results, session.missing
    unrun = f"{missing:,} selected turns have no result" if missing else ""
    found = troubles(results, session.ended or unrun)
    gated = gates.given or baseline is not None
    short = cut_short(results, missing, session.ended) if gated else ""
    if baseline is not None and short and not found and not enough(results, missing):
        found, short = [short], ""
    rates = (*judge_answers(session.groups), *_judge_figures(session, gates))
    if found or baseline is None:
        return Judgement(troubles=tuple(found), findings=rates, cut_short=short)
    # Loads scipy, which a gate without a baseline does without.
    from pytest_dstfuzz.gate.comparison import compare  # noqa: PLC0415 - needs scipy

    compared = compare(baseline, session, gates)
    return replace(compared, findings=(*compared.findings, *rates), cut_short=short)


def judge_answers(groups: Groups) -> tuple[LimitFinding, ...]:
    """Fail trackers that give one answer to everything; the results of each are a group."""
    every = [result for turns in groups.values() for result in turns]
    parts = [one_answer(turns) for turns in groups.values()]
    # Tests with settings of their own may have few turns each, and one tracker all the same.
    reasons = dict.fromkeys(filter(None, [*parts, "" if any(parts) else one_answer(every)]))
    return tuple(
        LimitFinding(None, "clean-answers", None, "regression", reason) for reason in reasons
    )


def _judge_figures(session: Session, gates: Gates) -> list[LimitFinding]:
    """Judge the figures of the session, and the failure rates of its parts."""
    summary, found = session.summary, []
    name = interval_name(summary.dialogues_tested)
    if (least := gates.whole.min_accuracy) is not None:
        found.append(judge_accuracy(least, summary.clean_right, summary.clean_labelled))
    limit = gates.whole.max_failure_rate
    if limit is not None and summary.failure_rate is not None:
        rate, interval = summary.failure_rate, summary.failure_rate_interval
        found.append(judge_rate(None, limit, rate, interval, name))
    if (most := gates.whole.max_expected_failures) is not None:
        found.append(judge_expected(most, summary.expected_failures, name))
    limits = {part: each.max_failure_rate for part, each in gates.parts.items()}
    if any(limit is not None for limit in limits.values()):
        rows: Mapping[Kind, Mapping[str, Counts]] = {
            "domain": yields_by_domain(session.results),
            "slot": yields_by_slot(session.results),
            "transformation": ledger(session.results).transformations,
        }
        for part, limit in limits.items():
            if limit is not None:
                counts = rows[part.kind].get(part.name, Counts())
                found.append(judge_rate(part, limit, counts.failure_rate))
    return found


def troubles(results: Sequence[TurnResult], ended: str = "") -> list[str]:
    """Return why the figures of a session mean nothing, one sentence each."""
    outcomes = Counter(result.outcome for result in results)
    if not any(outcomes[outcome] for outcome in _TESTED):
        what = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
        return [f"no turn was tested ({what or ended or 'none was selected, or all were skipped'})"]
    found: list[str] = []
    run = [result for result in results if result.outcome != "skipped"]
    errors = outcomes["error"]
    if not any(result.tested for result in run):
        found.append("no valid variant was made of any turn, so nothing was tested")
    if errors > MOST_ERRORS * len(run):
        most = percent(MOST_ERRORS, 0)
        found.append(f"the tracker failed on {errors} of {len(run)} turns, more than {most}")
    return found


def cut_short(results: Sequence[TurnResult], missing: int, ended: str) -> str:
    """Say that a session ended before all was tested, or return ``""``."""
    done = sum(result.outcome != "skipped" for result in results)
    selected = len(results) + missing
    if not ended or done == selected:
        return ""
    return f"only {done:,} of {selected:,} turns were run ({ended}): a part never passes a gate"


def enough(results: Sequence[TurnResult], missing: int) -> bool:
    """Whether so much of a session was run that its figures may fail it."""
    done = sum(result.outcome != "skipped" for result in results)
    return done >= LEAST_TESTED * (len(results) + missing)


def one_answer(results: Sequence[TurnResult]) -> str:
    """Say that a tracker gives one clean answer to everything, or return ``""``.

    Nothing can break it then, and nothing that is found says anything. Fewer turns than
    `LEAST_TELLING` may well have one answer. Turns that several tests share count once.
    """
    found = {result.id: result.clean_state for result in results if result.outcome != "skipped"}
    states = [state for state in found.values() if state is not None]
    if len(found) < LEAST_TELLING or not states or any(state != states[0] for state in states):
        return ""
    what = f"the same: {', '.join(states[0])}" if states[0] else "empty"
    return (
        f"the clean answers to all {len(states):,} turns are {what}; a tracker that understands "
        "nothing cannot be broken, so nothing was tested"
    )
