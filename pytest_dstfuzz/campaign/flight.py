"""Dialogues that are run side by side, each a coroutine that waits for answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_dstfuzz.campaign.answers import Answer
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.walk import Answers, Walk
from pytest_dstfuzz.dialogue.types import Context
from pytest_dstfuzz.garbage import uncollected

Predict = Callable[[list[Context]], Answers]


@dataclass(slots=True)
class _Waiting:
    """A dialogue that waits for answers to ``wanted``, and those it had before."""

    walk: Walk
    wanted: Sequence[Context]
    answers: dict[Context, Answer] = field(default_factory=dict)


class Flight:
    """The dialogues that were begun and are not done."""

    def __init__(self) -> None:
        self._waiting: dict[int, _Waiting] = {}

    def __contains__(self, place: int) -> bool:
        return place in self._waiting

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def places(self) -> tuple[int, ...]:
        """Places of the dialogues in the plan, in the order in which they were begun."""
        return tuple(self._waiting)

    def begin(self, place: int, steps: Walk) -> None:
        """Begin the dialogue at ``place`` of the plan."""
        self._waiting[place] = _Waiting(steps, next(steps))

    def advance(self, predict: Predict) -> dict[int, list[TurnResult]]:
        """Let all dialogues have the answers that they wait for; return those that are done.

        What ``predict`` raises passes through, and nothing has moved.
        """
        found = predict([c for waiting in self._waiting.values() for c in waiting.wanted])
        done: dict[int, list[TurnResult]] = {}
        with uncollected():
            for place, waiting in self._waiting.items():
                given = {c: found[c] for c in waiting.wanted if c in found}
                waiting.answers.update(given)
                try:
                    waiting.wanted = waiting.walk.send(waiting.answers)
                except StopIteration as stop:
                    done[place] = stop.value
        for place in done:
            del self._waiting[place]
        return done

    def clear(self) -> None:
        """Forget all dialogues."""
        self._waiting.clear()


def completed(walks: Mapping[int, Walk], known: Predict) -> dict[int, list[TurnResult]]:
    """Run the dialogues that need no other answers than those known, from their beginnings."""
    results: dict[int, list[TurnResult]] = {}
    for place, steps in walks.items():
        wanted = next(steps)
        answers = dict(known(list(wanted)))
        while answers.keys() >= set(wanted):
            try:
                wanted = steps.send(answers)
            except StopIteration as stop:
                results[place] = stop.value
                break
            answers.update(known(list(wanted)))
    return results
