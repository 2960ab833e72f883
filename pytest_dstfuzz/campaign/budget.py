"""How much a run may cost: seconds, and contexts that the tracker is asked for."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

#: Below so many contexts a measured speed says little.
_ENOUGH_TO_MEASURE = 64


class Budget:
    """Counts what was spent, and says how much is left.

    Args:
        max_seconds: end after so many seconds from the first use; ``None`` = no limit.
        max_calls: end after so many contexts; ``None`` = no limit.
        clock: monotonic clock in seconds.
    """

    def __init__(
        self,
        max_seconds: float | None = None,
        max_calls: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_seconds = max_seconds
        self._max_calls = max_calls
        self._clock = clock
        self._started: float | None = None
        self.calls = 0

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return self._max_seconds is not None or self._max_calls is not None

    @property
    def ended(self) -> str:
        """Why nothing more may be asked, or ``""``."""
        if self._max_calls is not None and self.calls >= self._max_calls:
            return f"the budget of {self._max_calls} calls ended"
        if self._max_seconds is not None and self._elapsed() >= self._max_seconds:
            return f"the budget of {self._max_seconds:g} seconds ended"
        return ""

    def grant(self, wanted: int) -> int:
        """Return how many of ``wanted`` contexts may be asked now, as one batch."""
        if self.ended:
            return 0
        if self._max_calls is None:
            return wanted
        return min(wanted, self._max_calls - self.calls)

    def spend(self, contexts: int) -> None:
        """Count contexts that were asked."""
        self._elapsed()
        self.calls += contexts

    def forecast(self) -> float:
        """Return how many contexts what is left will probably pay for, at the speed so far.

        ``inf`` without a limit; before the speed is known, a small number, so that a
        look-ahead does not begin more dialogues than it can finish.
        """
        left = math.inf if self._max_calls is None else float(self._max_calls - self.calls)
        if self._max_seconds is not None:
            elapsed = self._elapsed()
            if self.calls < _ENOUGH_TO_MEASURE or elapsed <= 0.0:
                return min(left, float(_ENOUGH_TO_MEASURE))
            left = min(left, self.calls / elapsed * (self._max_seconds - elapsed))
        return max(left, 0.0)

    def _elapsed(self) -> float:
        """Seconds since the first use."""
        now = self._clock()
        if self._started is None:
            self._started = now
        return now - self._started
