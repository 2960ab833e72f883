"""The actors of a run: begun, given work, listened to, replaced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Self

import ray
from ray.exceptions import RayError, RayTaskError

from pytest_dstfuzz.cluster.session import Room
from pytest_dstfuzz.cluster.worker import (
    BlockWorker,
    Plan,
    Refusal,
    SentResults,
    Surroundings,
    Task,
)
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.results.manifest import RunManifest

#: Blocks that an actor has been given and has not ended: the one that it runs, and one so that it
#: need not wait for the driver.
WINDOW: Final = 2
#: Seconds to wait for something to happen.
_PATIENCE: Final = 5.0


@dataclass(frozen=True, slots=True)
class Died:
    """An actor is no more, with what it had been given, in its order."""

    tasks: tuple[Task, ...]
    #: What Ray says of it, in one line.
    reason: str
    #: Whether it had loaded everything.
    loaded: bool


Said = RunManifest | Plan | SentResults | Refusal | Died


@dataclass(slots=True)
class _Seat:
    """A place in the pool, and who has it."""

    actor: Any
    #: What is waited for in its order, and the block that it is of.
    awaited: list[tuple[Any, Task | None]] = field(default_factory=list)
    ready: bool = False


class ActorPool:
    """As many actors as there is room for; places in it have numbers from 0."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self._class = ray.remote(BlockWorker).options(
            num_cpus=room.cpus, num_gpus=room.gpus, max_restarts=0, max_task_retries=0
        )
        self._surroundings = Surroundings.here()
        self._seats: dict[int, _Seat] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for number in list(self._seats):
            self.end(number)

    def begin(self, number: int, settings: Settings, spent: float = 0.0) -> None:
        """Order an actor for a place; it says a manifest when it has loaded everything."""
        # Ray says nothing of the types of its handles.
        actor: Any = self._class.remote(settings, self._surroundings, spent)
        self._seats[number] = seat = _Seat(actor)
        seat.awaited.append((actor.prepare.remote(), None))

    def end(self, number: int) -> tuple[Task, ...]:
        """End the actor of a place, whatever it does; return what it had been given."""
        seat = self._seats.pop(number)
        with suppress(RayError, ValueError):
            ray.kill(seat.actor)
        return tuple(task for _, task in seat.awaited if task is not None)

    def ask_plan(self, number: int) -> None:
        """Let an actor say what the blocks are."""
        seat = self._seats[number]
        seat.awaited.append((seat.actor.plan.remote(), None))

    def give(self, number: int, task: Task) -> None:
        """Let an actor run a block, after what it was given before."""
        seat = self._seats[number]
        run = seat.actor.run.options(num_returns="streaming")
        seat.awaited.append((run.remote(task), task))

    @property
    def free(self) -> Sequence[int]:
        """Who may be given another block, those with the least to do first."""
        load = {
            number: len(seat.awaited)
            for number, seat in self._seats.items()
            if seat.ready and len(seat.awaited) < WINDOW
        }
        return sorted(load, key=lambda number: (load[number], number))

    @property
    def actors(self) -> int:
        """How many places have an actor."""
        return len(self._seats)

    @property
    def has_tasks(self) -> bool:
        """Whether any actor has been given a block that it has not ended."""
        return any(task for seat in self._seats.values() for _, task in seat.awaited)

    @property
    def any_ready(self) -> bool:
        """Whether any actor has loaded everything."""
        return any(seat.ready for seat in self._seats.values())

    def heard(self, seconds: float = _PATIENCE) -> Iterator[tuple[int, Said]]:
        """Yield what actors say, one thing each: as soon as there is one, nothing after a while."""
        # An actor does one after the other: of each only what is first can be there.
        first = {n: seat.awaited[0] for n, seat in self._seats.items() if seat.awaited}
        waited = [awaited for awaited, _ in first.values()]
        if not waited:
            return
        ready, _ = ray.wait(waited, num_returns=1, timeout=seconds)
        # And whoever else has something by now.
        ready, _ = ray.wait(waited, num_returns=len(waited), timeout=0) if ready else (ready, ())
        for number, (awaited, task) in first.items():
            if any(awaited is one for one in ready):
                yield number, self._listen(number, awaited, streamed=task is not None)

    def _listen(self, number: int, awaited: Any, *, streamed: bool) -> Said:
        seat = self._seats[number]
        try:
            said: Said = ray.get(next(awaited) if streamed else awaited)
        except RayTaskError:
            # A fault of ours: it is shown whole.
            raise
        except (RayError, StopIteration) as error:
            return Died(self.end(number), _in_a_line(error), seat.ready)
        if not isinstance(said, SentResults) or said.last is not None:
            del seat.awaited[0]
        seat.ready = seat.ready or isinstance(said, RunManifest)
        return said


def _in_a_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # What ended it stands in the last line, where Ray knows it.
    return lines[-1] if lines else type(error).__name__
