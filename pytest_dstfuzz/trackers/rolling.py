"""A system in whose history its own answers stand, not those that were recorded.

It is asked utterance by utterance: what it said to one stands before the next. A perturbed sequence
of n questions so costs n requests, and questions that have the same ones before them share those.

An assistant that calls tools goes through a dialogue by itself. What it calls is answered, until it
speaks: with what was recorded for the same tool and the same arguments, else with an error. The
answer to a context is the end state, all calls that took effect so far (`end_state`).
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
    made_calls,
)
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange, in_own_names
from pytest_dstfuzz.dialogue.messages import Message, calling
from pytest_dstfuzz.dialogue.sampling import defaults_of, end_state, loose_key
from pytest_dstfuzz.errors import GivenUpError, MalformedAnswerError, TrackerError
from pytest_dstfuzz.kinds.replies import REPLIES
from pytest_dstfuzz.trackers.adapting import Take, arriving, taker_of
from pytest_dstfuzz.trackers.tracker import (
    Interrupted,
    Prediction,
    Tracker,
    Usage,
    fingerprint_of,
    notes_of,
    says_repeatable,
    usage_of,
)
from pytest_dstfuzz.trackers.validation import Overrun, as_list, check_prediction

__all__ = ["RollingReplies"]

#: Utterances whose answers are kept, the newest ones.
MEMORY: Final = 50_000
#: Messages with calls after one utterance; the next utterance follows then.
MOST_STEPS: Final = 8
#: What a tool returns of which the recording has no such call.
NOT_RECORDED: Final = canonical({"error": "no result of this call was recorded"})
#: Errors in the place of an answer that mean something to whoever asked.
_TOLD: Final = (GivenUpError, MalformedAnswerError)
#: All that the answers to an utterance depend on: what came before the first one (for calls the
#: tools and names too), the utterances so far, and which repetition of them it is.
_Key: TypeAlias = tuple[str, tuple[str, ...], int]


class _RolledTurn(NamedTuple):
    """What came of one utterance: the last text, and of calls the messages after it, and these."""

    said: str
    messages: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()


class OwnHistory(ABC):
    """A system that is asked with a history of its own.

    The beginnings that dialogues share are remembered, the last utterance is answered each time:
    how far a system agrees with itself shows. A repetition (`Again`) has a history of its own.

    Attributes:
        wrapped: the system.
        requests: how many contexts it was asked for.
        note: says to the user what that means.
    """

    note: ClassVar[str]
    #: What is said of an utterance without an answer that others follow; then comes its number.
    unanswered: ClassVar[str]

    def __init__(self, wrapped: Tracker, memory: int = MEMORY) -> None:
        self.wrapped = wrapped
        self.requests = 0
        self._memory = memory
        self._known: OrderedDict[_Key, _RolledTurn] = OrderedDict()

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to say to the user."""
        return (self.note, *notes_of(self.wrapped))

    @property
    def fingerprint(self) -> str | None:
        """The identity of the system."""
        return fingerprint_of(self.wrapped)

    @property
    def repeatable(self) -> bool | None:
        """What the system says about whether it repeats itself; ``None`` = nothing."""
        return says_repeatable(self.wrapped)

    @property
    def usage(self) -> Usage:
        """What its answers took; of a system that counts no tokens, how many there were."""
        counted = usage_of(self.wrapped)
        return Usage(self.requests, self.requests) if counted is None else counted

    @abstractmethod
    def _open(self, context: Context) -> _Rollout: ...

    def predict(self, contexts: Sequence[Context]) -> list[object]:
        """Return the answer to the end of each context, or why there is none."""
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
        """Say one utterance to each rollout: the last ones are answered, others are history."""
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
        except (Interrupted, Overrun) as stopped:
            stopped.answers = answers
            raise
        failures = {key: turn.failure for key, turn in turns.items()}
        for place, roll in rolls.items():
            failure = failures.get(roll.key(depth))
            if place not in answers and (why := self._add(roll, depth, failure)) is not None:
                answers[place] = why

    def _add(self, roll: _Rollout, depth: int, failure: TrackerError | None) -> TrackerError | None:
        """Let a rollout go on with what came of an utterance; return why it cannot."""
        key = roll.key(depth)
        if isinstance(failure, GivenUpError):
            return failure
        if key not in self._known:
            # A malformed answer stays one: whoever asked asks again.
            kind = (
                MalformedAnswerError if isinstance(failure, MalformedAnswerError) else TrackerError
            )
            return kind(f"{self.unanswered} {depth} before it: {failure}")
        self._known.move_to_end(key)
        roll.add(self._known[key])
        return None

    def _answer(self, turns: Mapping[_Key, _OpenTurn], done: Callable[[_Key], None]) -> None:
        """Let the system answer utterances, and its calls, until it speaks."""
        for _ in range(MOST_STEPS):
            waiting = [key for key, turn in turns.items() if not turn.done]
            if not waiting:
                return
            self._ask({key: turns[key] for key in waiting}, done)
        for key, turn in turns.items():
            if not turn.done:
                done(key)

    def _ask(self, turns: Mapping[_Key, _OpenTurn], done: Callable[[_Key], None]) -> None:
        """Ask once at each utterance."""
        left = dict(enumerate(turns))
        batch = [turn.context() for turn in turns.values()]
        count = len(batch)

        def take(place: int, answer: object) -> None:
            # An answer comes alone, and again with the batch.
            if (key := left.pop(place, None)) is not None:
                turns[key].take(answer)
                if turns[key].done:
                    done(key)

        self.requests += count
        try:
            with arriving(self.wrapped, take):
                answers = as_list(self.wrapped.predict(batch), count)
        except (Interrupted, Overrun) as stopped:
            for place, answer in stopped.answers.items():
                take(place, answer)
            raise
        for place, answer in enumerate(answers):
            take(place, answer)


