"""Verdicts: the rules, what they are worth as an exit status, and how they are reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pytest_dstfuzz.campaign.expected import TURNS
from pytest_dstfuzz.campaign.intervals import interval_name
from pytest_dstfuzz.campaign.ledger import Counts
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.config.rates import over, over_per_1000, percent, points, rise_per_1000
from pytest_dstfuzz.gate.limits import NO_ESTIMATE, UNITS, Figure, Limit, Part
from pytest_dstfuzz.json_data import to_json

#: ``drift``: clean answers differ from the baseline's at more turns than is allowed, whatever
#: else was found. ``regression``: the interval of the difference lies above 0 and the
#: difference above the margin, a rate is over (an accuracy under) its limit, or the tracker
#: answers the same to everything. ``pass``: every interval lies below its margin, and every
#: rate within its limit.
#: ``inconclusive``: neither. ``not-compared``: nothing of the run could be compared with the
#: baseline but clean answers, as it was made with other settings, words or data.
#: ``infrastructure``: the tracker failed too often, too little was tested, or what was tested of
#: a run that ended early gives no reason to fail it.
Verdict = Literal["pass", "drift", "regression", "inconclusive", "not-compared", "infrastructure"]

PASSED: Final = 0
FAILED: Final = 1
#: pytest's own are 0 to 5, and since 9.1 also 6, for too many warnings (``--max-warnings``).
INFRASTRUCTURE: Final = 6
INCONCLUSIVE: Final = 7
DRIFT: Final = 8
NOT_COMPARED: Final = 9
#: The exit status of each verdict on a build that has a baseline, the worst last.
STATUSES: Final[dict[Verdict, int]] = {
    "pass": PASSED,
    "inconclusive": INCONCLUSIVE,
    "not-compared": NOT_COMPARED,
    "infrastructure": INFRASTRUCTURE,
    "regression": FAILED,
    "drift": DRIFT,
}


@dataclass(frozen=True, slots=True)
class LimitFinding:
    """What came of one limit."""

    #: ``None`` = the whole session.
    part: Part | None
    #: Name of the limit, or ``clean-answers`` or ``applies``.
    gate: str
    #: The limit itself: 0 to 1, of 1,000 user turns, or a number of weaknesses; ``None`` where
    #: there is none to set.
    limit: float | None
    verdict: Verdict
    #: One sentence, without a full stop.
    reason: str
    #: The rate, the difference, the failures of 1,000 turns, or the weaknesses; ``None`` where
    #: nothing was counted.
    value: float | None = None
    #: Of the value.
    interval: tuple[float, float] | None = None
    #: How many dialogues would decide an inconclusive comparison.
    dialogues_needed: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary."""
        plain: dict[str, Any] = to_json(self)
        return {**plain, "part": None if self.part is None else self.part._asdict()}


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a session, and all that it rests on."""

    #: Why the figures mean nothing, whatever the findings.
    troubles: tuple[str, ...] = ()
    findings: tuple[LimitFinding, ...] = ()
    #: Why there is no comparison with the baseline that was given, one phrase each.
    not_compared: tuple[str, ...] = ()
    #: The ``comparison`` of the JSON report; ``None`` without one.
    comparison: Mapping[str, Any] | None = None
    #: Why what was tested is not all that was to be tested; ``""`` where it is.
    cut_short: str = ""
    #: Names of the relations that were tested and that no limit is about.
    not_judged: tuple[str, ...] = ()
    #: Of relations that were asked for by name and applied to a part of the turns only: how many.
    partly_applied: tuple[str, ...] = ()
    #: Where the tracker failed on too few turns to fail the session: at how many, and the first.
    raised: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst verdict that any limit gives; a run that was cut short never passes."""
        if self.troubles:
            return "infrastructure"
        found = {finding.verdict for finding in self.findings}
        for worst in ("drift", "regression"):
            if worst in found:
                return worst
        if self.cut_short:
            return "infrastructure"
        if self.not_compared and not self._estimates_compared:
            return "not-compared"
        return "inconclusive" if "inconclusive" in found or self.not_compared else "pass"

    @property
    def _estimates_compared(self) -> bool:
        """Whether expected failures were compared: they do not need the same variants."""
        expected = (self.comparison or {}).get("expected_failures")
        return expected is not None and not expected["reason"]

    def exit_status(self, *, compared: bool, policy: str) -> int:
        """Return the exit status of the verdict.

        Args:
            compared: whether there is a baseline; without one every failure is a 1.
            policy: the option ``dst_inconclusive``.
        """
        if self.verdict == "inconclusive" and policy != "fail":
            return PASSED
        if self.verdict == "not-compared" and policy == "allow":
            return PASSED
        if self.verdict == "infrastructure" and not compared:
            return FAILED
        return STATUSES[self.verdict]

    def to_json(self) -> dict[str, Any]:
        """Return the object ``gate`` of the JSON report."""
        return {
            "verdict": self.verdict,
            "troubles": [*self.troubles, *filter(None, [self.cut_short])],
            "not_compared": list(self.not_compared),
            "not_judged": list(self.not_judged),
            "partly_applied": list(self.partly_applied),
            "raised": list(self.raised),
            "findings": [finding.to_json() for finding in self.findings],
            "comparison": None if self.comparison is None else dict(self.comparison),
        }


