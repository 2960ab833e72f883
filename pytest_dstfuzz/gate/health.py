"""Whether a session tested enough, and whether its tracker answered often enough, to be judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from pytest_dstfuzz.campaign.results import TurnOutcome, TurnResult

#: Above this share of turns at which the tracker failed, the other figures mean little.
MOST_ERRORS: Final = 0.05
#: A run that ended early is judged when it has results for this share of the selected turns.
LEAST_TESTED: Final = 0.5
#: Outcomes of turns at which the tracker was really put to the test.
_TESTED: tuple[TurnOutcome, ...] = ("held", "violation", "error")


def troubles(results: Sequence[TurnResult], ended: str = "") -> list[str]:
    """Return why the figures of a session mean nothing, one sentence each.

    Args:
        results: all turns of the session.
        ended: why the session ended early, if it did.
    """
    outcomes = Counter(result.outcome for result in results)
    if not any(outcomes[outcome] for outcome in _TESTED):
        what = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
        return [f"no turn was tested ({what or ended or 'none was selected'})"]
    found: list[str] = []
    run = [result for result in results if result.outcome != "skipped"]
    errors = outcomes["error"]
    if not any(result.tested for result in run):
        found.append("no valid variant was made of any turn, so nothing was tested")
    if errors > MOST_ERRORS * len(run):
        found.append(
            f"the tracker failed on {errors} of {len(run)} turns, more than {MOST_ERRORS:.0%}"
        )
    return found


def cut_short(results: Sequence[TurnResult], missing: int, ended: str) -> str:
    """Say that a session ended before enough was tested, or return ``""``.

    Args:
        results: all turns of the session.
        missing: selected turns that have no result at all.
        ended: why the session ended early, if it did.
    """
    done = sum(result.outcome != "skipped" for result in results)
    selected = len(results) + missing
    if not ended or done >= LEAST_TESTED * selected:
        return ""
    return f"only {done} of {selected} turns were run, fewer than {LEAST_TESTED:.0%} ({ended})"
