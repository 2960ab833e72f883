"""The verdict on a session, from its results, its limits and the baseline it is compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pytest_dstfuzz.campaign.answers import UNSTABLE
from pytest_dstfuzz.campaign.intervals import interval_name
from pytest_dstfuzz.campaign.ledger import Counts, ledger
from pytest_dstfuzz.campaign.results import TurnOutcome, TurnResult
from pytest_dstfuzz.campaign.summary import YieldsTally
from pytest_dstfuzz.campaign.sums import tallied
from pytest_dstfuzz.config.rates import percent
from pytest_dstfuzz.dialogue.outcome import REPLY, TOOL_CALLS, who_answers
from pytest_dstfuzz.gate.baseline import Baseline, Groups, Session
from pytest_dstfuzz.gate.limits import Gates, Kind
from pytest_dstfuzz.gate.tested import Tested, idle, main_of, tested, unjudged, unnamed
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
#: At so many turns with recorded calls and no call it is no accident that nothing is called.
LEAST_CALLS: Final = 3
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
    every = tested(session, gates)
    figures = _judge_figures(session, gates, every)
    left_out = unjudged(every, gates, compared=baseline is not None)
    if baseline is None and gates.given and every and not (figures or found):
        figures = [idle(gates, every)]
    if baseline is None and len(left_out) == len(every):  # A finding says so.
        left_out = ()
    rates = (*judge_answers(session.groups), *figures)
    if found or baseline is None:
        return Judgement(tuple(found), rates, cut_short=short, not_judged=left_out)
    # Loads scipy, which a gate without a baseline does without.
    from pytest_dstfuzz.gate.comparison import compare  # noqa: PLC0415 - needs scipy

    compared = compare(baseline, session, gates)
    every_finding = (*compared.findings, *rates)
    return replace(compared, findings=every_finding, cut_short=short, not_judged=left_out)


def judge_answers(groups: Groups) -> tuple[LimitFinding, ...]:
    """Fail trackers that give one answer to everything; the results of each are a group."""
    every = [result for turns in groups.values() for result in turns]
    parts = [one_answer(turns) for turns in groups.values()]
    # Tests with settings of their own may have few turns each, and one tracker all the same.
    reasons = dict.fromkeys(filter(None, [*parts, "" if any(parts) else one_answer(every)]))
    return tuple(
        LimitFinding(None, "clean-answers", None, "regression", reason) for reason in reasons
    )


def _judge_figures(session: Session, gates: Gates, every: Sequence[Tested]) -> list[LimitFinding]:
    """Judge the figures of each relation of the session, and the failure rates of its parts."""
    found: list[LimitFinding] = []
    # Clean answers are the same under each relation, but some ask about few of the turns.
    widest = max(every, key=lambda one: len(one.results), default=None)
    summary = session.summary if widest is None else widest.summary
    if (least := gates.whole.min_accuracy) is not None:
        kind = every[0].results[0].outcome_kind if every and every[0].results else "state"
        found.append(judge_accuracy(least, summary.clean_right, summary.clean_labelled, kind))
    found += _judge_rates(every, gates)
    if (most := gates.whole.max_expected_failures) is not None:
        # None are expected of turns that relations edit by themselves.
        noisy = (one for one in every if any(turn.noise is not None for turn in one.results))
        one = next(noisy, widest)
        summary = session.summary if one is None else one.summary
        name = interval_name(summary.dialogues_tested)
        found.append(judge_expected(most, summary.expected_failures, name))
    limits = {
        part: each.max_failure_rate for part, each in gates.parts.items() if part.kind != "relation"
    }
    if any(limit is not None for limit in limits.values()):
        main = main_of(every)
        results = session.results if main is None else main.results
        yields = tallied(YieldsTally(), results)
        rows: Mapping[Kind, Mapping[str, Counts]] = {
            "domain": yields.domains,
            "slot": yields.slots,
            "transformation": ledger(results).transformations,
        }
        for part, limit in limits.items():
            if limit is not None:
                counts = rows[part.kind].get(part.name, Counts())
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


def troubles(results: Sequence[TurnResult], ended: str = "") -> list[str]:
    """Return why the figures of a session mean nothing, one sentence each."""
    outcomes = Counter(result.outcome for result in results)
    if not any(outcomes[outcome] for outcome in _TESTED):
        what = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
        if text := unstable_text([one for one in results if one.outcome == "untested"]):
            return [text]
        return [f"no turn was tested ({what or ended or 'none was selected, or all were skipped'})"]
    found: list[str] = []
    run = [result for result in results if result.outcome != "skipped"]
    if not any(result.tested for result in run):
        found.append("no valid variant was made of any turn, so nothing was tested")
    # By relation, and without turns that it says nothing of: they would hide the failures.
    for name in dict.fromkeys(result.relation for result in run):
        every = [result for result in run if result.relation == name]
        own = [result for result in every if result.outcome != "inapplicable"]
        errors, most = sum(result.outcome == "error" for result in own), percent(MOST_ERRORS, 0)
        if errors > MOST_ERRORS * len(own):
            under = "" if len(every) == len(run) else f" (relation {name})"
            found.append(
                f"{who_answers(own[0].outcome_kind)} failed on {errors} of {len(own)} "
                f"turns{under}, more than {most}"
            )
    # Which turns settle down hangs on no relation.
    if text := unstable_text([result for result in run if result.outcome != "inapplicable"]):
        found.append(text)
    return found


def unstable_text(results: Sequence[TurnResult]) -> str:
    """Say that too many turns could not be tested for what a bot says anew each time, or ``""``."""
    found = {result.id: result.reason == UNSTABLE for result in results}
    unstable = sum(found.values())
    if unstable <= MOST_ERRORS * len(found):
        return ""
    untested = f"{unstable} of {len(found)} turns could not be tested"
    if any(result.outcome_kind == TOOL_CALLS for result in results):
        return (
            f"{untested}, more than {percent(MOST_ERRORS, 0)}: there, the assistant's calls to the "
            "very same messages differ each time. Say with --dst-arguments when two values of an "
            "argument say the same, or lower the temperature of its model"
        )
    return (
        f"{untested}, more than {percent(MOST_ERRORS, 0)}"
        ": there, the bot's replies to the very same messages differ each time. Say with "
        "--dst-compare when two replies say the same, or with --dst-threshold how far apart they "
        "may lie; dstfuzz calibrate finds a threshold"
    )


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
    if text := _no_calls(results):
        return text
    if len(found) < LEAST_TELLING or not states or any(state != states[0] for state in states):
        return ""
    what = f"the same: {', '.join(states[0])}" if states[0] else "empty"
    if any(result.outcome_kind == REPLY for result in results):
        what = "one and the same reply"
    who = who_answers(results[0].outcome_kind) if results else "the tracker"
    one = who.replace("the bot", "the tracker").removeprefix("the ")
    return (
        f"the clean answers to all {len(states):,} turns are {what}; {_an(one)} that understands "
        "nothing cannot be broken, so nothing was tested"
    )


def _an(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _no_calls(results: Sequence[TurnResult]) -> str:
    """Say that an assistant never calls anything where calls were recorded, or return ``""``.

    At fewer turns than `LEAST_CALLS` with recorded calls that may be chance, but not where it calls
    nothing at any other of so many turns either.
    """
    answered = {
        result.id: (bool(result.label), bool(result.clean_state))
        for result in results
        if result.outcome_kind == TOOL_CALLS and result.clean_state is not None
    }
    recorded = [calls for labelled, calls in answered.values() if labelled]
    if not recorded or any(recorded):
        return ""
    if len(recorded) < LEAST_CALLS:
        others = any(calls for _, calls in answered.values())
        if others or len(answered) < LEAST_CALLS:
            return ""
    turns = "1 turn" if len(recorded) == 1 else f"all {len(recorded):,} turns"
    return (
        f"at {turns} with recorded calls the assistant calls nothing, so nothing was tested: does "
        "it get the tools?"
    )
