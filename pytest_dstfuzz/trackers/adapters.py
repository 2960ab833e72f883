"""Make a tracker of what a team already has: a function, or an object that keeps state.

The shortest tracker is a function that takes a `Context` and returns slot -> value::

    # mybot.py                                  pytest --dst-model=mybot:track
    def track(context):
        state = {}
        for system, user in context.exchanges:
            for size in ("small", "medium", "large"):
                if size in user.lower():
                    state["pizza-size"] = size
        return state

An object with ``reset()`` and ``update(system, user)`` is replayed from the start of the
dialogue for each context, so that no state leaks from one context into the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pytest_dstfuzz.dialogue.normalise import normalise_state
from pytest_dstfuzz.dialogue.types import BeliefState, Context
from pytest_dstfuzz.errors import DataError, TrackerError, UserError
from pytest_dstfuzz.trackers.checks import describe, passes_through
from pytest_dstfuzz.trackers.protocol import Prediction, StatefulTracker, Tracker


class CallableTracker:
    """A tracker made of a function ``Context -> {slot: value}`` (or ``-> Prediction``)."""

    def __init__(
        self, function: Callable[[Context], object], *, normalisation: str = "plain"
    ) -> None:
        self.wrapped = function
        self._function = function
        self._normalisation = normalisation

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        """Call the function once for each context."""
        return [
            _prediction(self._function(context), self._normalisation, "the tracker function")
            for context in contexts
        ]


class StatefulAdapter:
    """A tracker made of an object with ``reset()`` and ``update(system, user)``."""

    def __init__(self, tracker: StatefulTracker, *, normalisation: str = "plain") -> None:
        self.wrapped = tracker
        self._tracker = tracker
        self._normalisation = normalisation

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        """Replay each context from its first exchange on."""
        return [self._replay(context) for context in contexts]

    def _replay(self, context: Context) -> Prediction:
        self._tracker.reset()
        answers = [self._tracker.update(system, user) for system, user in context.exchanges]
        return _prediction(answers[-1], self._normalisation, "update()")


def as_tracker(candidate: object, *, normalisation: str = "plain") -> Tracker:
    """Return ``candidate`` as a `Tracker`, adapted where necessary.

    Args:
        candidate: a tracker, an object with ``reset`` and ``update``, a function from
            context to state, or a class of one of these that needs no arguments.
        normalisation: of the values that functions and stateful objects return: that
            of the data they are compared with. They may return numbers and lists; what
            ``predict`` returns are strings, normalised where answers are checked.

    Raises:
        UserError: it is none of these.
    """
    if isinstance(candidate, type):
        candidate = _instantiate(candidate)
    if isinstance(candidate, Tracker) and callable(candidate.predict):
        return candidate
    if isinstance(candidate, StatefulTracker):
        return StatefulAdapter(candidate, normalisation=normalisation)
    if callable(candidate):
        return CallableTracker(candidate, normalisation=normalisation)
    raise UserError(
        f"{describe(candidate)} is no tracker: give an object with predict(contexts), one with "
        "reset() and update(system, user), or a function from a context to {slot: value}"
    )


def _instantiate(kind: type) -> object:
    try:
        return kind()
    except BaseException as error:
        if isinstance(error, UserError) or passes_through(error):
            raise
        raise UserError(
            f"the tracker class {kind.__qualname__!r} cannot be created without arguments: "
            f"{type(error).__name__}: {error}"
        ) from error


def _prediction(answer: object, normalisation: str, who: str) -> Prediction:
    if isinstance(answer, Prediction):
        return answer
    if isinstance(answer, BeliefState | Mapping):
        try:
            return Prediction(normalise_state(answer, normalisation))
        except DataError as error:
            raise TrackerError(f"{who} returned a bad state: {error}") from error
    raise TrackerError(
        f"{who} must return a mapping slot -> value or a Prediction, not {describe(answer)}"
    )
