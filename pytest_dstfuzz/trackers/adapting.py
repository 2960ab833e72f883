"""What all adapters of systems in this process share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.trackers.arriving import taker_of
from pytest_dstfuzz.trackers.deadline import Overrun
from pytest_dstfuzz.trackers.tracker import Interrupted, Prediction
from pytest_dstfuzz.trackers.validation import as_user_error


class Adapter(ABC):
    """Asks what it adapts for one context after the other."""

    def __init__(self, wrapped: object) -> None:
        self.wrapped: Any = wrapped

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        """Return the answer to each context; what ends a run loses none that is there."""
        answers: list[Prediction] = []
        take = taker_of(self)
        try:
            for place, context in enumerate(contexts):
                answers.append(self._ask(context))
                take(place, answers[-1])
        except Overrun as overrun:
            overrun.answers = dict(enumerate(answers))
            raise
        except KeyboardInterrupt:
            raise Interrupted(dict(enumerate(answers))) from None
        return answers

    @abstractmethod
    def _ask(self, context: Context) -> Prediction: ...


def made(candidate: object) -> object:
    """Return an object of a class that needs no arguments; what is no class stays as it is."""
    if not isinstance(candidate, type):
        return candidate
    with as_user_error(
        f"the tracker class {candidate.__qualname__!r} cannot be created without arguments"
    ):
        return candidate()
