"""A circuit breaker: a service that nobody reaches any more is not asked for all the rest."""

from __future__ import annotations

import threading


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
