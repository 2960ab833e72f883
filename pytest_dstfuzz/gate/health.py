"""Whether a session tested enough, and whether its tracker answered often enough, to be judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from pytest_dstfuzz.campaign.results import TurnOutcome, TurnResult
from pytest_dstfuzz.config.rates import percent

#: Above this share of turns at which the tracker failed, the other figures mean little.
MOST_ERRORS: Final = 0.05
#: A run that ended early is judged when it has results for this share of the selected turns.
LEAST_TESTED: Final = 0.5
#: So many turns at which a tracker gives one and the same answer are no accident.
LEAST_TELLING: Final = 20
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
    """Say that a session ended before all was tested, or return ``""``.

    Args:
        results: all turns of the session.
        missing: selected turns that have no result at all.
        ended: why the session ended early, if it did.
    """
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
    `LEAST_TELLING` may well have one answer.

    Args:
        results: turns that one tracker was asked about; those that several tests share count once.
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
