"""Rounds of tasks that several actors do: all of a round are done before the next is begun.

What the tasks are is for who gives them: a function makes what does them, in each actor, and both
are sent there. A task must come out the same whoever does it, so that one whose actor dies can be
done again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from pytest_dstfuzz.errors import DstFuzzError, UserError
from pytest_dstfuzz.scale.cluster.driver import MOST_DEATHS
from pytest_dstfuzz.scale.cluster.session import RayOptions, connected, refuse_without_room
from pytest_dstfuzz.scale.cluster.worker import Refusal, Surroundings

if TYPE_CHECKING:
    from pytest_dstfuzz.scale.cluster.seats import Died, Seats

#: Stands for loading where tasks have places.
_LOADING: Final = -1


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
        from pytest_dstfuzz.scale.cluster.seats import Seats  # noqa: PLC0415 - imports Ray, begun now

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