def judge_figure(
    limit: Limit, bound: float, figure: Figure, part: Part | None = None
) -> LimitFinding:
    """Judge a figure of a session, or of a part of it, by its limit."""
    value, interval, unit = figure.value, figure.interval, UNITS[limit.unit]
    if value is None:
        return LimitFinding(part, limit.name, bound, "inconclusive", figure.text)
    failed = (unit.under if limit.least else unit.over)(value, bound)
    known = ""
    if interval is not None and figure.dialogues is not None:
        ends = " to ".join(map(unit.show, interval))
        known = f" ({interval_name(figure.dialogues)} {ends})"
    elif figure.dialogues is not None and part is None:
        known = " (too few dialogues for an interval)"
    side = "within" if not failed else "under" if limit.least else "over"
    shown = f"{figure.text}{known}{figure.joint}"
    reason = f"{shown} is {side} the limit of {unit.show_limit(bound)}"
    verdict: Verdict = "regression" if failed else "pass"
    return LimitFinding(part, limit.name, bound, verdict, reason, value, interval)


def failure_rate(part: Part | None, counts: Counts) -> Figure:
    """Return the failure rate of a session or a relation; domains and such have no interval."""
    rate = counts.failure_rate
    if rate is None:
        return Figure(None, f"no valid variant{_of(part)} was answered")
    shown = f"the failure rate{_of(part)} {percent(rate)}"
    if isinstance(counts, Summary):
        return Figure(rate, shown, counts.failure_rate_interval, counts.dialogues_tested)
    return Figure(rate, shown)


def judge_rise(limit: float, found: Mapping[str, Any] | None, needed: int | None) -> LimitFinding:
    """Judge by how much expected failures rose, as `judge_difference` judges failure rates.

    ``found`` are the ``expected_failures`` of a comparison, if the run has them.
    """
    gate = "max-expected-rise"
    why = NO_ESTIMATE if found is None else found["reason"]
    if found is None or why:
        reason = f"the expected failures are not compared with the baseline: {why}"
        return LimitFinding(None, gate, limit, "inconclusive", reason)
    rise, ends = found["difference"], found["interval"]
    interval = None if ends is None else (ends[0], ends[1])
    verdict = _verdict_of(interval, limit, is_over=over_per_1000(rise, limit))
    known = "too few dialogues for an interval"
    if interval is not None:
        known = f"interval {' to '.join(map(rise_per_1000, interval))}"
    reason = (
        f"the expected failures of {TURNS:,} user turns changed by {rise_per_1000(rise)} against "
        f"the baseline ({known}); {rise_per_1000(limit)} are allowed"
    )
    needed, more = _needed(verdict, needed)
    return LimitFinding(None, gate, limit, verdict, f"{reason}{more}", rise, interval, needed)


def judge_difference(
    part: Part | None,
    margin: float,
    difference: float,
    interval: tuple[float, float] | None,
    needed: int | None,
) -> LimitFinding:
    """Judge the difference of two failure rates on the same variants.

    ``regression`` where its interval lies above 0 and the difference above the margin,
    ``pass`` where its interval lies below the margin (a bound at the margin is not above
    it), otherwise ``inconclusive``, with the number of dialogues that would decide. With too
    few dialogues there is no interval.
    """
    verdict = _verdict_of(interval, margin, is_over=over(difference, margin))
    moved = f"the failure rate{_of(part)} changed by {points(difference)}"
    known = (
        "too few dialogues for an interval"
        if interval is None
        else f"interval {points(interval[0])} to {points(interval[1])}"
    )
    reason = f"{moved} against the baseline ({known}); {points(margin)} are allowed"
    needed, more = _needed(verdict, needed)
    return LimitFinding(
        part, "max-regression", margin, verdict, f"{reason}{more}", difference, interval, needed
    )


def _verdict_of(
    interval: tuple[float, float] | None, margin: float, *, is_over: bool
) -> Literal["pass", "regression", "inconclusive"]:
    """Return the verdict on a difference that is over its margin or not."""
    if interval is not None and interval[0] > 0 and is_over:
        return "regression"
    return "pass" if interval is not None and interval[1] <= margin else "inconclusive"


def _needed(verdict: Verdict, dialogues: int | None) -> tuple[int | None, str]:
    """Return how many dialogues would decide what is not decided, and say so."""
    if verdict != "inconclusive":
        return None, ""
    if dialogues is None:
        return None, "; a difference right at the margin is never decided"
    return dialogues, f"; about {dialogues:,} dialogues would decide"


def _of(part: Part | None) -> str:
    return "" if part is None else f" of {part}"
