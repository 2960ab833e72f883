"""What comes of an attempt to ask a service that gives no answer."""

from __future__ import annotations

import math
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
