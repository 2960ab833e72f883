"""What the trackers of a session cost and whether they agree with themselves, in all processes."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pytest_dstfuzz.campaign.budget import Budget
from pytest_dstfuzz.campaign.deciding import SequentialTest, decider_of, idle_test
from pytest_dstfuzz.campaign.events import Listener
from pytest_dstfuzz.campaign.predictor import Predictor
from pytest_dstfuzz.comparisons.judge import JudgeFacts
from pytest_dstfuzz.config import STATE, BudgetSettings
from pytest_dstfuzz.dialogue.outcome import OutcomeKind
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.json_data import from_json, to_json
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.plugin.caching import Caches
from pytest_dstfuzz.plugin.context import RunContext
from pytest_dstfuzz.report.redact import KEPT_BACK
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.adapting import bounded_to
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


@dataclass(frozen=True, kw_only=True)
class TrackerFacts:
    """What a process found out about its trackers; those of several are added up."""

    usage: Usage | None = None
    disagreement: Disagreement | None = None
    #: Why a tracker was not asked any more although there was budget left, or ``""``.
    gone: str = ""
    #: What the trackers have to say.
    notes: tuple[str, ...] = ()
    #: How many contexts trackers were asked for, those of checks before a run and of batches that
    #: were asked for again in ``others``, and how many answers were recalled.
    asked: int = 0
    others: int = 0
    recalled: int = 0
    #: What went wrong with caches, and the folders to remove after the run.
    problems: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    #: What judged replies, where a language model did.
    judge: JudgeFacts | None = None

    def __add__(self, other: TrackerFacts) -> TrackerFacts:
        return TrackerFacts(
            usage=_sum((self.usage, other.usage)),
            disagreement=_sum((self.disagreement, other.disagreement)),
            gone=self.gone or other.gone,
            notes=_each_once(self.notes + other.notes),
            asked=self.asked + other.asked,
            others=self.others + other.others,
            recalled=self.recalled + other.recalled,
            problems=_each_once(self.problems + other.problems),
            folders=_each_once(self.folders + other.folders),
            judge=_sum((self.judge, other.judge)),
        )


def _sum(parts: Iterable[Any]) -> Any:
    """Add up what is known; ``None`` where nothing is."""
    known = [part for part in parts if part is not None]
    return sum(known[1:], known[0]) if known else None


def _each_once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


class TrackerPool:
    """Makes and tests the trackers of this process, and keeps their budget."""

    def __init__(self, context: RunContext, listener: Listener) -> None:
        self._context = context
        self._settings = settings = context.settings
        self._listener = listener
        self._given: Mapping[str, Any] = context.worker.get(_KEY, {})
        self._caches = Caches(context.config, settings)
        self._measured: dict[int, tuple[Tracker, Disagreement | None]] = {}
        #: By ``id()`` of a tracker and by what is tested of its answers.
        self._predictors: dict[tuple[int, OutcomeKind], tuple[object, Predictor]] = {}
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
            deadline = self.budget.deadline
            with bounded(deadline, self._settings.budget.preflight_seconds):
                self._tracker = tracker_for(
                    self._settings, context.data, context.search_path, deadline, later=True
                )
        return self._tracker

    def test_named(self) -> None:
        """Refuse the tracker that the settings name, where its results would mean nothing."""
        self._test(self.tracker, self._settings.reply.outcome, named=True, origin="")
        self._tracker_tested = True

    def predictor(self, model: object, origin: str = "", outcome: OutcomeKind = STATE) -> Predictor:
        """Return the way to ask a tracker, which is tested before."""
        known = self._predictors.get((id(model), outcome))
        if known is None:
            data, named = self._context.data, model is self._tracker
            tracker = as_tracker(
                model,
                normalisation=data.normalisation,
                outcome=outcome,
                history=self._settings.reply.history,
            )
            bounded_to(tracker, self._settings.tracker.concurrency)
            if not (self._tracker_tested and named):
                self._test(tracker, outcome, named=named, origin=origin)
            self.budget.watch(tracker)
            repeatable = is_repeatable(tracker, self._settings.tracker.repeatable, outcome)
            predictor = Predictor(
                tracker,
                self._settings.tracker.batch_size,
                ontology=data.ontology,
                normalisation=data.normalisation,
                budget=self.budget,
                listener=self._listener,
                decider=decider_of(self._settings.tracker, repeatable=repeatable),
                repeats=repeatable,
                cache=self._caches.of(tracker, data, named=named, origin=origin),
                outcome=outcome,
                retries=self._settings.tracker.retries,
            )
            # The model is kept with it: a new one could be given the same id otherwise.
            known = self._predictors[id(model), outcome] = (model, predictor)
        return known[1]

    def _test(self, tracker: Tracker, outcome: OutcomeKind, *, named: bool, origin: str) -> None:
        """Ask a tracker for the first contexts, unless it is known what it says to them."""
        contexts, data = self.budget.checks(self._context.first_contexts()), self._context.data
        cache = self._caches.of(tracker, data, named=named, origin=origin)
        # Not from the cache: the mode of a network may have changed since the last run.
        refuse_training_mode(tracker)
        varies = not is_repeatable(tracker, self._settings.tracker.repeatable, outcome)
        measure = partial(
            preflight,
            tracker,
            contexts,
            ontology=data.ontology,
            deadline=self.budget.deadline,
            repeatable=not varies,
            outcome=outcome,
            spend=self.budget.spend_besides,
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
            raise type(error)(
                f"{KINDS[outcome].words.who} cannot be tested; why is {KEPT_BACK}"
            ) from None
        self._measured[id(tracker)] = tracker, measured
        self.budget.watch(tracker)

    def facts(self) -> TrackerFacts:
        """Return what this process found out."""
        return TrackerFacts(
            usage=self.budget.usage,
            disagreement=_sum(measured for _, measured in self._measured.values()),
            gone=self.budget.stopped,
            notes=_each_once(self._notes()),
            asked=self.budget.calls,
            others=self.budget.others,
            recalled=sum(predictor.recalled for _, predictor in self._predictors.values()),
            problems=_each_once(self._caches.problems),
            folders=self._caches.shared_folders,
            judge=self._context.judges.facts,
        )

    def _notes(self) -> list[str]:
        """Return what the trackers have to say, and what cannot be kept here."""
        found = [note for one, _ in self._measured.values() for note in notes_of(one)]
        if math.isfinite(self.budget.deadline.left) and not can_end_calls():
            found.append(_BETWEEN_BATCHES)
        if isinstance(decider_of(self._settings.tracker), SequentialTest):
            asked = self._predictors.items()
            found += [
                idle_test(self._settings.tracker, KINDS[outcome].words.who)
                for (_, outcome), (_, predictor) in asked
                if not predictor.decider.again
            ]
        return found

    def tell(self, workerinput: dict[str, Any]) -> None:
        """Tell a worker of xdist, which does not test again the tracker that was tested here."""
        # Its clock need not be this one, but for the time of day.
        ends = time.time() + self.budget.deadline.left
        told = {"facts": to_json(self.facts()), "ends": ends if math.isfinite(ends) else None}
        workerinput[_KEY] = told


def _budget(settings: BudgetSettings, given: Mapping[str, Any], workers: int) -> Budget:
    """Return what all trackers of this process may cost together."""
    seconds, ends = 0.0, given.get("ends")
    if settings.max_seconds is not None and ends is not None:
        seconds = settings.max_seconds - (ends - time.time())
    if workers:
        calls, tokens, cost = settings.max_calls, settings.max_tokens, settings.max_cost
        facts = from_json(TrackerFacts, given.get("facts", {}))
        before = facts.usage or Usage()
        settings = replace(
            settings,
            max_calls=calls and max(1, (calls - facts.others) // workers),
            max_tokens=tokens and max(1, (tokens - before.tokens) // workers),
            max_cost=cost and max(0.0, (cost - (before.cost or 0.0)) / workers),
        )
    return Budget(settings, spent_seconds=seconds)
