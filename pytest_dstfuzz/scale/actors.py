"""Actors on Ray: their places, their blocks or tasks, and what each of them does."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError

from pytest_dstfuzz import Campaign
from pytest_dstfuzz.config import Settings, settings_json
from pytest_dstfuzz.errors import DstFuzzError, UserError
from pytest_dstfuzz.scale.ray import (
    RayOptions,
    Room,
    connected,
    left_of,
    refuse_what_cannot_be_kept,
    refuse_without_room,
    shares_of,
    why_ended,
)
from pytest_dstfuzz.scale.results import (
    BlockRunner,
    EncodedResults,
    PlannedDialogue,
    Progress,
    ResultFolder,
    RunManifest,
    blocks_of,
    manifest_of,
    opened,
)

if TYPE_CHECKING:
    pass


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


#: How often a block may end the actor that runs it, and how often actors may end before they have
#: loaded anything, one after the other.
MOST_DEATHS: Final = 3
#: Stands for loading where blocks have numbers.
_LOADING: Final = -1
#: Seconds without an actor after which it is looked whether there is room for one at all.
_LONGEST: Final = 60.0


def run_on_ray(
    settings: Settings, options: RayOptions, path: Path, progress: Progress, command: str = ""
) -> ResultFolder:
    """Run a campaign, or what is missing of it, into a folder, by actors of Ray.

    Results are those of `scale.results.run_into`, whatever the number of actors. An actor that
    dies is replaced, and its block asked again.

    Raises:
        UserError: the folder is of another run, the tracker cannot be tested, there is no room for
            the actors, or they die again and again. What was done is kept.
    """
    refuse_what_cannot_be_kept(settings)
    with connected(options) as room, ActorPool(room) as pool:
        return _RayRun(settings, pool, path, progress, command).to_its_end()


class _RayRun:
    """One call: what is to be done, what is in flight, and what came back."""

    def __init__(
        self, settings: Settings, pool: ActorPool, path: Path, progress: Progress, command: str
    ) -> None:
        self._settings, self._pool, self._path = settings, pool, path
        self._progress, self._command = progress, command
        self._shares = shares_of(settings, pool.room.actors)
        self._folder: ResultFolder | None = None
        self._done = 0
        self._plan: Plan | None = None
        #: Who was asked for the plan.
        self._planner: int | None = None
        #: Numbers of blocks that nobody has, those to be asked next first.
        self._waiting: deque[int] = deque()
        #: Of blocks; at -1 of actors that had not loaded anything.
        self._deaths: Counter[int] = Counter()
        #: Contexts asked for, by place in the pool: of who is there, and of those before.
        self._asked: Counter[int] = Counter()
        self._asked_before: Counter[int] = Counter()
        #: Why actors asked for nothing more.
        self._reasons: list[str] = []
        #: When the first actor had loaded everything, and when one was last heard.
        self._started = self._heard = time.monotonic()

    def to_its_end(self) -> ResultFolder:
        """Run what is missing; what is done is kept whatever happens."""
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
        assert self._folder is not None  # noqa: S101 - an actor has said what is run
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
        """Let those ask that have little to do."""
        if self._folder is not None and self._plan is None and self._planner is None:
            self._planner = next(iter(self._pool.free), None)
            if self._planner is not None:
                self._pool.ask_plan(self._planner)
        while self._waiting and (free := self._pool.free):
            self._pool.give(free[0], self._task(self._waiting.popleft()))

    def _task(self, number: int) -> Task:
        assert self._plan is not None  # noqa: S101 - blocks have numbers in it
        folder, places = self._kept, self._plan.blocks[number]
        names = folder.manifest.relations
        done = ((place, name) for place in places for name in names if folder.has(place, name))
        return Task(number, places, frozenset(done))

    def _missing(self, number: int) -> bool:
        task = self._task(number)
        return len(task.done) < len(task.places) * len(self._kept.manifest.relations)

    def _listen(self) -> None:
        """Take what actors say, once there is something."""
        for number, said in self._pool.heard():
            self._heard = time.monotonic()
            self._take(number, said)
        if not self._pool.any_ready and time.monotonic() - self._heard > _LONGEST:
            # Nodes have gone, and those that are left will never do.
            refuse_without_room(self._pool.room)

    def _take(self, number: int, said: Said) -> None:
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
        """Open the folder with what the first actor says; all others must say the same."""
        # Their budget is a share of that of the run.
        manifest = replace(manifest, settings=settings_json(self._settings), command=self._command)
        if self._folder is None:
            self._started = time.monotonic()
            self._folder = opened(self._path, manifest)
            self._done = len(self._folder)
            if self._folder.complete:
                self._plan = Plan((), ())
        elif found := self._folder.manifest.differing(manifest):
            told = "; ".join(
                f"{name}: {one!r} and {other!r}" for name, (one, other) in found.items()
            )
            raise UserError(f"two nodes would run something else each: {told}")

    def _found(self, number: int, said: SentResults) -> None:
        folder = self._kept
        for results in said.results:
            if not folder.has(results.place, results.relation):
                folder.append(results)
                self._done += results.count
        self._asked[number] = said.asked
        if said.results:
            self._progress(self._done, folder.manifest.planned)
        if said.ended:
            self._reasons.append(said.ended)
            self._again(self._pool.end(number))
            if said.last is not None and self._missing(said.last):
                self._waiting.appendleft(said.last)

    def _again(self, tasks: Sequence[Task]) -> None:
        self._waiting.extendleft(task.number for task in reversed(tasks))

    def _died(self, number: int, died: Died[Task]) -> None:
        """Put another actor in the place of one, and have asked again what it had been given."""
        self._again(died.tasks)
        if self._planner == number and self._plan is None:
            self._planner = None
        # The first was being run. One that had loaded everything and had nothing to do is replaced
        # without counting: nothing of the run ended it.
        block = died.tasks[0].number if died.tasks else _LOADING
        if died.tasks or not died.loaded:
            self._deaths[block] += 1
        if self._deaths[block] >= MOST_DEATHS:
            raise UserError(self._death_notice(block, died.reason))
        self._asked_before[number] += self._asked.pop(number, 0)
        left = left_of(self._shares[number], self._asked_before[number])
        # Where all else is done or in flight, nobody is needed in its place.
        if left is not None and (self._waiting or self._plan is None):
            spent = time.monotonic() - self._started if self._folder is not None else 0.0
            self._pool.begin(number, left, spent)

    def _death_notice(self, block: int, reason: str) -> str:
        if block == _LOADING:
            return (
                f"{MOST_DEATHS} actors ended one after the other before they had loaded tracker "
                f"and dialogues, the last time: {reason}"
            )
        assert self._plan is not None  # noqa: S101 - blocks have numbers in it
        return (
            f"{MOST_DEATHS} actors ended while they ran the same block, which begins with the "
            f"dialogue {self._plan.names[block]!r}, the last time: {reason}. What is done is in "
            f"{self._path}"
        )

    def _take_what_came(self) -> None:
        """Keep results that are there when something ends the run."""
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
    """What does tasks in an actor."""

    @property
    def about(self) -> Mapping[str, str]:
        """What must be the same where the run was started and in all actors."""

    def play(self, task: Any, /) -> Any:
        """Do a task."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """An actor has loaded everything."""

    about: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Done:
    """A task is done."""

    result: Any


class RoundWorker:
    """Does tasks with what it makes once; this is what an actor is.

    Args:
        make: of what does the tasks.
        surroundings: of the driver.
    """

    def __init__(self, make: Callable[[], Playing], surroundings: Surroundings) -> None:
        self._make, self._surroundings = make, surroundings
        self._playing: Playing | None = None

    def prepare(self) -> Loaded | Refusal:
        """Load everything."""
        try:
            self._surroundings.enter()
            self._playing = self._make()
            return Loaded(dict(self._playing.about))
        except DstFuzzError as error:
            return Refusal.of(error)

    def play(self, task: Any) -> Done | Refusal:
        """Do a task."""
        assert self._playing is not None  # noqa: S101 - `prepare` is asked first
        try:
            return Done(self._playing.play(task))
        except DstFuzzError as error:
            return Refusal.of(error)


@contextmanager
def rounds_on_ray(options: RayOptions) -> Iterator[RayRounds]:
    """Begin Ray or join a cluster; who does the rounds is there until the end.

    Raises:
        UserError: see `connected`.
    """
    with connected(options) as room, Seats[int](room, RoundWorker) as seats:
        yield RayRounds(seats)


class RayRounds:
    """Gives the tasks of a round to actors; one that dies is replaced, and its tasks done again."""

    def __init__(self, seats: Seats[int]) -> None:
        self._seats = seats
        self._make: Callable[[], Playing] | None = None
        self._surroundings = Surroundings.here()
        self._about: Mapping[str, str] = {}
        #: Of tasks of this round, by their places; at -1 of actors that had not loaded anything.
        self._deaths: Counter[int] = Counter()

    def begin(self, make: Callable[[], Playing], about: Mapping[str, str]) -> None:
        """Let actors load what they need; the first round waits for them.

        What they say of themselves must be as ``about`` has it.
        """
        self._make, self._about = make, about
        for number in range(self._seats.room.actors):
            self._order(number)

    def played(self, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yield each task's place and what came of it, as they come.

        Raises:
            UserError: actors die again and again, or differ, or a task ended with that.
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
                if isinstance(said, Done):
                    left -= 1
                    yield self._ended(number), said.result
                elif isinstance(said, Loaded):
                    self._loaded(number, said)
                elif isinstance(said, Refusal):
                    raise UserError(said.message)
                else:
                    waiting.extendleft(reversed(said.tasks))
                    self._died(number, said)
            if not heard and not self._seats.any_ready:
                # Nodes have gone, and those that are left will never do.
                refuse_without_room(self._seats.room)

    def _order(self, number: int) -> None:
        self._seats.order(number, self._make, self._surroundings)

    def _give(self, number: int, place: int, task: Any) -> None:
        seat = self._seats.seats[number]
        seat.awaited.append((seat.actor.play.remote(task), place))

    def _ended(self, number: int) -> int:
        """Return the place of the task that an actor has ended."""
        _, place = self._seats.seats[number].awaited.pop(0)
        assert place is not None  # noqa: S101 - it was given a task
        return place

    def _loaded(self, number: int, said: Loaded) -> None:
        seat = self._seats.seats[number]
        seat.ready = True
        del seat.awaited[0]
        self._deaths[_LOADING] = 0
        for name, value in self._about.items():
            if said.about.get(name) != value:
                other = said.about.get(name)
                raise UserError(
                    f"two nodes differ in the {name}: {value!r} where the run was started, and "
                    f"{other!r}"
                )

    def _died(self, number: int, died: Died[int]) -> None:
        """Put another actor in the place of one."""
        if died.tasks or not died.loaded:
            # The first was being done. One that had nothing to do was ended by nothing of ours.
            place = died.tasks[0] if died.tasks else _LOADING
            self._deaths[place] += 1
            if self._deaths[place] >= MOST_DEATHS:
                doing = "before they had loaded the tracker"
                if place != _LOADING:
                    doing = "while they played the same dialogues"
                raise UserError(
                    f"{MOST_DEATHS} actors ended one after the other {doing}, the last time: "
                    f"{died.reason}"
                )
        self._order(number)
