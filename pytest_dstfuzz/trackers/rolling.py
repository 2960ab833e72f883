"""Systems whose history consists of their own answers instead of recorded answers.

The system gets one utterance after the other. Each answer becomes part of the history for the next
utterance. Therefore a sequence of n questions costs n requests. Sequences with a common prefix
share the requests of the prefix.

An assistant that calls tools runs through a dialogue without recorded messages. Each of its calls
gets the recorded result for the same tool and arguments, until it replies. If there is no such
result, the call gets an error. The answer to a context is the end state: all calls that took effect
so far (`end_state`).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple, TypeAlias

from pytest_dstfuzz.dialogue.calls import (
    TOOL_CALLS,
    ToolCall,
    Transcript,
    calls_outcome,
    canonical,
    list_calls,
)
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange, in_own_names
from pytest_dstfuzz.dialogue.messages import Message, calling
from pytest_dstfuzz.dialogue.sampling import defaults_of, end_state, loose_key
from pytest_dstfuzz.errors import (
    GivenUpError,
    MalformedAnswerError,
    Overrun,
    TrackerError,
    UserError,
    passes_through,
)
from pytest_dstfuzz.kinds.replies import REPLIES
from pytest_dstfuzz.trackers.adapting import Take, arriving, failure_of, taker_of
from pytest_dstfuzz.trackers.tracker import (
    BatchInterrupt,
    Prediction,
    Tracker,
    Usage,
    fingerprint_of,
    notes_of,
    says_repeatable,
    usage_of,
)
from pytest_dstfuzz.trackers.validation import as_list, check_prediction

__all__ = ["RollingReplies"]

#: Maximum number of utterances whose answers stay in memory. The oldest are dropped first.
MEMORY: Final = 50_000
#: Maximum number of messages with calls after one utterance. Then the next utterance follows.
MOST_STEPS: Final = 8
#: The result of a call that the recording does not contain.
NOT_RECORDED: Final = canonical({"error": "no result of this call was recorded"})
#: Errors in place of an answer that the caller must receive unchanged.
_TOLD: Final = (GivenUpError, MalformedAnswerError)
#: The key of an utterance has everything that affects its answer. This is the opening, the
#: utterances so far, and the number of the repetition. For calls, it also has the tools and their
#: names.
_Key: TypeAlias = tuple[str, tuple[str, ...], int]


class _RolledTurn(NamedTuple):
    """The result of one utterance: the last text. For assistants, also the messages and calls."""

    said: str
    messages: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()


class OwnHistory(ABC):
    """A system whose history consists of its own answers.

    Answers to common prefixes of dialogues are cached. The answer to the last utterance is never
    cached, so that reports can show whether the system's answers vary. A repetition (`Again`) has a
    separate history.

    Attributes:
        wrapped: the system.
        requests: number of contexts sent to the system.
        note: explanation of this history for the user.
    """

    note: ClassVar[str]
    #: Message prefix for an earlier utterance without an answer. Its number follows.
    unanswered: ClassVar[str]

    def __init__(self, wrapped: Tracker, memory: int = MEMORY) -> None:
        self.wrapped = wrapped
        self.requests = 0
        self._memory = memory
        self._known: OrderedDict[_Key, _RolledTurn] = OrderedDict()

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes for the user."""
        return (self.note, *notes_of(self.wrapped))

    @property
    def fingerprint(self) -> str | None:
        """The identity of the system."""
        return fingerprint_of(self.wrapped)

    @property
    def repeatable(self) -> bool | None:
        """The system's own statement about repeatability, or ``None``."""
        return says_repeatable(self.wrapped)

    @property
    def usage(self) -> Usage:
        """The usage of the system. If it counts no tokens, only the number of requests."""
        counted = usage_of(self.wrapped)
        return Usage(self.requests, self.requests) if counted is None else counted

    @abstractmethod
    def _open(self, context: Context) -> _Rollout: ...

    def predict(self, contexts: Sequence[Context]) -> list[object]:
        """Return the answer to the last utterance of each context, or an error in its place."""
        rolls = {place: self._open(context) for place, context in enumerate(contexts)}
        answers: dict[int, object] = {}
        hand_on = taker_of(self)
        depth = 0
        while going := {place: roll for place, roll in rolls.items() if place not in answers}:
            depth += 1
            self._go_on(depth, going, answers, hand_on)
        while len(self._known) > self._memory:
            self._known.popitem(last=False)
        return [answers[place] for place in range(len(contexts))]

    def _go_on(
        self, depth: int, rolls: Mapping[int, _Rollout], answers: dict[int, object], hand_on: Take
    ) -> None:
        """Request the answer to utterance ``depth`` of each rollout, unless it is known.

        Store the answers to last utterances in ``answers``.
        """
        ends: dict[_Key, list[int]] = {}
        for place, roll in rolls.items():
            if roll.ends_at(depth):
                ends.setdefault(roll.key(depth), []).append(place)
        turns = {
            key: roll.turn(depth)
            for roll in rolls.values()
            if (key := roll.key(depth)) in ends or key not in self._known
        }

        def done(key: _Key) -> None:
            turn = turns[key]
            if turn.failure is None:
                self._known.setdefault(key, turn.came_of_it)
            for place in ends.get(key, ()):
                answers[place] = turn.answer
                hand_on(place, answers[place])

        try:
            self._answer(turns, done)
        except (BatchInterrupt, Overrun) as stopped:
            stopped.answers = answers
            raise
        failures = {key: turn.failure for key, turn in turns.items()}
        for place, roll in rolls.items():
            failure = failures.get(roll.key(depth))
            if place not in answers and (why := self._add(roll, depth, failure)) is not None:
                answers[place] = why

    def _add(self, roll: _Rollout, depth: int, failure: TrackerError | None) -> TrackerError | None:
        """Append the result of an utterance to a rollout. Return its error, if there is one."""
        key = roll.key(depth)
        if isinstance(failure, GivenUpError):
            return failure
        if key not in self._known:
            # Keep the type of a malformed answer, because the caller then asks again.
            kind = (
                MalformedAnswerError if isinstance(failure, MalformedAnswerError) else TrackerError
            )
            return kind(f"{self.unanswered} {depth}: {failure}")
        self._known.move_to_end(key)
        roll.add(self._known[key])
        return None

    def _answer(self, turns: Mapping[_Key, _OpenTurn], done: Callable[[_Key], None]) -> None:
        """Send each utterance to the system. Return results for its calls until it replies."""
        for _ in range(MOST_STEPS):
            waiting = [key for key, turn in turns.items() if not turn.done]
            if not waiting:
                return
            self._ask({key: turns[key] for key in waiting}, done)
        for key, turn in turns.items():
            if not turn.done:
                done(key)

    def _ask(self, turns: Mapping[_Key, _OpenTurn], done: Callable[[_Key], None]) -> None:
        """Send one request for each utterance. Call ``done`` when an utterance is finished."""
        left = dict(enumerate(turns))
        batch = [turn.context() for turn in turns.values()]
        count = len(batch)

        def take(place: int, answer: object) -> None:
            # An answer arrives on its own, and again with the batch.
            if (key := left.pop(place, None)) is not None:
                turns[key].take(answer)
                if turns[key].done:
                    done(key)

        self.requests += count
        try:
            with arriving(self.wrapped, take):
                answers = as_list(self.wrapped.predict(batch), count)
        except (BatchInterrupt, Overrun) as stopped:
            for place, answer in stopped.answers.items():
                take(place, answer)
            raise
        except BaseException as error:
            # The batch is halved, or the system has never answered.
            if count > 1 or not self._known or isinstance(error, UserError | GivenUpError):
                raise
            if passes_through(error):
                raise
            answers = [failure_of(error)]
        for place, answer in enumerate(answers):
            take(place, answer)


