"""An assistant that goes through a dialogue by itself, its tools answered from the recording.

The user's utterances are said in their order. What the assistant calls is answered, until it
speaks: with what was recorded for the same tool and the same arguments, else with an error. The
answer to a context is the end state, all calls that took effect so far (`end_state`).
"""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from pytest_dstfuzz.dialogue.call_trees import made_calls
from pytest_dstfuzz.dialogue.calls import ToolCall, Transcript, calls_outcome, canonical
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.dialogue.messages import Message, calling
from pytest_dstfuzz.dialogue.outcome import TOOL_CALLS
from pytest_dstfuzz.dialogue.renaming import in_own_names
from pytest_dstfuzz.dialogue.rollout import defaults_of, end_state, loose_key
from pytest_dstfuzz.errors import GivenUpError, TrackerError
from pytest_dstfuzz.trackers.arriving import Take, arriving, taker_of
from pytest_dstfuzz.trackers.deadline import Overrun
from pytest_dstfuzz.trackers.replies.rolling import MEMORY, OwnHistory
from pytest_dstfuzz.trackers.tracker import Interrupted, Prediction, Tracker
from pytest_dstfuzz.trackers.validation import check_prediction

#: Messages with calls after one utterance; the next utterance follows then.
MOST_STEPS: Final = 8
#: What a tool returns of which the recording has no such call.
NOT_RECORDED: Final = canonical({"error": "no result of this call was recorded"})
#: All that a rollout depends on: tools and names, what came before the first utterance, the
#: utterances so far, and which repetition of them it is.
_Key: TypeAlias = tuple[str, tuple[str, ...], int]


class _RolledTurn(NamedTuple):
    """What came of one utterance: the messages after it, the last text, the calls."""

    messages: tuple[str, ...]
    said: str
    calls: tuple[ToolCall, ...]


class RollingCalls(OwnHistory):
    """Asks an assistant that calls tools, with its own messages in the history.

    The beginnings that rollouts share are remembered, the last utterance is answered each time. A
    repetition (`Again`) has a history of its own.
    """

    note = (
        "Full rollouts (--dst-history=own): the user's utterances are said in their order, a call "
        "is answered with what was recorded for the same tool and arguments, else with an error, "
        "and what is compared is the end state: all calls so far, but those of tools that are said "
        "to read only."
    )

    def __init__(self, wrapped: Tracker, memory: int = MEMORY) -> None:
        super().__init__(wrapped)
        self._memory = memory
        self._known: OrderedDict[_Key, _RolledTurn] = OrderedDict()

    def predict(self, contexts: Sequence[Context]) -> list[object]:
        """Return the end state after each context, or why there is none."""
        rolls = {place: _Rollout(context) for place, context in enumerate(contexts)}
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
        turns = {
            roll.key(depth): _OpenTurn(roll, depth)
            for roll in rolls.values()
            if roll.ends_at(depth) or roll.key(depth) not in self._known
        }

        def take(turn: _OpenTurn) -> None:
            if turn.failure is None:
                self._known.setdefault(turn.key, turn.told)
                for place, roll in rolls.items():
                    if roll.ends_at(depth) and roll.key(depth) == turn.key:
                        answers[place] = roll.answer(turn.told)
                        hand_on(place, answers[place])

        try:
            self._answer(list(turns.values()), take)
        except (Interrupted, Overrun) as stopped:
            stopped.answers = answers
            raise
        for place, roll in rolls.items():
            if place in answers:
                continue
            spoken = turns.get(roll.key(depth))
            failure = None if spoken is None else spoken.failure
            if failure is not None:
                last = roll.ends_at(depth) or isinstance(failure, GivenUpError)
                before = TrackerError(f"no answer to utterance {depth} before it: {failure}")
                answers[place] = failure if last else before
            else:
                self._known.move_to_end(roll.key(depth))
                roll.add(self._known[roll.key(depth)])

    def _answer(self, turns: Sequence[_OpenTurn], done: Callable[[_OpenTurn], None]) -> None:
        """Let the assistant answer utterances, and its calls, until it speaks."""
        for _ in range(MOST_STEPS):
            waiting = [turn for turn in turns if not turn.done]
            if not waiting:
                return
            batch = [turn.context() for turn in waiting]
            take = partial(_take, waiting, set(), done)
            with arriving(self.wrapped, take):
                answers = self._asked(batch)
            for place, answer in enumerate(answers):
                take(place, answer)
        for turn in turns:
            if not turn.done:
                done(turn)


def _take(
    waiting: Sequence[_OpenTurn],
    taken: set[int],
    done: Callable[[_OpenTurn], None],
    place: int,
    answer: object,
) -> None:
    """Let a turn take its answer, which comes alone and again with the batch."""
    if place not in taken:
        taken.add(place)
        waiting[place].take(answer)
        if waiting[place].done:
            done(waiting[place])


class _Rollout:
    """The utterances of one context, and what came of them so far."""

    def __init__(self, context: Context) -> None:
        self.transcript = context.transcript or Transcript()
        self.users = context.user_utterances
        self._opening = context.exchanges[0].system
        self._repetition = getattr(context, "repetition", 0)
        self._told: list[_RolledTurn] = []
        self.stubs = _Stubs(self.transcript)
        before = self.transcript.before[:1]
        begun = Transcript(
            self.transcript.tools,
            before,
            self.transcript.names,
            results=self.transcript.results,
        )
        self._begun = f"{begun.key} {self._opening}"

    @property
    def calls(self) -> list[ToolCall]:
        """All calls so far, under the names that the tools have here."""
        return [call for told in self._told for call in told.calls]

    def key(self, depth: int) -> _Key:
        """Return what is remembered of an utterance, counted from 1, under."""
        return self._begun, self.users[:depth], self._repetition

    def ends_at(self, depth: int) -> bool:
        """Whether an utterance is the one that the context ends with."""
        return depth == len(self.users)

    def add(self, told: _RolledTurn) -> None:
        """Go on with what came of an utterance."""
        self._told.append(told)

    def context(self, depth: int, after: Sequence[str]) -> Context:
        """Return what the assistant sees at an utterance, with what it did for it already."""
        systems = (self._opening, *(told.said for told in self._told))
        first = self.transcript.before[0] if self.transcript.before else None
        own = (first, *(told.messages for told in self._told))
        return Context(
            tuple(map(Exchange, systems[:depth], self.users[:depth])),
            transcript=Transcript(
                self.transcript.tools, own[:depth], self.transcript.names, tuple(after)
            ),
        )

    def answer(self, told: _RolledTurn) -> Prediction:
        """Return the end state after the last utterance."""
        state = end_state([*self.calls, *told.calls], self.transcript.tools)
        return Prediction(state, reply=told.said or None, calls=state)


class _OpenTurn:
    """One utterance that is being answered."""

    def __init__(self, roll: _Rollout, depth: int) -> None:
        self._roll, self._depth = roll, depth
        self.key = roll.key(depth)
        self._messages: list[str] = []
        self._calls: list[ToolCall] = []
        self._said = ""
        self.done = False
        self.failure: TrackerError | None = None

    @property
    def told(self) -> _RolledTurn:
        """What came of it."""
        return _RolledTurn(tuple(self._messages), self._said, tuple(self._calls))

    def context(self) -> Context:
        """Return what the assistant sees next."""
        return self._roll.context(self._depth, self._messages)

    def take(self, answer: object) -> None:
        """Take the assistant's next message: answer its calls, or be done."""
        try:
            made = made_calls(check_prediction(answer, outcome=TOOL_CALLS).state)
        except TrackerError as error:
            self.failure = answer if isinstance(answer, GivenUpError) else error
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
