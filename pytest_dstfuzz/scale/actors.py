"""Places for actors of Ray, and the actors of a campaign: begun, given blocks, replaced."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, Self, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError

from pytest_dstfuzz import Campaign
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.errors import DstFuzzError, UserError
from pytest_dstfuzz.scale.ray import Room
from pytest_dstfuzz.scale.results import (
    BlockRunner,
    EncodedResults,
    PlannedDialogue,
    RunManifest,
    blocks_of,
    manifest_of,
)

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


#: Seconds between two times that what is done of a block is sent.
_PAUSE: Final = 0.5
#: Variables of the environment that go to every node: what is told to this package alone.
_VARIABLES: Final = "DSTFUZZ_"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where the driver was started, so that actors find the same files and modules."""

    folder: str
    #: Where modules are looked for.
    search_path: tuple[str, ...]
    #: Of the environment; it may hold credentials.
    variables: Mapping[str, str] = field(repr=False)

    @classmethod
    def here(cls) -> Surroundings:
        """Return those of this process."""
        variables = {k: v for k, v in os.environ.items() if k.startswith(_VARIABLES)}
        return cls(str(Path.cwd()), tuple(filter(None, sys.path)), variables)

    def enter(self) -> None:
        """Make them those of this process.

        Raises:
            UserError: there is no such folder.
        """
        try:
            os.chdir(self.folder)
        except OSError as error:
            raise UserError(
                f"the folder {self.folder} is not on the node {platform.node()}: start in one that "
                f"all nodes share ({error.strerror})"
            ) from None
        sys.path += [path for path in self.search_path if path not in sys.path]
        os.environ.update(self.variables)


@dataclass(frozen=True, slots=True)
class Task:
    """A block, or what is missing of it."""

    number: int
    places: Sequence[int]
    #: Dialogues of it that are done, by place and relation.
    done: frozenset[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class SentResults:
    """What an actor sends: results of some dialogues, and how far it is."""

    results: tuple[EncodedResults, ...]
    #: Contexts that the actor asked for so far.
    asked: int
    #: Number of a block of which it is the last that is sent.
    last: int | None = None
    #: Why it asks for nothing more; ``""`` = it may.
    ended: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A mistake of the user that shows in an actor."""

    message: str

    @classmethod
    def of(cls, error: DstFuzzError) -> Refusal:
        """Return what the driver raises again."""
        return cls(str(error.args[0]) if error.args else str(error))


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run: the places of each block, and the id of its first dialogue."""

    blocks: Sequence[Sequence[int]]
    names: Sequence[str]


class BlockWorker:
    """Runs blocks of one campaign; tracker and data are loaded once.

    Args:
        settings: of the campaign; of its budget what this actor may spend.
        surroundings: of the driver.
        spent: seconds of the budget that were over when the actor was ordered.
    """

    def __init__(self, settings: Settings, surroundings: Surroundings, spent: float = 0.0) -> None:
        self._settings, self._surroundings = settings, surroundings
        self._spent, self._ordered = spent, time.monotonic()
        self._campaign: Campaign | None = None
        self._runner: BlockRunner | None = None

    def prepare(self) -> RunManifest | Refusal:
        """Load tracker and data, and say what is run."""
        try:
            self._surroundings.enter()
            settings = self._settings
            self._campaign = Campaign(settings.tracker.model or "", settings=settings)
            return manifest_of(self._campaign)
        except DstFuzzError as error:
            return Refusal.of(error)

    def plan(self) -> Plan:
        """Return all blocks of the run."""
        campaign = self._made
        blocks, names = [], []
        for block in blocks_of(campaign.drawn, shard=campaign.settings.data.shard):
            blocks.append([one.place for one in block])
            names.append(block[0].planned[0].id)
        return Plan(blocks, names)

    def run(self, task: Task) -> Iterator[SentResults | Refusal]:
        """Run what is missing of a block; what is done is sent now and then."""
        try:
            runner = self._begun()
        except DstFuzzError as error:
            yield Refusal.of(error)
            return
        drawn = self._made.drawn
        block = tuple(PlannedDialogue(place, drawn[place]) for place in task.places)
        chunk: list[EncodedResults] = []
        sent = time.monotonic()
        with self._in_time():
            try:
                for found in runner.found(block, lambda *one: one in task.done):
                    chunk.append(EncodedResults.of(found))
                    if time.monotonic() - sent >= _PAUSE:
                        yield SentResults(tuple(chunk), runner.asked)
                        chunk, sent = [], time.monotonic()
            except DstFuzzError as error:
                yield SentResults(tuple(chunk), runner.asked)
                yield Refusal.of(error)
            except Exception:
                yield SentResults(tuple(chunk), runner.asked)
                raise
            else:
                yield SentResults(tuple(chunk), runner.asked, last=task.number, ended=runner.ended)

    @property
    def _made(self) -> Campaign:
        assert self._campaign is not None  # noqa: S101 - `prepare` is asked first
        return self._campaign

    def _begun(self) -> BlockRunner:
        """Return what asks the tracker, after the preflight of the first time."""
        if self._runner is None:
            # That it answers is known from the preflight; which blocks come first to this actor
            # must not decide whether it is asked on.
            self._made.predictor.never_give_up()
            self._runner = BlockRunner(self._made)
        return self._runner

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """End with the budget of the run, where this actor began in the middle of it."""
        seconds = self._settings.budget.max_seconds
        if seconds is None or not self._spent:
            yield
            return
        left = seconds - self._spent - (time.monotonic() - self._ordered)
        with self._made.predictor.budget.deadline.within(
            left, f"the budget of {seconds:g} seconds"
        ):
            yield


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
