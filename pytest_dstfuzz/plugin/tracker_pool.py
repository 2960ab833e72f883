"""What the trackers of a session cost and whether they agree with themselves, in all processes."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from pytest_dstfuzz.campaign.budget import Budget
from pytest_dstfuzz.campaign.events import Listener
from pytest_dstfuzz.campaign.predictor import Predictor
from pytest_dstfuzz.config import BudgetSettings, Settings
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.plugin.caching import Caches
from pytest_dstfuzz.report.redact import KEPT_BACK
from pytest_dstfuzz.trackers.deadline import can_end_calls
from pytest_dstfuzz.trackers.preflight import bounded, preflight, refuse_training_mode
from pytest_dstfuzz.trackers.tracker import (
    Disagreement,
    Tracker,
    Usage,
    is_repeatable,
    notes_of,
)

#: What a worker of xdist is told goes under this name of its input.
_KEY = "dstfuzz"
_BETWEEN_BATCHES = (
    "--dst-max-seconds ends this run between two batches alone: a call of a tracker that does not "
    "come back can be ended in the main thread of POSIX systems"
)


class TrackerPool:
    """Tests the trackers of this process before they are asked, and keeps their budget.

    Args:
        config: pytest's.
        settings: those of the session.
        workers: how many of xdist's workers share the budget; 0 = this is none of them.
    """

    def __init__(self, config: pytest.Config, settings: Settings, workers: int) -> None:
        self._given: Mapping[str, Any] = getattr(config, "workerinput", {}).get(_KEY, {})
        self._measured: dict[int, tuple[Tracker, Disagreement | None]] = {}
        self._batch_size = settings.tracker.batch_size
        self._repeatable = settings.tracker.repeatable
        self._votes = settings.tracker.votes
        self._redact = settings.output.redact
        self._caches = Caches(config, settings)
        self._predictors: list[Predictor] = []
        self._preflight_seconds = settings.budget.preflight_seconds
        self.budget = _budget(settings.budget, self._given, workers)
        # A run has so many seconds as a whole, whatever it spends them on.
        self.budget.deadline.start()

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """Let making and testing a tracker end in time.

        Raises:
            OutOfReachError: it did not come back.
        """
        with bounded(self.budget.deadline, self._preflight_seconds):
            yield

    def test(
        self,
        tracker: Tracker,
        contexts: Sequence[Context],
        data: DialogueSet,
        *,
        named: bool = True,
        origin: str = "",
    ) -> None:
        """Refuse a tracker whose results would mean nothing, or that no budget can be kept of.

        What is known of the same tracker and contexts from an earlier run need not be asked.

        Args:
            tracker: to be tested.
            contexts: that it is asked for.
            data: the dialogues of the run.
            named: see `Caches.of`.
            origin: see `Caches.of`.

        Raises:
            UserError: see `preflight` and `Budget.watch`.
        """
        cache = self._caches.of(tracker, data, named=named, origin=origin)
        # Not from the cache: the mode of a network may have changed since the last run.
        refuse_training_mode(tracker)
        varies = not is_repeatable(tracker, self._repeatable)
        measure = partial(
            preflight,
            tracker,
            contexts,
            ontology=data.ontology,
            deadline=self.budget.deadline,
            repeatable=not varies,
        )
        try:
            with self.bounded():
                if cache is None:
                    measured = measure()
                else:
                    measured = cache.preflight(contexts, measure, varies=varies)
        except UserError as error:
            if not self._redact:
                raise
            # It may repeat what was said.
            raise type(error)(f"the tracker cannot be tested; why is {KEPT_BACK}") from None
        self._measured[id(tracker)] = tracker, measured
        self.budget.watch(tracker)

    def predictor(
        self,
        tracker: Tracker,
        data: DialogueSet,
        listener: Listener,
        *,
        named: bool = True,
        origin: str = "",
    ) -> Predictor:
        """Return the door to a tracker that was tested, here or in the controller.

        Args:
            tracker: to be asked.
            data: the dialogues of the run.
            listener: see `Predictor`.
            named: see `Caches.of`.
            origin: see `Caches.of`.
        """
        self.budget.watch(tracker)
        repeatable = is_repeatable(tracker, self._repeatable)
        predictor = Predictor(
            tracker,
            self._batch_size,
            ontology=data.ontology,
            normalisation=data.normalisation,
            budget=self.budget,
            listener=listener,
            votes=1 if repeatable else self._votes,
            repeats=repeatable,
            cache=self._caches.of(tracker, data, named=named, origin=origin),
        )
        self._predictors.append(predictor)
        return predictor

    def facts(self) -> dict[str, Any]:
        """Return what this process found out, as values that can be sent to another one."""
        usage, measured = self.budget.usage, [one for _, one in self._measured.values() if one]
        return {
            "usage": None if usage is None else usage.to_json(),
            "disagreement": sum(measured[1:], measured[0]).to_json() if measured else None,
            "gone": self.budget.stopped,
            "notes": [
                *self._notes(),
                *(n for one, _ in self._measured.values() for n in notes_of(one)),
            ],
            "asked": self.budget.calls,
            "recalled": sum(predictor.recalled for predictor in self._predictors),
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
    used = [usage for one in facts if (usage := _usage(one)) is not None]
    measured = [found for one in facts if (found := _disagreement(one)) is not None]
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
    calls, tokens, cost = settings.max_calls, settings.max_tokens, settings.max_cost
    if workers:
        before = _usage(given) or Usage()
        calls = calls and max(1, calls // workers)
        tokens = tokens and max(1, (tokens - before.tokens) // workers)
        cost = cost and max(0.0, (cost - (before.cost or 0.0)) / workers)
    return Budget(settings.max_seconds, calls, tokens, cost, spent_seconds=seconds)


def _usage(facts: Mapping[str, Any]) -> Usage | None:
    found = facts.get("usage")
    return None if found is None else Usage(**found)


def _disagreement(facts: Mapping[str, Any]) -> Disagreement | None:
    found = facts.get("disagreement")
    return None if found is None else Disagreement(**found)
