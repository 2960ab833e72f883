"""What the trackers of a session cost and whether they agree with themselves, in all processes."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pytest_dstfuzz.campaign.budget import Budget
from pytest_dstfuzz.campaign.events import Listener
from pytest_dstfuzz.campaign.predictor import Predictor
from pytest_dstfuzz.config import BudgetSettings
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.json_data import to_json
from pytest_dstfuzz.plugin.caching import Caches
from pytest_dstfuzz.plugin.context import RunContext
from pytest_dstfuzz.report.redact import KEPT_BACK
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.deadline import can_end_calls
from pytest_dstfuzz.trackers.preflight import bounded, preflight, refuse_training_mode
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import (
    Disagreement,
    Tracker,
    Usage,
    is_repeatable,
    notes_of,
)

_NO_TRACKER = (
    "no tracker to test: name one with --dst-model (a registered name such as 'trade', or "
    "package.module:attribute), or override the fixture dst_model"
)
#: What a worker of xdist is told goes under this name of its input.
_KEY = "dstfuzz"
_BETWEEN_BATCHES = (
    "--dst-max-seconds ends this run between two batches alone: a call of a tracker that does not "
    "come back can be ended in the main thread of POSIX systems"
)


class TrackerPool:
    """Makes and tests the trackers of this process, and keeps their budget."""

    def __init__(self, context: RunContext, listener: Listener) -> None:
        self._context = context
        self._settings = settings = context.settings
        self._listener = listener
        self._given: Mapping[str, Any] = context.worker.get(_KEY, {})
        self._caches = Caches(context.config, settings)
        self._measured: dict[int, tuple[Tracker, Disagreement | None]] = {}
        self._predictors: dict[int, tuple[object, Predictor]] = {}
        self._tracker: Tracker | None = None
        #: Whether that one passed the preflight, here or in the controller.
        self._tracker_tested = context.workers > 0 and context.model_on_command_line
        self.budget = _budget(settings.budget, self._given, context.workers)
        # A run has so many seconds as a whole, whatever it spends them on.
        self.budget.deadline.start()

    @property
    def tracker(self) -> Tracker:
        """The tracker that the settings name."""
        context = self._context
        if self._settings.tracker.model is None:
            raise UserError(_NO_TRACKER)
        if self._tracker is None:
            folders = (context.config.invocation_params.dir, context.config.rootpath)
            search_path = tuple(dict.fromkeys(map(str, folders)))
            deadline = self.budget.deadline
            with bounded(deadline, self._settings.budget.preflight_seconds):
                self._tracker = tracker_for(self._settings, context.data, search_path, deadline)
        return self._tracker

    def test_named(self) -> None:
        """Refuse the tracker that the settings name, where its results would mean nothing."""
        self._test(self.tracker, named=True, origin="")
        self._tracker_tested = True

    def predictor(self, model: object, origin: str = "") -> Predictor:
        """Return the way to ask a tracker, which is tested before."""
        known = self._predictors.get(id(model))
        if known is None:
            data, named = self._context.data, model is self._tracker
            tracker = as_tracker(model, normalisation=data.normalisation)
            if not (self._tracker_tested and named):
                self._test(tracker, named=named, origin=origin)
            self.budget.watch(tracker)
            repeatable = is_repeatable(tracker, self._settings.tracker.repeatable)
            predictor = Predictor(
                tracker,
                self._settings.tracker.batch_size,
                ontology=data.ontology,
                normalisation=data.normalisation,
                budget=self.budget,
                listener=self._listener,
                votes=1 if repeatable else self._settings.tracker.votes,
                repeats=repeatable,
                cache=self._caches.of(tracker, data, named=named, origin=origin),
            )
            # The model is kept with it: a new one could be given the same id otherwise.
            known = self._predictors[id(model)] = (model, predictor)
        return known[1]

    def _test(self, tracker: Tracker, *, named: bool, origin: str) -> None:
        """Ask a tracker for the first contexts, unless it is known what it says to them."""
        contexts, data = self._context.first_contexts(), self._context.data
        cache = self._caches.of(tracker, data, named=named, origin=origin)
        # Not from the cache: the mode of a network may have changed since the last run.
        refuse_training_mode(tracker)
        varies = not is_repeatable(tracker, self._settings.tracker.repeatable)
        measure = partial(
            preflight,
            tracker,
            contexts,
            ontology=data.ontology,
            deadline=self.budget.deadline,
            repeatable=not varies,
        )
        try:
            with bounded(self.budget.deadline, self._settings.budget.preflight_seconds):
                if cache is None:
                    measured = measure()
                else:
                    measured = cache.preflight(contexts, measure, varies=varies)
        except UserError as error:
            if not self._settings.output.redact:
                raise
            # It may repeat what was said.
            raise type(error)(f"the tracker cannot be tested; why is {KEPT_BACK}") from None
        self._measured[id(tracker)] = tracker, measured
        self.budget.watch(tracker)

    def facts(self) -> dict[str, Any]:
        """Return what this process found out, as values that can be sent to another one."""
        usage, measured = self.budget.usage, [one for _, one in self._measured.values() if one]
        return {
            "usage": to_json(usage),
            "disagreement": to_json(sum(measured[1:], measured[0])) if measured else None,
            "gone": self.budget.stopped,
            "notes": self._notes(),
            "asked": self.budget.calls,
            "recalled": sum(predictor.recalled for _, predictor in self._predictors.values()),
            "cache": self._caches.facts(),
        }

    def _notes(self) -> list[str]:
        """Return what the trackers have to say, and what cannot be kept here."""
        found = [note for one, _ in self._measured.values() for note in notes_of(one)]
        if math.isfinite(self.budget.deadline.left) and not can_end_calls():
            found.append(_BETWEEN_BATCHES)
        return found

    def tell(self, workerinput: dict[str, Any]) -> None:
        """Tell a worker of xdist, which does not test again the tracker that was tested here."""
        # Its clock need not be this one, but for the time of day.
        ends = time.time() + self.budget.deadline.left
        workerinput[_KEY] = {**self.facts(), "ends": ends if math.isfinite(ends) else None}


def total(processes: Iterable[Mapping[str, Any]]) -> tuple[Usage | None, Disagreement | None]:
    """Add up the facts of several processes."""
    facts = list(processes)
    used = [Usage(**found) for one in facts if (found := one.get("usage"))]
    measured = [Disagreement(**found) for one in facts if (found := one.get("disagreement"))]
    return (
        sum(used[1:], used[0]) if used else None,
        sum(measured[1:], measured[0]) if measured else None,
    )


def notes(processes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what the trackers of several processes have to say, each sentence once."""
    return list(dict.fromkeys(note for one in processes for note in one.get("notes", ())))


def contexts(processes: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
    """Return how many contexts trackers were asked for, and how many answers were recalled."""
    facts = list(processes)
    return sum(one["asked"] for one in facts), sum(one["recalled"] for one in facts)


def gone(processes: Iterable[Mapping[str, Any]]) -> str:
    """Return why a tracker was not asked any more although there was budget left, or ``""``."""
    return next((one["gone"] for one in processes if one.get("gone")), "")


def _budget(settings: BudgetSettings, given: Mapping[str, Any], workers: int) -> Budget:
    """Return what all trackers of this process may cost together."""
    seconds, ends = 0.0, given.get("ends")
    if settings.max_seconds is not None and ends is not None:
        seconds = settings.max_seconds - (ends - time.time())
    if workers:
        calls, tokens, cost = settings.max_calls, settings.max_tokens, settings.max_cost
        before = Usage(**(given.get("usage") or {}))
        settings = replace(
            settings,
            max_calls=calls and max(1, calls // workers),
            max_tokens=tokens and max(1, (tokens - before.tokens) // workers),
            max_cost=cost and max(0.0, (cost - (before.cost or 0.0)) / workers),
        )
    return Budget(settings, spent_seconds=seconds)
