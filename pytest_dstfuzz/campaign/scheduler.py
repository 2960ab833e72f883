"""Dialogues that are run side by side, each a coroutine that waits for answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pytest_dstfuzz.campaign.answers import Answer
from pytest_dstfuzz.campaign.dialogue_run import Answers, DialogueRun
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.shrink import OptionalRequest
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.garbage import gc_paused

Predict = Callable[[list[Context]], Answers]


@dataclass(slots=True)
class _Waiting:
    """A dialogue that waits for answers to ``wanted``, and those it had before."""

    walk: DialogueRun
    wanted: Sequence[Context]
    #: Number of the window that it was begun with.
    window: int
    answers: dict[Context, Answer] = field(default_factory=dict)


class DialogueScheduler:
    """The dialogues that were begun and are not done."""

    def __init__(self) -> None:
        self._waiting: dict[int, _Waiting] = {}
        self._done: dict[int, list[TurnResult]] = {}

    def __contains__(self, place: int) -> bool:
        return place in self._waiting

    @property
    def windows(self) -> int:
        """How many windows have dialogues that are not done."""
        return len({waiting.window for waiting in self._waiting.values()})

    def begin(self, place: int, window: int, steps: DialogueRun) -> None:
        """Begin the dialogue at ``place`` of the plan."""
        self._waiting[place] = _Waiting(steps, next(steps), window)

    def advance(self, predict: Predict) -> None:
        """Let all dialogues have the answers that they wait for.

        What ``predict`` raises passes through, and nothing has moved. What a dialogue raises
        passes through as well: it is out then, and those after it have not moved.
        """
        found = predict([c for waiting in self._waiting.values() for c in waiting.wanted])
        with gc_paused():
            for place in list(self._waiting):
                self._send(place, found)

    def settle(self, known: Predict, *, last: bool = False) -> None:
        """Take every dialogue as far as answers that are known already will do.

        Args:
            known: gives the answers that are there.
            last: there will be no others: do without those that are only wished for.
        """
        with gc_paused():
            for place in list(self._waiting):
                while (waiting := self._waiting.get(place)) is not None:
                    found = known(list(waiting.wanted))
                    can_do_without = last and isinstance(waiting.wanted, OptionalRequest)
                    if not (can_do_without or all(map(found.__contains__, waiting.wanted))):
                        break
                    self._send(place, found)

    def take(self) -> dict[int, list[TurnResult]]:
        """Return the results of the dialogues that were done since the last time."""
        done, self._done = self._done, {}
        return done

    def _send(self, place: int, found: Answers) -> None:
        # Out, until it waits again: whatever interrupts a coroutine ends it.
        waiting = self._waiting.pop(place)
        waiting.answers.update((c, found[c]) for c in waiting.wanted if c in found)
        try:
            waiting.wanted = waiting.walk.send(waiting.answers)
        except StopIteration as stop:
            self._done[place] = stop.value
        else:
            self._waiting[place] = waiting
