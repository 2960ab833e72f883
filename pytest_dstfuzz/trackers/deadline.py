"""When a run has to end: the budget asks for nothing after that, and nobody waits beyond it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager


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

    def start(self) -> None:
        """Begin to count, unless that was done before; whatever is asked of it begins as well."""
        if self._started is None:
            self._started = self._clock()

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

    def for_preflight(self, seconds: float) -> AbstractContextManager[None]:
        """Let making and testing a tracker end after so many seconds."""
        option = "--dst-preflight-seconds; dstfuzz: --preflight-seconds"
        return self.within(seconds, f"the {seconds:g} seconds for testing the tracker ({option})")

    def _end(self) -> tuple[float, str]:
        self.start()
        assert self._started is not None  # noqa: S101 - started just now
        end = self._started + self._seconds, self._what
        closer = self._closer
        return end if closer is None or end[0] <= closer[0] else closer