class RollingReplies(OwnHistory):
    """A system that replies, with its own replies in the history."""

    note = (
        "The history of each question consists of the bot's own replies (--dst-history=own): the "
        "bot is asked question by question from the start of each dialogue."
    )
    unanswered = "no reply to the earlier question"

    def _open(self, context: Context) -> _Rollout:
        return _Rollout(context)


class RollingCalls(OwnHistory):
    """An assistant that calls tools, with its own messages in the history."""

    note = (
        "Full rollouts (--dst-history=own): the assistant gets the user's utterances one by one. A "
        "call gets the result that was recorded for the same tool and arguments, or an error if "
        "there is none. The end states are compared: all calls so far, except those of tools that "
        "are declared as read-only."
    )
    unanswered = "no answer to the earlier utterance"

    def _open(self, context: Context) -> _Rollout:
        return _CallRollout(context)


class _Rollout:
    """The utterances of one context, and their results so far."""

    def __init__(self, context: Context) -> None:
        self.users = context.user_utterances
        self._opening = context.exchanges[0].system
        self._repetition = getattr(context, "repetition", 0)
        #: Distinguishes different beginnings.
        self._begun = self._opening
        self._before: list[_RolledTurn] = []

    def key(self, depth: int) -> _Key:
        """Return the cache key of an utterance, counted from 1."""
        return self._begun, self.users[:depth], self._repetition

    def ends_at(self, depth: int) -> bool:
        """Return whether an utterance is the last utterance of the context."""
        return depth == len(self.users)

    def add(self, turn: _RolledTurn) -> None:
        """Append the result of an utterance to the history."""
        self._before.append(turn)

    def turn(self, depth: int) -> _OpenTurn:
        """Return an utterance that has no answer yet."""
        return _OpenTurn(self, depth)

    def context(self, depth: int, after: Sequence[str] = ()) -> Context:
        """Return the context for an utterance, with the messages that already follow it."""
        del after
        systems = (self._opening, *(turn.said for turn in self._before))
        return Context(tuple(map(Exchange, systems[:depth], self.users[:depth])))