class RollingReplies(OwnHistory):
    """Asks a system that replies, with its own replies in the history."""

    note = (
        "The history of each question is the bot's own replies (--dst-history=own): it is asked "
        "question by question from the start of each dialogue."
    )
    unanswered = "no reply to question"

    def _open(self, context: Context) -> _Rollout:
        return _Rollout(context)


class RollingCalls(OwnHistory):
    """Asks an assistant that calls tools, with its own messages in the history."""

    note = (
        "Full rollouts (--dst-history=own): the user's utterances are said in their order, a call "
        "is answered with what was recorded for the same tool and arguments, else with an error, "
        "and what is compared is the end state: all calls so far, but those of tools that are said "
        "to read only."
    )
    unanswered = "no answer to utterance"

    def _open(self, context: Context) -> _Rollout:
        return _CallRollout(context)


class _Rollout:
    """The utterances of one context, and what came of them so far."""

    def __init__(self, context: Context) -> None:
        self.users = context.user_utterances
        self._opening = context.exchanges[0].system
        self._repetition = getattr(context, "repetition", 0)
        #: What tells one beginning from another.
        self._begun = self._opening
        self._before: list[_RolledTurn] = []

    def key(self, depth: int) -> _Key:
        """Return what is remembered of an utterance, counted from 1, under."""
        return self._begun, self.users[:depth], self._repetition

    def ends_at(self, depth: int) -> bool:
        """Whether an utterance is the one that the context ends with."""
        return depth == len(self.users)

    def add(self, turn: _RolledTurn) -> None:
        """Go on with what came of an utterance."""
        self._before.append(turn)

    def turn(self, depth: int) -> _OpenTurn:
        """Return an utterance, to be answered."""
        return _OpenTurn(self, depth)

    def context(self, depth: int, after: Sequence[str] = ()) -> Context:
        """Return what the system sees at an utterance, with what it did for it already."""
        del after
        systems = (self._opening, *(turn.said for turn in self._before))
        return Context(tuple(map(Exchange, systems[:depth], self.users[:depth])))


