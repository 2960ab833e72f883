"""Ending a call of a tracker in this process that does not come back in time.

Where the system has interval timers, an exception is raised inside the call, by the handler of
``SIGALRM``. Python runs handlers in the main thread alone, and between two of its own
instructions: a call that hangs in another thread, on Windows, or inside a library that does not
come back to Python, is not ended.
"""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Final

from pytest_dstfuzz.trackers.deadline import Deadline

#: Seconds that a call has to come back by itself: who waits for a service ends in time too.
_GRACE: Final = 0.5
#: Seconds until the exception is raised again, where a tracker caught it.
_AGAIN: Final = 0.25


class Overrun(BaseException):
    """The time is over, and the call has not come back.

    Like ``KeyboardInterrupt`` none that ``except Exception`` catches.

    Attributes:
        answers: place in the batch -> what was answered before.
    """

    def __init__(self) -> None:
        super().__init__()
        self.answers: Mapping[int, object] = {}


def can_end_calls() -> bool:
    """Whether a call of this thread that hangs can be ended."""
    return sys.platform != "win32" and threading.current_thread() is threading.main_thread()


@contextmanager
def ended_with(deadline: Deadline | None) -> Iterator[None]:
    """End what is done inside, soon after a deadline; where that cannot be, do nothing.

    Another timer of the process (as of pytest-timeout) goes on afterwards, and where it goes off
    before the deadline, it is left alone.

    Raises:
        Overrun: the deadline came.
    """
    if deadline is None or not math.isfinite(deadline.left) or not can_end_calls():
        yield
        return
    if sys.platform != "win32":
        yield from _alarmed(deadline)


if sys.platform != "win32":

    def _alarmed(deadline: Deadline) -> Iterator[None]:
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
