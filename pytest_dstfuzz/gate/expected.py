"""The expected failures of two builds, compared on the turns that both have.

Each build has an estimate of its own of how likely a turn fails, from whatever variants it drew; so
neither the seed nor the variants need be the same, but all that says which failures are meant.
"""

from __future__ import annotations

import math
from typing import Any

from pytest_dstfuzz.campaign.expected import TURNS
from pytest_dstfuzz.gate.baseline import Baseline, Session, other_estimates
from pytest_dstfuzz.gate.pairing import Pairing
from pytest_dstfuzz.gate.statistics import Paired, dialogues_needed, fewest_dialogues, interval
from pytest_dstfuzz.gate.verdict import LimitFinding, judge_rise
from pytest_dstfuzz.seeding import stream


def judge_expected_rise(
    limit: float, figures: dict[str, Any] | None, pairing: Pairing
) -> LimitFinding:
    """Judge what `compare_expected` returned by the limit of a rise."""
    needed = None
    if figures is not None and not figures["reason"]:
        paired = _paired(pairing)
        several = len(pairing.failing) > 1
        needed = dialogues_needed(paired, limit / TURNS) if several else fewest_dialogues()
    return judge_rise(limit, figures, needed)


def compare_expected(
    baseline: Baseline, session: Session, pairing: Pairing
) -> dict[str, Any] | None:
    """Return ``expected_failures`` of a report's comparison; ``None`` where the run has none."""
    now = session.summary.expected_failures
    if now is None:
        return None
    figures: dict[str, Any] = {
        "before": None,
        "after": None,
        "difference": None,
        "interval": None,
        "turns": sum(each.turns for each in pairing.failing.values()),
        "dialogues": len(pairing.failing),
        "reason": _not_comparable(baseline, session, pairing) or now.reason,
    }
    if figures["reason"]:
        return figures
    paired, turns = _paired(pairing), figures["turns"]
    before, after = (math.fsum(column) / turns for column in (paired.before, paired.after))
    bounds = interval(paired, stream(session.seed, "gate", "expected failures"))
    return figures | {
        "before": TURNS * before,
        "after": TURNS * after,
        "difference": TURNS * (after - before),
        "interval": None if bounds is None else [TURNS * bound for bound in bounds],
    }


def _paired(pairing: Pairing) -> Paired:
    return Paired.of_rows(
        (each.before, each.after, each.turns) for each in pairing.failing.values()
    )


def _not_comparable(baseline: Baseline, session: Session, pairing: Pairing) -> str:
    """Say why two builds have no estimates of the same failures, or return ``""``."""
    if all(turn.failures is None for turns in baseline.groups.values() for turn in turns):
        return (
            "the baseline is not of a search that estimates them, such as noise, or of an earlier "
            "pytest-dstfuzz"
        )
    if others := other_estimates(baseline.campaign, session.campaign):
        return "; ".join(others)
    return "" if pairing.failing else "there is no turn of which both builds have an estimate"
