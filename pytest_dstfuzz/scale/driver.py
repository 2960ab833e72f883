"""Runs campaigns and training rounds with many Ray actors. Imports Ray only for that."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from pytest_dstfuzz.config import Settings, settings_json
from pytest_dstfuzz.errors import DstFuzzError, UserError
from pytest_dstfuzz.scale.manifest import RunManifest, list_differences
from pytest_dstfuzz.scale.ray import (
    RayOptions,
    connect_to_ray,
    left_of,
    refuse_what_cannot_be_kept,
    refuse_without_room,
    shares_of,
    why_ended,
)
from pytest_dstfuzz.scale.results import ResultFolder, closed_on_error, open_folder
from pytest_dstfuzz.scale.runs import Progress
from pytest_dstfuzz.scale.worker import Plan, Refusal, SentResults, Surroundings, Task

if TYPE_CHECKING:
    from pytest_dstfuzz.scale.actors import ActorMessage, ActorPool, Died, WorkerSlots


#: Maximum number of actors that one block may kill, and of successive actors that may die before
#: they finish loading.
MOST_DEATHS: Final = 3
#: The key for deaths while loading, instead of a block number.
_LOADING: Final = -1
#: Seconds without a message or a loaded actor, after which the room on the cluster is checked.
_LONGEST: Final = 60.0


def run_on_ray(
    settings: Settings, options: RayOptions, path: Path, progress: Progress, command: str = ""
) -> ResultFolder:
    """Run a campaign with Ray actors, and write its results into a folder.

    If the folder has part of the results, only the missing part runs. The results equal those of
    `results.run_into`, for any number of actors. If an actor dies, it is replaced, and its block
    runs again.

    Raises:
        UserError: the folder belongs to another run, the tracker fails its tests, no node has room
            for the actors, or the actors die repeatedly. Finished results are kept.
    """
    refuse_what_cannot_be_kept(settings)
    with connect_to_ray(options) as room:
        from pytest_dstfuzz.scale.actors import ActorPool  # noqa: PLC0415 - imports Ray

        with ActorPool(room) as pool:
            return _RayRun(settings, pool, path, progress, command).to_its_end()


class _RayRun:
    """One call of `run_on_ray`: the waiting blocks, the running blocks, and the results."""

    def __init__(
        self, settings: Settings, pool: ActorPool, path: Path, progress: Progress, command: str
    ) -> None:
        self._settings, self._pool, self._path = settings, pool, path
        self._progress, self._command = progress, command
        self._shares = shares_of(settings, pool.room.actors)
        self._folder: ResultFolder | None = None
        self._plan: Plan | None = None
        #: The place that was asked for the plan.
        self._planner: int | None = None
        #: Numbers of blocks without an actor, in order.
        self._waiting: deque[int] = deque()
        #: Block number -> deaths; -1 counts actors that died while loading.
        self._deaths: Counter[int] = Counter()
        #: Contexts asked, by place in the pool: of the current actor, and of its predecessors.
        self._asked: Counter[int] = Counter()
        self._asked_before: Counter[int] = Counter()
        #: Why actors stopped asking.
        self._reasons: list[str] = []
        #: Time when the first actor had finished loading, and time of the last message.
        self._started = self._heard = time.monotonic()

    def to_its_end(self) -> ResultFolder:
        """Run the missing part of the campaign. Finished results are always kept."""
        ended = "interrupted"
        try:
            for number, settings in enumerate(self._shares):
                self._pool.begin(number, settings)
            while not self._finished:
                self._give()
                self._listen()
            ended = "" if self._kept.complete else self._why_ended()
        except BaseException:
            self._take_what_came()
            raise
        finally:
            if self._folder is not None:
                asked, seconds = self._all_asked, time.monotonic() - self._started
                manifest = self._folder.manifest
                self._folder.keep(manifest.gone_on(asked=asked, seconds=seconds, ended=ended))
                self._folder.close()
        return self._kept

    @property
    def _kept(self) -> ResultFolder:
        assert self._folder is not None  # noqa: S101 - opened with the first manifest
        return self._folder

    @property
    def _finished(self) -> bool:
        if self._plan is None or self._pool.has_tasks:
            return False
        return not self._waiting or not self._pool.actors

    @property
    def _all_asked(self) -> int:
        return self._asked.total() + self._asked_before.total()

    def _why_ended(self) -> str:
        return why_ended(self._settings, self._reasons, self._all_asked)

    def _give(self) -> None:
        """Give tasks to the actors that can take more."""
        if self._folder is not None and self._plan is None and self._planner is None:
            self._planner = next(iter(self._pool.free), None)
            if self._planner is not None:
                self._pool.ask_plan(self._planner)
        while self._waiting and (free := self._pool.free):
            self._pool.give(free[0], self._task(self._waiting.popleft()))

    def _task(self, number: int) -> Task:
        assert self._plan is not None  # noqa: S101 - block numbers come from it
        folder, places = self._kept, self._plan.blocks[number]
        names = folder.manifest.relations
        done = ((place, name) for place in places for name in names if folder.has(place, name))
        return Task(number, places, frozenset(done))

    def _missing(self, number: int) -> bool:
        task = self._task(number)
        return len(task.done) < len(task.places) * len(self._kept.manifest.relations)

    def _listen(self) -> None:
        """Wait for messages of the actors, and handle them."""
        for number, said in self._pool.heard():
            self._heard = time.monotonic()
            self._take(number, said)
        if not self._pool.any_ready and time.monotonic() - self._heard > _LONGEST:
            # Nodes are gone. Check whether an actor can ever start on the others.
            refuse_without_room(self._pool.room)

    def _take(self, number: int, said: ActorMessage) -> None:
        match said:
            case Refusal():
                raise UserError(said.message)
            case RunManifest():
                self._deaths[_LOADING] = 0
                self._begun(said)
            case Plan():
                self._plan = said
                self._waiting.extend(filter(self._missing, range(len(said.blocks))))
            case SentResults():
                self._found(number, said)
            case _:
                self._died(number, said)

    def _begun(self, manifest: RunManifest) -> None:
        """Open the folder when the first actor sends its manifest.

        All other actors must send the same manifest.
        """
        # The budget of an actor is only a share of the run's budget.
        manifest = replace(manifest, settings=settings_json(self._settings), command=self._command)
        if self._folder is None:
            self._started = time.monotonic()
            folder = open_folder(self._path, manifest)
            with closed_on_error(folder):
                self._refuse_unlike(folder, manifest)
            self._folder = folder
            if self._folder.finished:
                self._plan = Plan((), ())
        elif found := self._folder.manifest.differing(manifest):
            told = list_differences(
                found, lambda name, one, other: f"{name}: {one!r} and {other!r}"
            )
            raise UserError(f"two nodes would run different campaigns: {told}")
        else:
            self._refuse_unlike(self._folder, manifest)

    def _refuse_unlike(self, folder: ResultFolder, manifest: RunManifest) -> None:
        """Raise an error if an actor's bot is not the one that wrote the folder, by its answers."""
        if problem := folder.manifest.unlike_answers(manifest):
            raise UserError(
                f"{self._path} has the results of another bot than an actor has: {problem}"
            )

    def _found(self, number: int, said: SentResults) -> None:
        folder = self._kept
        for results in said.results:
            if not folder.has(results.place, results.relation):
                folder.append(results)
        self._asked[number] = said.asked
        if said.results:
            self._progress(len(folder), folder.manifest.planned)
        if said.ended:
            self._reasons.append(said.ended)
            self._again(self._pool.end(number))
            if said.last is not None and self._missing(said.last):
                self._waiting.appendleft(said.last)

    def _again(self, tasks: Sequence[Task]) -> None:
        self._waiting.extendleft(task.number for task in reversed(tasks))

    def _died(self, number: int, died: Died[Task]) -> None:
        """Replace an actor that died, and queue its tasks again."""
        self._again(died.tasks)
        if self._planner == number and self._plan is None:
            self._planner = None
        # The first task was running. If a loaded actor without tasks dies, do not count it: the
        # run is not the cause.
        block = died.tasks[0].number if died.tasks else _LOADING
        if died.tasks or not died.loaded:
            self._deaths[block] += 1
        if self._deaths[block] >= MOST_DEATHS:
            raise UserError(self._death_notice(block, died.reason))
        self._asked_before[number] += self._asked.pop(number, 0)
        left = left_of(self._shares[number], self._asked_before[number])
        # If all other blocks are finished or running, no replacement is needed.
        if left is not None and (self._waiting or self._plan is None):
            spent = time.monotonic() - self._started if self._folder is not None else 0.0
            self._pool.begin(number, left, spent)

    def _death_notice(self, block: int, reason: str) -> str:
        if block == _LOADING:
            return (
                f"{MOST_DEATHS} actors ended in succession while they loaded the tracker and the "
                f"dialogues or tested the tracker, the last one because: {reason}. The same "
                "command without --ray shows whether the tracker ends its process"
            )
        assert self._plan is not None  # noqa: S101 - block numbers come from it
        return (
            f"{MOST_DEATHS} actors ended while they ran the same block, which begins with the "
            f"dialogue {self._plan.names[block]!r}, the last one because: {reason}. Finished "
            f"results are in {self._path}"
        )

    def _take_what_came(self) -> None:
        """When an error ends the run, store the results that have already arrived."""
        if self._folder is None:
            return
        came = True
        while came:
            came = False
            for number, said in self._pool.heard(0):
                if isinstance(said, SentResults):
                    came = True
                    self._found(number, said)


