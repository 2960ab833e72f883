"""Ray actors of a campaign: starting them, replacing them, and giving them work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Self, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.scale.manifest import RunManifest
from pytest_dstfuzz.scale.ray import Room
from pytest_dstfuzz.scale.worker import BlockWorker, Plan, Refusal, SentResults, Surroundings, Task

#: Maximum number of unfinished tasks of an actor: the current one, and one more so that the actor
#: does not wait for the driver.
WINDOW: Final = 2
#: Maximum number of seconds to wait for a message.
PATIENCE: Final = 5.0

#: The task of an actor.
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Died(Generic[T]):
    """An actor died. Its unfinished tasks are listed in order."""

    tasks: tuple[T, ...]
    #: Ray's explanation, in one line.
    reason: str
    #: Whether the actor had finished loading.
    loaded: bool


@dataclass(slots=True)
class WorkerSlot(Generic[T]):
    """A slot for an actor, and the actor that runs there."""

    actor: Any
    #: Pending object references in order, each with its task if there is one.
    awaited: list[tuple[Any, T | None]] = field(default_factory=list)
    ready: bool = False


class WorkerSlots(Generic[T]):
    """Ray actors of one class, as many as fit into the cluster, in slots numbered from 0."""

    def __init__(self, room: Room, worker: type) -> None:
        self.room = room
        # Ray has no types for remote classes.
        made: Any = ray.remote(worker)
        self._class = made.options(
            num_cpus=room.cpus, num_gpus=room.gpus, max_restarts=0, max_task_retries=0
        )
        self.seats: dict[int, WorkerSlot[T]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for number in list(self.seats):
            self.end(number)

    def order(self, number: int, *given: object) -> None:
        """Start an actor in a slot. The actor first runs its method ``prepare``."""
        actor: Any = self._class.remote(*given)
        self.seats[number] = WorkerSlot(actor, [(actor.prepare.remote(), None)])

    def end(self, number: int) -> tuple[T, ...]:
        """Stop the actor in a slot. Return its unfinished tasks."""
        seat = self.seats.pop(number)
        with suppress(RayError, ValueError):
            ray.kill(seat.actor)
        return tuple(task for _, task in seat.awaited if task is not None)

    @property
    def free(self) -> Sequence[int]:
        """The slots whose actor can take another task, starting with the fewest tasks."""
        load = {
            number: len(seat.awaited)
            for number, seat in self.seats.items()
            if seat.ready and len(seat.awaited) < WINDOW
        }
        return sorted(load, key=lambda number: (load[number], number))

    @property
    def actors(self) -> int:
        """The number of slots that have an actor."""
        return len(self.seats)

    @property
    def has_tasks(self) -> bool:
        """Whether an actor has an unfinished task."""
        return any(task is not None for seat in self.seats.values() for _, task in seat.awaited)

    @property
    def any_ready(self) -> bool:
        """Whether an actor has finished loading."""
        return any(seat.ready for seat in self.seats.values())

    def ready_ones(self, seconds: float = PATIENCE) -> Iterator[int]:
        """Yield the slots whose actor has sent a message."""
        # An actor works in order, so only its first pending reference can be ready.
        first = {n: seat.awaited[0] for n, seat in self.seats.items() if seat.awaited}
        waited = [awaited for awaited, _ in first.values()]
        if not waited:
            return
        ready, _ = ray.wait(waited, num_returns=1, timeout=seconds)
        # Also collect all others that are ready by now.
        ready, _ = ray.wait(waited, num_returns=len(waited), timeout=0) if ready else (ready, ())
        for number, (awaited, _) in first.items():
            if any(awaited is one for one in ready):
                yield number

    def said_by(self, number: int, *, streamed: bool = False) -> Any:
        """Return an actor's next message, or `Died`. ``streamed``: read from its stream."""
        seat = self.seats[number]
        awaited = seat.awaited[0][0]
        try:
            return ray.get(next(awaited) if streamed else awaited)
        except RayTaskError:
            # A bug: raise it with its traceback.
            raise
        except (RayError, StopIteration) as error:
            return Died(self.end(number), _in_a_line(error), seat.ready)


def _in_a_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # Ray states the cause in the last line, if it knows the cause. Messages go on after it.
    return lines[-1].rstrip(".") if lines else type(error).__name__


#: The messages of an actor.
ActorMessage = RunManifest | Plan | SentResults | Refusal | Died[Task]


class ActorPool(WorkerSlots[Task]):
    """Ray actors that run blocks of dialogues. Their slots are numbered from 0."""

    def __init__(self, room: Room) -> None:
        super().__init__(room, BlockWorker)
        self._surroundings = Surroundings.here()

    def begin(self, number: int, settings: Settings, spent: float = 0.0) -> None:
        """Start an actor in a slot. It sends its manifest when it has finished loading."""
        self.order(number, settings, self._surroundings, spent)

    def ask_plan(self, number: int) -> None:
        """Ask an actor for the division of the dialogues into blocks."""
        seat = self.seats[number]
        seat.awaited.append((seat.actor.plan.remote(), None))

    def give(self, number: int, task: Task) -> None:
        """Give a block to an actor. It runs the block after its other tasks."""
        seat = self.seats[number]
        run = seat.actor.run.options(num_returns="streaming")
        seat.awaited.append((run.remote(task), task))

    def heard(self, seconds: float = PATIENCE) -> Iterator[tuple[int, ActorMessage]]:
        """Yield one message of each actor that has sent any.

        Wait at most ``seconds`` for the first.
        """
        for number in self.ready_ones(seconds):
            yield number, self._listen(number)

    def _listen(self, number: int) -> ActorMessage:
        seat = self.seats[number]
        said: ActorMessage = self.said_by(number, streamed=seat.awaited[0][1] is not None)
        if isinstance(said, Died):
            return said
        if not isinstance(said, SentResults) or said.last is not None:
            del seat.awaited[0]
        seat.ready = seat.ready or isinstance(said, RunManifest)
        return said
