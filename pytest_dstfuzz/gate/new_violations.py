"""Variants that held in the baseline and break now, although the clean answer is the same.

A bot that repeats itself answers one question in one way. If a variant is the same in both builds
and its clean answer is too, then no chance is in its outcome: each one that held and breaks now is
a fault that the build brings, however few they are. If a bot does not repeat itself, some variants
break by chance, so the paired test of failure rates decides unless a limit is given.
"""

from __future__ import annotations

from typing import Any, Final

from pytest_dstfuzz.gate.baseline import Baseline, Session, other_estimates
from pytest_dstfuzz.gate.pairing import Pairing
from pytest_dstfuzz.gate.verdict import LimitFinding, Verdict
from pytest_dstfuzz.printable import counted, listed

#: New violations of a bot that repeats itself, where nobody says.
DEFAULT_MAX_NEW: Final = 0
#: Names that a sentence has.
_MOST_NAMES: Final = 5


def compare_violations(baseline: Baseline, session: Session, pairing: Pairing) -> dict[str, Any]:
    """Return ``violations`` of a report's comparison.

    A relation counts if the same answers would be violations in both builds; how variants were
    drawn may differ, as only identical ones are compared.
    """
    unlike: dict[str, list[str]] = {
        name: other_estimates(
            baseline.campaign, session.campaign, own_edits=name in session.own_edits
        )
        for name in pairing.asked
    }
    alike = [asked for name, asked in pairing.asked.items() if not unlike[name]]
    why = dict.fromkeys(text for texts in unlike.values() for text in texts)
    return {
        "new": [name for asked in alike for name in asked.broke],
        "known": [name for asked in alike for name in asked.known],
        "repeats": baseline.repeats is not False and pairing.repeats and not session.varies,
        "reason": "" if alike else "; ".join(why) or "the builds have no relation in common",
    }


def judge_new_violations(given: float | None, found: dict[str, Any]) -> tuple[LimitFinding, ...]:
    """Judge what `compare_violations` returned.

    Args:
        given: the limit of the options; without one the default holds for bots that repeat
            themselves.
        found: the figures.

    Returns:
        Nothing if no limit was given and nothing is over the default.
    """
    default = given is None
    if default and (found["reason"] or not found["repeats"] or not found["new"]):
        return ()
    limit = DEFAULT_MAX_NEW if given is None else given
    if found["reason"]:
        reason = f"new violations were not looked for: {found['reason']}"
        return (LimitFinding(None, "max-new-violations", limit, "inconclusive", reason),)
    new = found["new"]
    names = f" ({listed(new, _MOST_NAMES)})" if new else ""
    subject = f"{counted(len(new), 'variant')} that held in the baseline"
    verb = "breaks" if len(new) == 1 else "break"
    reason = f"{subject} {verb} now{names}"
    if new:
        reason += ", and the clean answers to the same turns did not change"
    verdict: Verdict = "regression" if len(new) > limit else "pass"
    reason = f"{reason}; {limit:g} may"
    return (LimitFinding(None, "max-new-violations", limit, verdict, reason, len(new)),)