class _OpenTurn:
    """An utterance that waits for a reply."""

    def __init__(self, roll: _Rollout, depth: int) -> None:
        self._roll, self._depth = roll, depth
        self._said = ""
        self._answer: object = None
        self.done = False
        self.failure: TrackerError | None = None

    @property
    def answer(self) -> object:
        """The answer of the system, used only for the last utterance."""
        return self._answer

    @property
    def came_of_it(self) -> _RolledTurn:
        """The result of the utterance, for the history."""
        return _RolledTurn(self._said)

    def context(self) -> Context:
        """Return the context for the next request."""
        return self._roll.context(self._depth)

    def take(self, answer: object) -> None:
        """Process the reply of the system."""
        self._answer, self.done = answer, True
        try:
            self._said = check_prediction(answer, outcome=REPLIES.name).reply or ""
        except TrackerError as error:
            self.failure = answer if isinstance(answer, _TOLD) else error


class _CallRollout(_Rollout):
    """A rollout of an assistant with tools."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.transcript = context.transcript or Transcript()
        self.stubs = _Stubs(self.transcript)
        begun = Transcript(
            self.transcript.tools,
            self.transcript.before[:1],
            self.transcript.names,
            results=self.transcript.results,
        )
        self._begun = f"{begun.key} {self._opening}"

    @property
    def calls(self) -> list[ToolCall]:
        """All calls so far, with the tool names of this dialogue."""
        return [call for turn in self._before for call in turn.calls]

    def turn(self, depth: int) -> _OpenTurn:
        """Return an utterance that has no answer yet."""
        return _CallTurn(self, depth)

    def context(self, depth: int, after: Sequence[str] = ()) -> Context:
        """Return the context for an utterance, with the messages that already follow it."""
        first = self.transcript.before[0] if self.transcript.before else None
        own = (first, *(turn.messages for turn in self._before))
        return Context(
            super().context(depth).exchanges,
            transcript=Transcript(
                self.transcript.tools, own[:depth], self.transcript.names, tuple(after)
            ),
        )


class _CallTurn(_OpenTurn):
    """An utterance that waits for calls and a text."""

    _roll: _CallRollout

    def __init__(self, roll: _CallRollout, depth: int) -> None:
        super().__init__(roll, depth)
        self._messages: list[str] = []
        self._calls: list[ToolCall] = []

    @property
    def answer(self) -> object:
        """The end state after the utterance, or the error in its place."""
        if self.failure is not None:
            return self.failure
        state = end_state([*self._roll.calls, *self._calls], self._roll.transcript.tools)
        return Prediction(state, reply=self._said or None, calls=state)

    @property
    def came_of_it(self) -> _RolledTurn:
        """The result of the utterance, for the history."""
        return _RolledTurn(self._said, tuple(self._messages), tuple(self._calls))

    def context(self) -> Context:
        """Return the context for the next request."""
        return self._roll.context(self._depth, self._messages)

    def take(self, answer: object) -> None:
        """Process the assistant's next message: run its calls, or finish if it has no calls."""
        try:
            made = list_calls(check_prediction(answer, outcome=TOOL_CALLS).state)
        except TrackerError as error:
            self.failure = answer if isinstance(answer, _TOLD) else error
            self.done = True
            return
        said = (answer.reply or "") if isinstance(answer, Prediction) else ""
        self._said = said or self._said
        if not made:
            self._messages.append(Message("assistant", said).encoded())
            self.done = True
            return
        first = len(self._roll.calls) + len(self._calls)
        ids = [f"call_{first + place}" for place in range(len(made))]
        self._messages.append(calling(said or None, made, ids).encoded())
        for name, call in zip(ids, made, strict=True):
            earlier = [*self._roll.calls, *self._calls]
            result = self._roll.stubs.result(call, earlier)
            self._messages.append(Message("tool", result, answers=name).encoded())
            self._calls.append(call)


class _Stubs:
    """Simulated tools. Each call gets the recorded result of a call with the same `loose_key`."""

    def __init__(self, transcript: Transcript) -> None:
        self._names = transcript.names
        self._left_out = defaults_of(transcript.tools, dict(transcript.names))
        self._results: dict[str, list[str]] = {}
        for call, result in transcript.results:
            name, arguments = json.loads(call)
            key = loose_key(ToolCall(name, arguments), self._left_out)
            self._results.setdefault(key, []).append(result)

    def result(self, call: ToolCall, earlier: Iterable[ToolCall]) -> str:
        """Return the result of a call. Repeated calls get the next recorded result, or the last."""
        key = self._key(call)
        found = self._results.get(key)
        if found is None:
            return NOT_RECORDED
        again = Counter(map(self._key, earlier))[key]
        return found[min(again, len(found) - 1)]

    def _key(self, call: ToolCall) -> str:
        """Return the key of a call, with the recorded tool names."""
        if self._names:
            (call,) = list_calls(in_own_names(calls_outcome([call]), self._names))
        return loose_key(call, self._left_out)