class Playing(Protocol):
    """An object that performs tasks in an actor."""

    @property
    def about(self) -> Mapping[str, str]:
        """Properties that the driver's process and all actors must share."""

    def play(self, task: Any, /) -> Any:
        """Perform a task, and return its result."""


@dataclass(frozen=True, slots=True)
class ActorReady:
    """An actor's message that it has finished loading."""

    about: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FinishedTask:
    """An actor's message with the result of a task."""

    result: Any


class RoundWorker:
    """The class of Ray actors for the tasks of training rounds.

    Args:
        make: builds the `Playing` object that performs the tasks. It is called once.
        surroundings: the environment of the driver's process.
    """

    def __init__(self, make: Callable[[], Playing], surroundings: Surroundings) -> None:
        self._make, self._surroundings = make, surroundings
        self._playing: Playing | None = None

    def prepare(self) -> ActorReady | Refusal:
        """Build the object that performs the tasks."""
        try:
            self._surroundings.enter()
            self._playing = self._make()
            return ActorReady(dict(self._playing.about))
        except DstFuzzError as error:
            return Refusal.of(error)

    def play(self, task: Any) -> FinishedTask | Refusal:
        """Perform a task, and return its result, or a refusal if it raised a user error."""
        assert self._playing is not None  # noqa: S101 - `prepare` is called first
        try:
            return FinishedTask(self._playing.play(task))
        except DstFuzzError as error:
            return Refusal.of(error)


