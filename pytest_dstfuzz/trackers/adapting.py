"""What all adapters of systems in this process share."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Any, Final, cast

from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.errors import MalformedAnswerError, TrackerError
from pytest_dstfuzz.trackers.arriving import Take, taker_of
from pytest_dstfuzz.trackers.awaiting import EventLoop, event_loop
from pytest_dstfuzz.trackers.deadline import Overrun
from pytest_dstfuzz.trackers.tracker import (
    Interrupted,
    Prediction,
    Tracker,
    Usage,
    notes_of,
    usage_of,
)
from pytest_dstfuzz.trackers.validation import as_user_error, describe_error, raised_in

#: Calls of an async function at once: as many as requests of a service.
CONCURRENCY: Final = 16


class Adapter(ABC):
    """Asks what it adapts for one context after the other, and waits for what is ``async``."""

    def __init__(self, wrapped: object) -> None:
        self.wrapped: Any = wrapped
        self._loop: EventLoop | None = None

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        """Return the answer to each context; what ends a run loses none that is there."""
        answers: dict[int, Prediction] = {}
        try:
            self._answer(contexts, answers, taker_of(self))
        except Overrun as overrun:
            overrun.answers = answers
            raise
        except KeyboardInterrupt:
            raise Interrupted(answers) from None
        return [answers[place] for place in range(len(contexts))]

    def _answer(
        self, contexts: Sequence[Context], answers: dict[int, Prediction], take: Take
    ) -> None:
        for place, context in enumerate(contexts):
            answers[place] = self._ask_or_malformed(context)
            take(place, answers[place])

    def _ask_or_malformed(self, context: Context) -> Prediction:
        try:
            return self._ask(context)
        except MalformedAnswerError as error:
            # An error may stand in the place of an answer, as `Tracker` says.
            return cast("Prediction", error.with_traceback(None))

    @abstractmethod
    def _ask(self, context: Context) -> Prediction: ...

    def _waited(self, result: object) -> object:
        """Return what a call returned, once it is there."""
        return self._event_loop.result(result) if isinstance(result, Awaitable) else result

    @property
    def _event_loop(self) -> EventLoop:
        if self._loop is None:
            self._loop = event_loop()
        return self._loop


class FunctionAdapter(Adapter):
    """Asks a function that keeps nothing from call to call.

    Of one that is ``async`` several calls run at once, ``concurrency`` of them at most.
    """

    def __init__(self, wrapped: object) -> None:
        super().__init__(wrapped)
        self.concurrency = CONCURRENCY
        #: Whether it has answered, and what it returned had to be waited for.
        self._is_async = False

    @abstractmethod
    def _call(self, context: Context) -> object:
        """Return what the function returns, which may have to be waited for."""

    @abstractmethod
    def _read(self, answer: object) -> Prediction:
        """Return the answer of the function as a prediction."""

    def _ask(self, context: Context) -> Prediction:
        result = self._call(context)
        found = self._read(self._waited(result))
        self._is_async = self._is_async or isinstance(result, Awaitable)
        return found

    def _answer(
        self, contexts: Sequence[Context], answers: dict[int, Prediction], take: Take
    ) -> None:
        # One that never answered is asked alone, so that what it raises ends the batch.
        while not self._is_async and len(answers) < len(contexts):
            place = len(answers)
            answers[place] = self._ask_or_malformed(contexts[place])
            take(place, answers[place])
        first = len(answers)

        def arrived(number: int, result: object) -> None:
            # An error may stand in the place of an answer, as `Tracker` says.
            answers[first + number] = cast("Prediction", self._read_or_failure(result))
            take(first + number, answers[first + number])

        jobs = [partial(self._call, context) for context in contexts[first:]]
        if jobs:
            self._event_loop.results(jobs, self.concurrency, arrived)

    def _read_or_failure(self, result: object) -> Prediction | TrackerError:
        if isinstance(result, BaseException):
            return _failure_of(result)
        try:
            return self._read(result)
        except Exception as error:  # noqa: BLE001 - the object may be one of a user's classes
            return _failure_of(error)


def _failure_of(error: BaseException) -> TrackerError:
    """Return what stands in the place of an answer."""
    if isinstance(error, TrackerError):
        return error.with_traceback(None)
    return TrackerError(describe_error(error) + raised_in(error))


class AsyncTracker(Adapter):
    """A tracker whose ``predict`` is ``async``."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the tracker has to say to the user."""
        return notes_of(self.wrapped)

    @property
    def usage(self) -> Usage | None:
        """What its answers took, if it counts that."""
        return usage_of(self.wrapped)

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        """Return what the tracker returns, not checked yet."""
        return cast("list[Prediction]", self._waited(self.wrapped.predict(contexts)))

    def _ask(self, context: Context) -> Prediction:
        return self.predict([context])[0]


def as_it_is(candidate: object) -> Tracker:
    """Return what has ``predict``; one that is ``async`` is waited for."""
    if inspect.iscoroutinefunction(getattr(candidate, "predict", None)):
        return AsyncTracker(candidate)
    return cast("Tracker", candidate)


def bounded_to(tracker: Tracker, concurrency: int) -> Tracker:
    """Return a tracker of which so many calls run at once, if it is an async function."""
    # An attribute of a user's object may run code of theirs, so it is not looked for there.
    adapter = tracker.wrapped if isinstance(tracker, Adapter) else None
    for one in (tracker, adapter):
        if isinstance(one, FunctionAdapter):
            one.concurrency = concurrency
    return tracker


def made(candidate: object) -> object:
    """Return an object of a class that needs no arguments; what is no class stays as it is."""
    if not isinstance(candidate, type):
        return candidate
    with as_user_error(
        f"the tracker class {candidate.__qualname__!r} cannot be created without arguments"
    ):
        return candidate()
