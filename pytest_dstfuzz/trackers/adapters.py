"""Trackers made from a function, from an object with state, or from a ConvLab-3 tracker.

The shortest tracker is a function that takes a `Context` and returns slot -> value. Every
function and method that is adapted here may be ``async``::

    # mybot.py                                  pytest --dst-model=mybot:track
    def track(context):
        state = {}
        for system, user in context.exchanges:
            for size in ("small", "medium", "large"):
                if size in user.lower():
                    state["pizza-size"] = size
        return state

An object with ``reset()`` and ``update(system, user)`` replays the dialogue from its start for each
context. So no state leaks from one context into the next. A ConvLab-3 tracker, which has a method
``init_session()``, also replays each dialogue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pytest_dstfuzz.dialogue.calls import TOOL_CALLS, History, OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.dialogue.normalise import normalise_state
from pytest_dstfuzz.errors import DataError, MalformedAnswerError, UserError
from pytest_dstfuzz.printable import describe
from pytest_dstfuzz.trackers.adapting import Adapter, FunctionAdapter, as_it_is, make_instance
from pytest_dstfuzz.trackers.calls import as_caller
from pytest_dstfuzz.trackers.replies import as_replier, first_parameter
from pytest_dstfuzz.trackers.rolling import OwnHistory
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker, read_attribute

#: Advice if a system returns a reply instead of a belief state.
REPLIES: Final = "--dst-outcome=reply"


class _StateAdapter(Adapter):
    """An adapter of objects that return slots and values in any spelling."""

    def __init__(self, wrapped: object, *, normalisation: str = "plain") -> None:
        super().__init__(wrapped)
        self._normalisation = normalisation


class CallableTracker(FunctionAdapter):
    """A tracker made from a function ``Context -> {slot: value}`` (or ``-> Prediction``)."""

    def __init__(self, wrapped: object, *, normalisation: str = "plain") -> None:
        super().__init__(wrapped)
        self._normalisation = normalisation

    def _call(self, context: Context) -> object:
        return self.wrapped(context)

    def _read(self, answer: object) -> Prediction:
        return as_prediction(answer, self._normalisation, "the tracker function")


class StatefulAdapter(_StateAdapter):
    """A tracker made from an object with ``reset()`` and ``update(system, user)``."""

    def _ask(self, context: Context) -> Prediction:
        self._waited(self.wrapped.reset())
        update = self.wrapped.update
        answers = [self._waited(update(system, user)) for system, user in context.exchanges]
        return as_prediction(answers[-1], self._normalisation, "update()")


class ConvLabAdapter(_StateAdapter):
    """A tracker made from a dialogue state tracker of ConvLab-3.

    The adapter follows ``convlab.dst.dst.DST`` of github.com/ConvLab/ConvLab-3 and its use in
    ``convlab/dialog_agent/agent.py``. ``init_session()`` begins a dialogue. For each turn, the
    adapter calls one of two methods. Both do nothing in the base class, and the tracker overrides
    one of them:

    - ``update_turn(sys_utt, user_utt)``. ``sys_utt`` is ``None`` if the system has not spoken yet.
    - ``update(user_act)`` with the utterance, for trackers that read text (SetSUMBT, TripPy, TRADE,
      T5). Before the call, the adapter appends ``[speaker, text]`` entries to ``state["history"]``
      and sets ``state["user_action"]``. It does not change ``state["system_action"]``, because the
      dialogues have no dialogue acts.

    A tracker that reads dialogue acts (the rule-based ones) needs an NLU in front of it. Write a
    function ``Context -> state`` that calls both. The answer is ``{domain: {slot: value}}``, or a
    state that has this mapping as its ``belief_state``.
    """

    def __init__(self, wrapped: object, *, normalisation: str = "plain") -> None:
        super().__init__(wrapped, normalisation=normalisation)
        self._method = _written_last(wrapped, "update_turn", "update")

    def _ask(self, context: Context) -> Prediction:
        self._waited(self.wrapped.init_session())
        take = self._take_turn if self._method == "update_turn" else self._take_text
        answers = [self._waited(take(*exchange)) for exchange in context.exchanges]
        who = f"{self._method}()"
        return as_prediction(_joined_slots(answers[-1], who), self._normalisation, who)

    def _take_turn(self, system: str, user: str) -> object:
        return self.wrapped.update_turn(system or None, user)

    def _take_text(self, system: str, user: str) -> object:
        # Read the state each time, because an update may replace it.
        state = self.wrapped.state
        # ConvLab's agents write "null" if the system has not spoken yet.
        state["history"] += [["sys", system or "null"], ["user", user]]
        state["user_action"] = user
        return self.wrapped.update(user)


def as_tracker(
    candidate: object,
    *,
    normalisation: str = "plain",
    outcome: OutcomeKind = "state",
    history: History = "recorded",
) -> Tracker:
    """Return ``candidate`` as a `Tracker`, with an adapter if necessary.

    Args:
        candidate: a tracker, an object with ``reset`` and ``update``, a ConvLab-3 tracker, a
            function from context to state, or a class of such objects that needs no arguments.
        normalisation: the normalisation of the data. It converts the values that functions and
            stateful objects return, which may be numbers and lists, to strings.
        outcome: the kind of answer under test.
        history: for systems that reply or call tools, see `as_replier` and `as_caller`.

    Raises:
        UserError: ``candidate`` cannot be adapted.
    """
    if outcome == "reply":
        return as_replier(candidate, history)
    if outcome == TOOL_CALLS:
        return as_caller(candidate, history)
    candidate = make_instance(candidate)

    def has(name: str) -> bool:
        return callable(read_attribute(candidate, name))

    if has("init_session") and (has("update_turn") or has("update")):
        # Check this before `Tracker`: some ConvLab-3 trackers have a ``predict`` for features.
        return ConvLabAdapter(candidate, normalisation=normalisation)
    if has("predict"):
        return as_it_is(candidate)
    if has("reset") and has("update"):
        return StatefulAdapter(candidate, normalisation=normalisation)
    if (has("reset") and has("reply")) or first_parameter(candidate) == "messages":
        raise UserError(
            f"{describe(candidate)} replies to messages and keeps no belief state: add {REPLIES}"
        )
    if callable(candidate):
        return CallableTracker(candidate, normalisation=normalisation)
    raise UserError(
        f"{describe(candidate)} is not a tracker: give an object with predict(contexts), an object "
        "with reset() and update(system, user), a tracker of ConvLab-3 with init_session() and "
        "update_turn(system, user) or update(user), or a function that takes a context and returns "
        "{slot: value}"
    )


def bound_concurrency(tracker: Tracker, concurrency: int) -> Tracker:
    """Limit a tracker to ``concurrency`` calls at once, if it is an async function."""
    # Do not read attributes of a user's object here, because that may run their code.
    one: object = tracker
    while isinstance(one, Adapter | OwnHistory):
        if isinstance(one, FunctionAdapter):
            one.concurrency = concurrency
        one = one.wrapped
    return tracker


def as_prediction(answer: object, normalisation: str, who: str) -> Prediction:
    """Return the answer of a tracker as a prediction, without a check of its values.

    A prediction is returned unchanged. A mapping slot -> value is converted by `normalise_state`.
    ``who`` names the function that returned the answer, for messages.
    """
    if isinstance(answer, Prediction):
        return answer
    if isinstance(answer, Mapping):
        try:
            return Prediction(normalise_state(answer, normalisation))
        except DataError as error:
            raise MalformedAnswerError(f"{who} returned an invalid state: {error}") from error
    hint = f"; if the system replies to users, add {REPLIES}" if isinstance(answer, str) else ""
    raise MalformedAnswerError(
        f"{who} must return a mapping slot -> value or a Prediction, not {describe(answer)}{hint}"
    )


def _written_last(tracker: object, *methods: str) -> str:
    """Return the name of the method that the object or its most derived class defines."""
    own: Any = read_attribute(tracker, "__dict__", {})
    written = [own, *map(vars, type(tracker).__mro__)]
    # The classes of a proxy define none of the methods.
    written.append({name: None for name in methods if callable(read_attribute(tracker, name))})
    return next(name for names in written for name in methods if name in names)


def _joined_slots(answer: object, who: str) -> dict[str, object]:
    """Flatten a ConvLab-3 belief state ``domain -> slot -> value`` to ``domain-slot -> value``."""
    belief = answer.get("belief_state", answer) if isinstance(answer, Mapping) else answer
    if not isinstance(belief, Mapping):
        raise MalformedAnswerError(
            f"{who} of a ConvLab-3 tracker must return {{'belief_state': {{domain: {{slot: "
            f"value}}}}}}, not {describe(answer)}"
        )
    joined: dict[str, object] = {}
    for domain, slots in belief.items():
        if not isinstance(slots, Mapping):
            raise MalformedAnswerError(
                f"{who} of a ConvLab-3 tracker must return slot -> value for each domain; "
                f"{domain!r} has {describe(slots)}"
            )
        joined |= {f"{domain}-{slot}": value for slot, value in slots.items()}
    return joined
