"""Campaigns and rounds of tasks by many actors; Ray is loaded when they begin."""

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
from pytest_dstfuzz.scale.ray import (
    RayOptions,
    connected,
    left_of,
    refuse_what_cannot_be_kept,
    refuse_without_room,
    shares_of,
    why_ended,
)
from pytest_dstfuzz.scale.results import Progress, ResultFolder, RunManifest, opened
from pytest_dstfuzz.scale.worker import Plan, Refusal, SentResults, Surroundings, Task

if TYPE_CHECKING:
    from pytest_dstfuzz.scale.actors import ActorPool, Died, Said, Seats


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

    Results are those of `results.running.run_into`, whatever the number of actors. An actor that
    dies is replaced, and its block asked again.

    Raises:
        UserError: the folder is of another run, the tracker cannot be tested, there is no room for
            the actors, or they die again and again. What was done is kept.
    """
    refuse_what_cannot_be_kept(settings)
    with connected(options) as room:
        from pytest_dstfuzz.scale.actors import ActorPool  # noqa: PLC0415 - imports Ray, begun now

        with ActorPool(room) as pool:
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
    with connected(options) as room:
        from pytest_dstfuzz.scale.actors import Seats  # noqa: PLC0415 - imports Ray, begun now

        with Seats[int](room, RoundWorker) as seats:
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