class _OpenTurn:
    """One utterance that is being answered, by a reply."""

    def __init__(self, roll: _Rollout, depth: int) -> None:
        self._roll, self._depth = roll, depth
        self._said = ""
        self._answer: object = None
        self.done = False
        self.failure: TrackerError | None = None

    @property
    def answer(self) -> object:
        """The answer of the system if the utterance is the last one."""
        return self._answer

    @property
    def came_of_it(self) -> _RolledTurn:
        """What others go on with."""
        return _RolledTurn(self._said)

    def context(self) -> Context:
        """Return what the system sees next."""
        return self._roll.context(self._depth)

    def take(self, answer: object) -> None:
        """Take what the system said."""
        self._answer, self.done = answer, True
        try:
            self._said = check_prediction(answer, outcome=REPLIES.name).reply or ""
        except TrackerError as error:
            self.failure = answer if isinstance(answer, _TOLD) else error


class _CallRollout(_Rollout):
    """One with tools."""

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
        """All calls so far, under the names that the tools have here."""
        return [call for turn in self._before for call in turn.calls]

    def turn(self, depth: int) -> _OpenTurn:
        """Return an utterance, to be answered."""
        return _CallTurn(self, depth)

    def context(self, depth: int, after: Sequence[str] = ()) -> Context:
        """Return what the assistant sees at an utterance, with what it did for it already."""
        first = self.transcript.before[0] if self.transcript.before else None
        own = (first, *(turn.messages for turn in self._before))
        return Context(
            super().context(depth).exchanges,
            transcript=Transcript(
                self.transcript.tools, own[:depth], self.transcript.names, tuple(after)
            ),
        )


class _CallTurn(_OpenTurn):
    """One utterance that is being answered, by calls and a text."""

    _roll: _CallRollout

    def __init__(self, roll: _CallRollout, depth: int) -> None:
        super().__init__(roll, depth)
        self._messages: list[str] = []
        self._calls: list[ToolCall] = []

    @property
    def answer(self) -> object:
        """The end state after the utterance, or why there is none."""
        if self.failure is not None:
            return self.failure
        state = end_state([*self._roll.calls, *self._calls], self._roll.transcript.tools)
        return Prediction(state, reply=self._said or None, calls=state)

    @property
    def came_of_it(self) -> _RolledTurn:
        """What others go on with."""
        return _RolledTurn(self._said, tuple(self._messages), tuple(self._calls))

    def context(self) -> Context:
        """Return what the assistant sees next."""
        return self._roll.context(self._depth, self._messages)

    def take(self, answer: object) -> None:
        """Take the assistant's next message: answer its calls, or be done."""
        try:
            made = made_calls(check_prediction(answer, outcome=TOOL_CALLS).state)
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
    """Tools that return what was recorded for a call, or for one with the same `loose_key`."""

    def __init__(self, transcript: Transcript) -> None:
        self._names = transcript.names
        self._left_out = defaults_of(transcript.tools, dict(transcript.names))
        self._results: dict[str, list[str]] = {}
        for call, result in transcript.results:
            name, arguments = json.loads(call)
            key = loose_key(ToolCall(name, arguments), self._left_out)
            self._results.setdefault(key, []).append(result)

    def result(self, call: ToolCall, earlier: Iterable[ToolCall]) -> str:
        """Return what a call returns; made again, what the next such call returned, if one did."""
        key = self._key(call)
        found = self._results.get(key)
        if found is None:
            return NOT_RECORDED
        again = Counter(map(self._key, earlier))[key]
        return found[min(again, len(found) - 1)]

    def _key(self, call: ToolCall) -> str:
        """Return what a call is looked up by, under the names of the recording."""
        if self._names:
            (call,) = made_calls(in_own_names(calls_outcome([call]), self._names))
        return loose_key(call, self._left_out)
