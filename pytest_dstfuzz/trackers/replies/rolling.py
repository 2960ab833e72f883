"""A system in whose history its own replies stand, not those that were recorded.

It is asked question by question: what it replied to one stands before the next. A perturbed
sequence of n questions so costs n requests, and questions that have the same ones before them
share those.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import ClassVar, Final, TypeAlias

from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.errors import GivenUpError, TrackerError
from pytest_dstfuzz.kinds.replies import REPLIES
from pytest_dstfuzz.trackers.arriving import Take, arriving, taker_of
from pytest_dstfuzz.trackers.deadline import Overrun
from pytest_dstfuzz.trackers.tracker import (
    Interrupted,
    Tracker,
    Usage,
    fingerprint_of,
    notes_of,
    says_repeatable,
    usage_of,
)
from pytest_dstfuzz.trackers.validation import as_list, check_prediction

__all__ = ["RollingReplies"]

#: Replies that are kept, the newest ones.
MEMORY: Final = 50_000
#: What the system said first, the questions so far, and which repetition of them it is.
_Key: TypeAlias = tuple[str, tuple[str, ...], int]


class OwnHistory:
    """A system that is asked with a history of its own.

    Attributes:
        wrapped: the system.
        requests: how many contexts it was asked for.
        note: says to the user what that means.
    """

    note: ClassVar[str]

    def __init__(self, wrapped: Tracker) -> None:
        self.wrapped = wrapped
        self.requests = 0

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

    def _asked(self, batch: list[Context]) -> list[object]:
        self.requests += len(batch)
        count = len(batch)
        return as_list(self.wrapped.predict(batch), count)


class RollingReplies(OwnHistory):
    """Asks a system that replies, with its own replies in the history.

    The replies that a history needs are remembered, the last one is asked for each time: how far
    a system agrees with itself shows. A repetition (`Again`) has a history of its own.
    """

    note = (
        "The history of each question is the bot's own replies (--dst-history=own): it is asked "
        "question by question from the start of each dialogue."
    )

    def __init__(self, wrapped: Tracker, memory: int = MEMORY) -> None:
        super().__init__(wrapped)
        self._memory = memory
        self._said: OrderedDict[_Key, str] = OrderedDict()

    def predict(self, contexts: Sequence[Context]) -> list[object]:
        """Return the reply to each context, or why there is none."""
        rolls = {place: _Roll(context) for place, context in enumerate(contexts)}
        answers: dict[int, object] = {}
        hand_on = taker_of(self)
        depth = 0
        while going := {place: roll for place, roll in rolls.items() if place not in answers}:
            depth += 1
            self._go_on(depth, going, answers, hand_on)
        while len(self._said) > self._memory:
            self._said.popitem(last=False)
        return [answers[place] for place in range(len(contexts))]

    def _go_on(
        self, depth: int, rolls: Mapping[int, _Roll], answers: dict[int, object], hand_on: Take
    ) -> None:
        """Ask each question at a depth once: the last ones are answered, others are history."""
        wanted = {
            roll.key(depth): roll
            for roll in rolls.values()
            if roll.ends_at(depth) or roll.key(depth) not in self._said
        }
        keys = [*wanted]
        ends = [
            [place for place, roll in rolls.items() if roll.ends_at(depth) and roll.key(depth) == k]
            for k in keys
        ]

        def take(asked: int, answer: object) -> None:
            with suppress(TrackerError):
                self._recalled(keys[asked], answer)
            for place in ends[asked]:
                hand_on(place, answer)

        try:
            with arriving(self.wrapped, take):
                found = self._answers(depth, wanted)
        except (Interrupted, Overrun) as stopped:
            for asked, answer in stopped.answers.items():
                answers.update(dict.fromkeys(ends[asked], answer))
            stopped.answers = answers
            raise
        for key, answer in found.items():
            with suppress(TrackerError):
                self._recalled(key, answer)
        for place, roll in rolls.items():
            answer = found.get(roll.key(depth))
            if roll.ends_at(depth) or isinstance(answer, GivenUpError):
                answers[place] = answer
                continue
            try:
                roll.own.append(self._recalled(roll.key(depth), answer))
            except TrackerError as error:
                answers[place] = TrackerError(f"no reply to question {depth} before it: {error}")

    def _answers(self, depth: int, wanted: Mapping[_Key, _Roll]) -> dict[_Key, object]:
        if not wanted:
            return {}
        batch = [roll.context(depth) for roll in wanted.values()]
        return dict(zip(wanted, self._asked(batch), strict=True))

    def _recalled(self, key: _Key, answer: object) -> str:
        """Return the reply to a question that others follow: the first that it ever had."""
        if key not in self._said:
            self._said[key] = check_prediction(answer, outcome=REPLIES.name).reply or ""
        self._said.move_to_end(key)
        return self._said[key]


class _Roll:
    """The questions of one context, and what was replied to them so far."""

    def __init__(self, context: Context) -> None:
        self._opening = context.exchanges[0].system
        self._users = context.user_utterances
        self._repetition = getattr(context, "repetition", 0)
        #: The system's own replies, oldest first.
        self.own: list[str] = []

    def key(self, depth: int) -> _Key:
        """Return what the reply to a question, counted from 1, is remembered under."""
        return self._opening, self._users[:depth], self._repetition

    def ends_at(self, depth: int) -> bool:
        """Whether a question is the one that the context asks."""
        return depth == len(self._users)

    def context(self, depth: int) -> Context:
        """Return the context of a question, with the own replies to those before it."""
        systems = (self._opening, *self.own)
        return Context(tuple(map(Exchange, systems[:depth], self._users[:depth])))
