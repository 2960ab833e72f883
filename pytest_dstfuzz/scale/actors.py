"""Places for actors of Ray, and the actors of a campaign: begun, given blocks, replaced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Self, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.scale.ray import Room
from pytest_dstfuzz.scale.results import RunManifest
from pytest_dstfuzz.scale.worker import BlockWorker, Plan, Refusal, SentResults, Surroundings, Task

#: Tasks that an actor has been given and has not ended: the one that it does, and one so that it
#: need not wait for the driver.
WINDOW: Final = 2
#: Seconds to wait for something to happen.
PATIENCE: Final = 5.0

#: What an actor is given.
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Died(Generic[T]):
    """An actor is no more, with what it had been given, in its order."""

    tasks: tuple[T, ...]
    #: What Ray says of it, in one line.
    reason: str
    #: Whether it had loaded everything.
    loaded: bool


@dataclass(slots=True)
class Seat(Generic[T]):
    """A place, and who has it."""

    actor: Any
    #: What is waited for in its order, and the task that it is of.
    awaited: list[tuple[Any, T | None]] = field(default_factory=list)
    ready: bool = False


class Seats(Generic[T]):
    """As many actors of one class as there is room for; their places have numbers from 0."""

    def __init__(self, room: Room, worker: type) -> None:
        self.room = room
        # Ray says nothing of the types of what it makes.
        made: Any = ray.remote(worker)
        self._class = made.options(
            num_cpus=room.cpus, num_gpus=room.gpus, max_restarts=0, max_task_retries=0
        )
        self.seats: dict[int, Seat[T]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for number in list(self.seats):
            self.end(number)

    def order(self, number: int, *given: object) -> None:
        """Order an actor for a place; ``prepare`` is what it does first."""
        actor: Any = self._class.remote(*given)
        self.seats[number] = Seat(actor, [(actor.prepare.remote(), None)])

    def end(self, number: int) -> tuple[T, ...]:
        """End the actor of a place, whatever it does; return what it had been given."""
        seat = self.seats.pop(number)
        with suppress(RayError, ValueError):
            ray.kill(seat.actor)
        return tuple(task for _, task in seat.awaited if task is not None)

    @property
    def free(self) -> Sequence[int]:
        """Who may be given another task, those with the least to do first."""
        load = {
            number: len(seat.awaited)
            for number, seat in self.seats.items()
            if seat.ready and len(seat.awaited) < WINDOW
        }
        return sorted(load, key=lambda number: (load[number], number))

    @property
    def actors(self) -> int:
        """How many places have an actor."""
        return len(self.seats)

    @property
    def has_tasks(self) -> bool:
        """Whether any actor has been given a task that it has not ended."""
        return any(task is not None for seat in self.seats.values() for _, task in seat.awaited)

    @property
    def any_ready(self) -> bool:
        """Whether any actor has loaded everything."""
        return any(seat.ready for seat in self.seats.values())

    def ready_ones(self, seconds: float = PATIENCE) -> Iterator[int]:
        """Yield who has something to say: as soon as there is one, nobody after a while."""
        # An actor does one after the other: of each only what is first can be there.
        first = {n: seat.awaited[0] for n, seat in self.seats.items() if seat.awaited}
        waited = [awaited for awaited, _ in first.values()]
        if not waited:
            return
        ready, _ = ray.wait(waited, num_returns=1, timeout=seconds)
        # And whoever else has something by now.
        ready, _ = ray.wait(waited, num_returns=len(waited), timeout=0) if ready else (ready, ())
        for number, (awaited, _) in first.items():
            if any(awaited is one for one in ready):
                yield number

    def said_by(self, number: int, *, streamed: bool = False) -> Any:
        """Return what an actor says, of several things that it says the next; or `Died`."""
        seat = self.seats[number]
        awaited = seat.awaited[0][0]
        try:
            return ray.get(next(awaited) if streamed else awaited)
        except RayTaskError:
            # A fault of ours: it is shown whole.
            raise
        except (RayError, StopIteration) as error:
            return Died(self.end(number), _in_a_line(error), seat.ready)


def _in_a_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # What ended it stands in the last line, where Ray knows it.
    return lines[-1] if lines else type(error).__name__


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
