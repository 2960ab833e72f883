"""Whether a session as a whole failed, apart from its single tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pytest_dstfuzz.campaign.results import TurnOutcome, TurnResult
from pytest_dstfuzz.config import Settings

#: Above this share of turns at which the tracker failed, the other figures mean little.
MOST_ERRORS = 0.05
#: Outcomes of turns at which the tracker was really put to the test.
_TESTED: tuple[TurnOutcome, ...] = ("held", "violation", "error")


def complaints(
    results: Sequence[TurnResult],
    settings: Settings,
    failure_rate: float | None,
    interval: Sequence[float] | None,
    ended: str = "",
) -> list[str]:
    """Return why the session fails, one sentence each; nothing when it does not.

    Args:
        results: all turns of the session.
        settings: those of the session.
        failure_rate: violations over valid variants; ``None`` without a valid variant.
        interval: of the failure rate, 95 %.
        ended: why the session ended early, if it did.
    """
    found: list[str] = []
    outcomes = Counter(result.outcome for result in results)
    if not any(outcomes[outcome] for outcome in _TESTED):
        what = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
        return [f"no turn was tested ({what or ended or 'none was selected'})"]
    run = [result for result in results if result.outcome != "skipped"]
    errors = outcomes["error"]
    if not any(result.tested for result in run):
        found.append("no valid variant was made of any turn, so nothing was tested")
    if errors > MOST_ERRORS * len(run):
        found.append(
            f"the tracker failed on {errors} of {len(run)} turns, more than {MOST_ERRORS:.0%}"
        )
    limit = settings.max_failure_rate
    if limit is not None and failure_rate is not None and failure_rate > limit:
        found.append(
            f"the failure rate {failure_rate:.2%}{_interval(interval)} is over the limit "
            f"of {limit:.2%}"
        )
    return found


def _interval(interval: Sequence[float] | None) -> str:
    if interval is None:
        return ""
    return f" (95 % interval {interval[0]:.2%} to {interval[1]:.2%})"