@contextmanager
def rounds_on_ray(options: RayOptions) -> Iterator[RayRounds]:
    """Start Ray or join a cluster. The actors live until the end of the context.

    Raises:
        UserError: see `connect_to_ray`.
    """
    with connect_to_ray(options) as room:
        from pytest_dstfuzz.scale.actors import WorkerSlots  # noqa: PLC0415 - imports Ray

        with WorkerSlots[int](room, RoundWorker) as seats:
            yield RayRounds(seats)


class RayRounds:
    """Distributes the tasks of a round. Dead actors are replaced, and their tasks run again."""

    def __init__(self, seats: WorkerSlots[int]) -> None:
        self._seats = seats
        self._make: Callable[[], Playing] | None = None
        self._surroundings = Surroundings.here()
        self._about: Mapping[str, str] = {}
        #: Task index in this round -> deaths; -1 counts actors that died while loading.
        self._deaths: Counter[int] = Counter()

    def begin(self, make: Callable[[], Playing], about: Mapping[str, str]) -> None:
        """Start the actors. The first round waits until they have finished loading.

        The properties of each actor must equal ``about``.
        """
        self._make, self._about = make, about
        for number in range(self._seats.room.actors):
            self._order(number)

    def played(self, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yield the index and the result of each task as it finishes.

        Raises:
            UserError: actors die repeatedly, an actor has other properties than the driver, or a
                task raised an error.
        """
        waiting = deque(range(len(tasks)))
        left = len(tasks)
        self._deaths = Counter({_LOADING: self._deaths[_LOADING]})
        while left:
            while waiting and (free := self._seats.free):
                place = waiting.popleft()
                self._give(free[0], place, tasks[place])
            heard = False
            for number in self._seats.ready_ones():
                heard, said = True, self._seats.said_by(number)
                if isinstance(said, FinishedTask):
                    left -= 1
                    yield self._ended(number), said.result
                elif isinstance(said, ActorReady):
                    self._loaded(number, said)
                elif isinstance(said, Refusal):
                    raise UserError(said.message)
                else:
                    waiting.extendleft(reversed(said.tasks))
                    self._died(number, said)
            if not heard and not self._seats.any_ready:
                # Nodes are gone. Check whether an actor can ever start on the others.
                refuse_without_room(self._seats.room)

    def _order(self, number: int) -> None:
        self._seats.order(number, self._make, self._surroundings)

    def _give(self, number: int, place: int, task: Any) -> None:
        seat = self._seats.seats[number]
        seat.awaited.append((seat.actor.play.remote(task), place))

    def _ended(self, number: int) -> int:
        """Handle an actor's message. Return the index of the task that it has finished."""
        _, place = self._seats.seats[number].awaited.pop(0)
        assert place is not None  # noqa: S101 - the actor had a task
        return place

    def _loaded(self, number: int, said: ActorReady) -> None:
        seat = self._seats.seats[number]
        seat.ready = True
        del seat.awaited[0]
        self._deaths[_LOADING] = 0
        for name, value in self._about.items():
            if said.about.get(name) != value:
                other = said.about.get(name)
                raise UserError(
                    f"two nodes differ in the {name}: {value!r} on the node that started the run, "
                    f"{other!r} on another"
                )

    def _died(self, number: int, died: Died[int]) -> None:
        """Replace an actor that died, and queue its tasks again."""
        if died.tasks or not died.loaded:
            # The first task was running. If an actor without tasks dies, the run is not the cause.
            place = died.tasks[0] if died.tasks else _LOADING
            self._deaths[place] += 1
            if self._deaths[place] >= MOST_DEATHS:
                doing = "before they had loaded the tracker"
                if place != _LOADING:
                    doing = "while they played the same dialogues"
                raise UserError(
                    f"{MOST_DEATHS} actors ended in succession {doing}, the last one because: "
                    f"{died.reason}"
                )
        self._order(number)
