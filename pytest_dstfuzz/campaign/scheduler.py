"""Dialogues under way: which contexts go to the tracker next, and who gets the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pytest_dstfuzz.campaign.answers import Answer
from pytest_dstfuzz.campaign.dialogue_run import Answers, DialogueRun
from pytest_dstfuzz.campaign.predictor import Predictor
from pytest_dstfuzz.campaign.requests import OptionalRequest, PatientRequest
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.garbage import gc_paused

_Known = Callable[[list[Context]], Answers]


@dataclass(slots=True)
class _Waiting:
    """A dialogue that waits for answers to ``wanted``, and those it had before."""

    run: DialogueRun
    wanted: Sequence[Context]
    #: Number of the window that it was begun with.
    window: int
    answers: dict[Context, Answer] = field(default_factory=dict)


class FinishedDialogue(NamedTuple):
    """A dialogue that is done: what was found, and the answers that it rests on."""

    results: list[TurnResult]
    answers: Answers


class DialogueScheduler:
    """The dialogues that were begun and are not done."""

    def __init__(self) -> None:
        self._waiting: dict[int, _Waiting] = {}
        self._done: dict[int, FinishedDialogue] = {}

    def __contains__(self, place: int) -> bool:
        return place in self._waiting

    def windows(self, *, patient: bool = False) -> int:
        """How many windows have dialogues that are not done; of ``patient`` ones, that can move."""
        return len({waiting.window for waiting in self._moving(patient).values()})

    def begin(self, place: int, window: int, run: DialogueRun) -> None:
        """Begin the dialogue at ``place`` of the plan."""
        self._waiting[place] = _Waiting(run, next(run), window)

    def advance(self, predictor: Predictor, batch: int, *, patient: bool = False) -> None:
        """Let dialogues have the answers that they wait for: all but those of the last batch.

        What would fill a batch of that size in part waits for the next time, those of the last
        windows first: a network takes for a part of a batch nearly as long as for all of it.

        Where they are ``patient``, those whose request can wait do so.

        What the predictor raises passes through, and nothing has moved. What a dialogue raises
        passes through as well: it is out then, and those after it have not moved.
        """
        later, moving = self._later(predictor.known, batch), self._moving(patient)
        wanted = (c for waiting in moving.values() for c in waiting.wanted)
        found = predictor.predict(c for c in wanted if c not in later)
        with gc_paused():
            for place, waiting in moving.items():
                if later.isdisjoint(waiting.wanted):
                    self._send(place, found)

    def _moving(self, patient: bool) -> dict[int, _Waiting]:
        """Return the dialogues whose requests cannot wait; all of them unless they are patient."""
        return {
            place: waiting
            for place, waiting in self._waiting.items()
            if not (patient and isinstance(waiting.wanted, PatientRequest))
        }

    def _later(self, known: _Known, batch: int) -> set[Context]:
        """Return the contexts that would fill a batch in part."""
        if batch == 1:
            return set()
        by_window = sorted(self._waiting.values(), key=lambda waiting: waiting.window)
        wanted = list(dict.fromkeys(c for waiting in by_window for c in waiting.wanted))
        there = known(wanted)
        missing = [context for context in wanted if context not in there]
        rest = len(missing) % batch
        return set(missing[-rest:]) if rest < len(missing) and rest else set()

    def settle(self, known: _Known, *, last: bool = False) -> None:
        """Take every dialogue as far as answers that are known already will do.

        Where these are the ``last``, do without those that are optional.
        """
        with gc_paused():
            for place in list(self._waiting):
                while (waiting := self._waiting.get(place)) is not None:
                    found = known(list(waiting.wanted))
                    can_do_without = last and isinstance(waiting.wanted, OptionalRequest)
                    if not (can_do_without or all(map(found.__contains__, waiting.wanted))):
                        break
                    self._send(place, found)

    def take(self) -> dict[int, FinishedDialogue]:
        """Return the dialogues that were done since the last time."""
        done, self._done = self._done, {}
        return done

    def _send(self, place: int, found: Answers) -> None:
        # Out, until it waits again: whatever interrupts a coroutine ends it.
        waiting = self._waiting.pop(place)
        waiting.answers.update((c, found[c]) for c in waiting.wanted if c in found)
        try:
            waiting.wanted = waiting.run.send(waiting.answers)
        except StopIteration as stop:
            self._done[place] = FinishedDialogue(stop.value, waiting.answers)
        else:
            self._waiting[place] = waiting
