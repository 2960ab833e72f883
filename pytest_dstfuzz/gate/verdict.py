"""Verdicts: the rules, what they are worth as an exit status, and how they are reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pytest_dstfuzz.gate.limits import Part

#: ``regression``: the interval of the difference lies above 0 and the difference above the
#: margin, or a failure rate is over its limit. ``pass``: every interval lies below its
#: margin, and every rate within its limit. ``inconclusive``: neither, or there was nothing
#: to compare. ``infrastructure``: the tracker failed too often, or too little was tested.
Verdict = Literal["pass", "regression", "inconclusive", "infrastructure"]

PASSED: Final = 0
FAILED: Final = 1
#: Not among pytest's own, which are 0 to 5.
INFRASTRUCTURE: Final = 6
INCONCLUSIVE: Final = 7


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one limit."""

    #: ``None`` = the whole session.
    part: Part | None
    gate: Literal["max-failure-rate", "max-regression"]
    #: The limit itself, 0 to 1.
    limit: float
    verdict: Verdict
    #: One sentence, without a full stop.
    reason: str
    #: The failure rate, or the difference; ``None`` where nothing was counted.
    value: float | None = None
    #: Of the value.
    interval: tuple[float, float] | None = None
    #: How many dialogues would decide an inconclusive comparison.
    dialogues_needed: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary."""
        return {
            "part": None if self.part is None else self.part._asdict(),
            "gate": self.gate,
            "limit": self.limit,
            "verdict": self.verdict,
            "reason": self.reason,
            "value": self.value,
            "interval": None if self.interval is None else list(self.interval),
            "dialogues_needed": self.dialogues_needed,
        }


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a session, and all that it rests on."""

    #: Why the figures mean nothing, whatever the findings.
    troubles: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    #: Why there is no comparison with the baseline that was given, one phrase each.
    not_compared: tuple[str, ...] = ()
    #: The ``comparison`` of the JSON report; ``None`` without one.
    comparison: Mapping[str, Any] | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst verdict that any limit gives."""
        if self.troubles:
            return "infrastructure"
        found = {finding.verdict for finding in self.findings}
        if "regression" in found:
            return "regression"
        return "inconclusive" if "inconclusive" in found or self.not_compared else "pass"

    def exit_status(self, *, compared: bool, inconclusive_fails: bool) -> int:
        """Return the exit status that the verdict asks for.

        Args:
            compared: whether a baseline was given. Without one every failure is a 1.
            inconclusive_fails: whether it is a failure not to know.
        """
        statuses: dict[Verdict, int] = {
            "pass": PASSED,
            "regression": FAILED,
            "inconclusive": INCONCLUSIVE if inconclusive_fails else PASSED,
            "infrastructure": INFRASTRUCTURE if compared else FAILED,
        }
        return statuses[self.verdict]

    def to_json(self) -> dict[str, Any]:
        """Return the object ``gate`` of the JSON report."""
        return {
            "verdict": self.verdict,
            "troubles": list(self.troubles),
            "not_compared": list(self.not_compared),
            "findings": [finding.to_json() for finding in self.findings],
            "comparison": None if self.comparison is None else dict(self.comparison),
        }


def judge_rate(
    part: Part | None,
    limit: float,
    rate: float | None,
    interval: Sequence[float] | None = None,
    name: str = "95 % interval",
) -> Finding:
    """Judge a failure rate by its limit.

    Args:
        part: what the rate is of.
        limit: highest rate that is allowed.
        rate: violations over valid variants; ``None`` without a valid variant.
        interval: of the rate, 95 %.
        name: what the interval is called.
    """
    gate: Literal["max-failure-rate"] = "max-failure-rate"
    if rate is None:
        return Finding(part, gate, limit, "inconclusive", f"no valid variant{_of(part)} was tested")
    over = rate > limit
    bounds = None if interval is None else (interval[0], interval[1])
    known = "" if bounds is None else f" ({name} {bounds[0]:.2%} to {bounds[1]:.2%})"
    where = "is over" if over else "is within"
    reason = f"the failure rate{_of(part)} {rate:.2%}{known} {where} the limit of {limit:.2%}"
    return Finding(part, gate, limit, "regression" if over else "pass", reason, rate, bounds)


def judge_difference(
    part: Part | None,
    margin: float,
    difference: float,
    interval: tuple[float, float] | None,
    needed: int | None,
) -> Finding:
    """Judge the difference of two failure rates on the same variants.

    ``regression`` where its interval lies above 0 and the difference above the margin,
    ``pass`` where its interval lies below the margin (a bound at the margin is not above
    it), otherwise ``inconclusive``.

    Args:
        part: what the rates are of.
        margin: highest rise that is allowed.
        difference: failure rate of this build, less that of the baseline.
        interval: of the difference; ``None`` with too few dialogues for one.
        needed: how many dialogues would decide.
    """
    verdict: Verdict = "inconclusive"
    if interval is not None and interval[0] > 0 and difference > margin:
        verdict = "regression"
    elif interval is not None and interval[1] <= margin:
        verdict = "pass"
    moved = f"the failure rate{_of(part)} changed by {points(difference)}"
    known = (
        "too few dialogues for an interval"
        if interval is None
        else f"interval {points(interval[0])} to {points(interval[1])}"
    )
    reason = f"{moved} against the baseline ({known}); {points(margin)} are allowed"
    if verdict == "inconclusive":
        reason += (
            "; a difference right at the margin is never decided"
            if needed is None
            else f"; about {needed:,} dialogues would decide"
        )
        return Finding(
            part, "max-regression", margin, verdict, reason, difference, interval, needed
        )
    return Finding(part, "max-regression", margin, verdict, reason, difference, interval)


def points(difference: float) -> str:
    """Return a difference of rates in percentage points."""
    return f"{100 * difference + 0.0:+.2f} pp"


def _of(part: Part | None) -> str:
    return "" if part is None else f" of {part}"
