"""An attempt that gave no answer: whether and when it is made again, and when to give up."""

from __future__ import annotations

import math
import random
import threading
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

#: Attempts where a service answers with something else: it may be an accident, as of a gateway
#: that shows a page for a moment, but mostly it is what the service means to say.
ONCE_MORE: Final = 2
#: Statuses below 500 that say "later".
LATER: Final = (408, 425, 429)
#: Statuses with which the service, or whoever stands before it, says that it cannot be had.
AWAY: Final = (*LATER, 502, 503, 504)


class FailedAttempt(NamedTuple):
    """What came of an attempt that gave no answer."""

    what: str
    status: int | None = None
    text: str = ""
    #: Seconds that the service asks to wait.
    after: float = 0.0
    #: How many attempts are made at most where this is what comes of them.
    tries: float = math.inf

    @property
    def away(self) -> bool:
        """Whether nobody was there who could answer."""
        return self.status is None or self.status in AWAY


class Failed(Exception):  # noqa: N818 - carries a failure out of an attempt
    """An attempt gave no answer, for the reason in ``failure``."""

    def __init__(self, failure: FailedAttempt) -> None:
        super().__init__(failure.what)
        self.failure = failure


class Breaker:
    """Counts the requests in a row that nobody answered, from all threads.

    Any answer of a service that works begins the count anew. One that refuses a dialogue, or
    fails on it (500), works.

    Args:
        most: requests that may fail so; 0 = any number.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._failed = 0
        self._why = ""

    def answered(self) -> None:
        """Note that there was an answer."""
        with self._lock:
            self._failed = 0

    def failed(self, what: str) -> None:
        """Note that a request was not answered, for all its attempts.

        Args:
            what: happened the last time, said of the service.
        """
        with self._lock:
            self._failed += 1
            if self._failed == self._most and not self._why:
                count = f"{self._most} request{'' if self._most == 1 else 's'} in a row"
                self._why = f"nobody answered {count}, the last time it {what}"

    @property
    def opened(self) -> str:
        """Why the service is taken for dead, or ``""``."""
        return self._why


#: Seconds: the longest wait before the second attempt; each further one doubles it.
_FIRST: Final = 0.25
_LONGEST: Final = 8.0
#: However long a service asks to be left alone, it is asked again after so many seconds; where
#: it asks for more than the second number, it is not: that is for another day.
LONGEST_WAIT: Final = 60.0
_HOPELESS: Final = 600.0


def backoff(failures: int, jitter: random.Random) -> float:
    """Draw the seconds to wait after so many failures before this one, with full jitter.

    Uniform between 0 and a limit that doubles, so that requests which failed together
    do not come back together.
    """
    # The exponent is bounded too: 2.0 ** 2000 is no float.
    return jitter.uniform(0.0, min(_LONGEST, _FIRST * 2.0 ** min(failures, 16)))


def retry_after(value: str, now: datetime | None = None) -> float:
    """Return the seconds that the header ``Retry-After`` asks for (RFC 9110, 10.2.3).

    Args:
        value: a number of seconds, or a date of HTTP; ``""`` where there is none.
        now: by default that of the clock.

    Returns:
        0 or more; 0 for what is neither.
    """
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return 0.0
        # HTTP's dates are in UTC, also where they do not say so.
        date = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
        seconds = (date - (now or datetime.now(UTC))).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else 0.0


def worth_waiting(seconds: float) -> bool:
    """Whether a request is made again that is to be made so many seconds later."""
    return seconds <= _HOPELESS
