"""The campaigns of a sweep, one after the other, each into a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz import Campaign
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.errors import DstFuzzError
from pytest_dstfuzz.scale.results.folder import ResultFolder
from pytest_dstfuzz.scale.results.running import run_into
from pytest_dstfuzz.scale.results.sweep_file import SweepCell, SweepPlan
from pytest_dstfuzz.trackers.tracker import Tracker

CELLS: Final = "cells"

#: Told the cell that runs, its number from 1, and how many of its results there are.
SweepProgress = Callable[[SweepCell, int, int, int], None]


@dataclass(frozen=True)
class SweptCell:
    """A cell and what came of it."""

    cell: SweepCell
    path: Path
    #: Why it could not be run, or not to its end; ``""`` = it was.
    problem: str = ""

    @property
    def folder(self) -> ResultFolder | None:
        """Its results, also those of one that was not run to its end; ``None`` without any."""
        return ResultFolder.open(self.path) if ResultFolder.is_one(self.path) else None


def run_sweep(plan: SweepPlan, output: Path, progress: SweepProgress) -> Iterator[SweptCell]:
    """Run what is missing of each cell, in their order, and yield what came of it.

    A cell that cannot be run is told of, and the others go on. Whatever ends a sweep, the same
    call goes on with it; cells that a changed file still has are not run again.
    """
    known = _LastTracker()
    for number, cell in enumerate(plan.cells, start=1):
        path = output / CELLS / cell.name
        yield SweptCell(cell, path, _problem_of(cell, path, known, number, progress))


def _problem_of(
    cell: SweepCell, path: Path, known: _LastTracker, number: int, progress: SweepProgress
) -> str:
    """Run a cell, and return why that went wrong, if it did."""
    try:
        campaign = known.campaign(cell.settings)
        folder = run_into(campaign, path, lambda done, total: progress(cell, number, done, total))
    except DstFuzzError as error:
        return str(error)
    return "" if folder.complete else folder.manifest.ended or "not run to its end"


class _LastTracker:
    """The tracker of the last cell, for the next where that asks the same one."""

    def __init__(self) -> None:
        self._key: Any = None
        self._tracker: Tracker | None = None

    def campaign(self, settings: Settings) -> Campaign:
        """Return the campaign of a cell."""
        # What reads the data and how answers are asked for may be part of a tracker.
        key = settings.tracker, settings.data, settings.reply
        timed = settings.budget.max_seconds is not None
        if self._tracker is not None and key == self._key and not timed:
            return Campaign(self._tracker, settings=settings)
        campaign = Campaign(settings.tracker.model, settings=settings)
        self._key, self._tracker = (None, None) if timed else (key, campaign.tracker)
        return campaign
