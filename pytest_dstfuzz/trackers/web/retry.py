"""How long to wait before a request is made again."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

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
