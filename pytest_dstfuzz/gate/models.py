"""Several trackers in one session: the baseline of each, and one exit status for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pytest_dstfuzz.gate.baseline import Baseline, Session, named_groups
from pytest_dstfuzz.gate.verdict import STATUSES


def worst_status(*statuses: int) -> int:
    """Return the exit status of a session from those that the verdicts on its trackers ask for."""
    return max(statuses, key=list(STATUSES.values()).index)


def baseline_of(model: str, session: Session, baselines: Mapping[str, Baseline]) -> Baseline:
    """Return the baseline of a tracker.

    One that the file does not name is known by the names of its tests. It has none where they are
    others, and nothing is compared then.

    Args:
        model: its name; ``""`` where the session tests one.
        session: its results.
        baselines: by the names of their trackers; ``""`` where the file is of one.
    """
    if model in baselines:
        return baselines[model]
    own = named_groups(session.groups)
    for one in baselines.values():
        if groups := {name: turns for name, turns in one.groups.items() if name in own}:
            if len(groups) == len(one.groups):
                return one
            # Weaknesses of several trackers together do not tell which were of this one.
            return replace(one, groups=groups, weaknesses=None)
    other = next(iter(baselines.values()))
    return replace(other, groups={}, weaknesses=None)
