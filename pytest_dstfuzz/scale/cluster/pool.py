"""The actors of a campaign: begun, given blocks, listened to, replaced."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.scale.cluster.seats import PATIENCE, Died, Seats
from pytest_dstfuzz.scale.cluster.session import Room
from pytest_dstfuzz.scale.cluster.worker import (
    BlockWorker,
    Plan,
    Refusal,
    SentResults,
    Surroundings,
    Task,
)
from pytest_dstfuzz.scale.results.manifest import RunManifest

#: What is heard of an actor.
Said = RunManifest | Plan | SentResults | Refusal | Died[Task]


class ActorPool(Seats[Task]):
    """As many actors as there is room for; places in it have numbers from 0."""

    def __init__(self, room: Room) -> None:
        super().__init__(room, BlockWorker)
        self._surroundings = Surroundings.here()

    def begin(self, number: int, settings: Settings, spent: float = 0.0) -> None:
        """Order an actor for a place; it says a manifest when it has loaded everything."""
        self.order(number, settings, self._surroundings, spent)

    def ask_plan(self, number: int) -> None:
        """Let an actor say what the blocks are."""
        seat = self.seats[number]
        seat.awaited.append((seat.actor.plan.remote(), None))

    def give(self, number: int, task: Task) -> None:
        """Let an actor run a block, after what it was given before."""
        seat = self.seats[number]
        run = seat.actor.run.options(num_returns="streaming")
        seat.awaited.append((run.remote(task), task))

    def heard(self, seconds: float = PATIENCE) -> Iterator[tuple[int, Said]]:
        """Yield what actors say, one thing each: as soon as there is one, nothing after a while."""
        for number in self.ready_ones(seconds):
            yield number, self._listen(number)

    def _listen(self, number: int) -> Said:
        seat = self.seats[number]
        said: Said = self.said_by(number, streamed=seat.awaited[0][1] is not None)
        if isinstance(said, Died):
            return said
        if not isinstance(said, SentResults) or said.last is not None:
            del seat.awaited[0]
        seat.ready = seat.ready or isinstance(said, RunManifest)
        return said
