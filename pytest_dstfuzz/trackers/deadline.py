"""When a run has to end: nothing is asked after that, and nobody waits beyond it.

A call of a tracker in this process that does not come back is ended where the system has interval
timers: an exception is raised inside the call, by the handler of ``SIGALRM``. Python runs handlers
in the main thread alone, and between two of its own instructions: a call that hangs in another
thread, on Windows, or inside a library that does not come back to Python, is not ended.
"""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Final


class Deadline:
    """The end of a run, shared by whoever asks and whoever waits for answers.

    Args:
        seconds: from the start; ``None`` = there is no end.
        what: of which the end is told, such as "the budget of 20 seconds".
        spent: seconds that were over before this process began to count.
        clock: monotonic clock in seconds.
    """

    def __init__(
        self,
        seconds: float | None = None,
        what: str = "",
        *,
        spent: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = math.inf if seconds is None else seconds - spent
        self._what = what
        self._clock = clock
        self._started: float | None = None
        #: A closer end for a part of the run, and what it is the end of.
        self._closer: tuple[float, str] | None = None

    def start(self) -> float:
        """Begin to count, unless that was done before; whatever is asked of it begins as well."""
        if self._started is None:
            self._started = self._clock()
        return self._started

    @property
    def left(self) -> float:
        """Seconds until the end, 0 once it is over; ``inf`` where there is none."""
        return max(0.0, self._end()[0] - self._clock())

    @property
    def ended(self) -> str:
        """What is over, such as "the budget of 20 seconds ended"; ``""`` before the end."""
        end, what = self._end()
        return f"{what} ended" if self._clock() >= end else ""

    @contextmanager
    def within(self, seconds: float, what: str) -> Iterator[None]:
        """Let a part of the run have an end of its own, where that is the sooner one."""
        self._closer = self._clock() + seconds, what
        try:
            yield
        finally:
            self._closer = None

    def _end(self) -> tuple[float, str]:
        end = self.start() + self._seconds, self._what
        closer = self._closer
        return end if closer is None or end[0] <= closer[0] else closer


#: Seconds that a call has to come back by itself: who waits for a service ends in time too.
_GRACE: Final = 0.5
#: Seconds until the exception is raised again, where a tracker caught it.
_AGAIN: Final = 0.25


class Overrun(BaseException):
    """The time is over, and the call has not come back.

    Like ``KeyboardInterrupt`` none that ``except Exception`` catches.
    """

    def __init__(self) -> None:
        super().__init__()
        #: Place in the batch -> what was answered before.
        self.answers: Mapping[int, object] = {}


def can_end_calls() -> bool:
    """Whether a call of this thread that hangs can be ended."""
    return sys.platform != "win32" and threading.current_thread() is threading.main_thread()


@contextmanager
def ended_with(deadline: Deadline | None) -> Iterator[None]:
    """End what is done inside by an `Overrun`, soon after a deadline, where that can be.

    Another timer of the process (as of pytest-timeout) goes on afterwards, and where it goes off
    before the deadline, it is left alone.
    """
    if deadline is None or not math.isfinite(deadline.left) or not can_end_calls():
        yield
        return
    assert sys.platform != "win32"  # noqa: S101 - said just now
    seconds = deadline.left + _GRACE
    theirs, began = signal.getitimer(signal.ITIMER_REAL), time.monotonic()
    handler = signal.getsignal(signal.SIGALRM)
    if 0.0 < theirs[0] <= seconds or handler is None:
        yield
        return
    inside = True

    def end(_: int, __: FrameType | None) -> None:
        # A clock of tests may stand still.
        if inside and deadline.left <= 0.0:
            raise Overrun

    signal.signal(signal.SIGALRM, end)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
        try:
            yield
        finally:
            inside = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler)
        if theirs[0]:
            left = theirs[0] - (time.monotonic() - began)
            signal.setitimer(signal.ITIMER_REAL, max(left, 0.001), theirs[1])
